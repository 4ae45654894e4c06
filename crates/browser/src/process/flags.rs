//! The browser's command line.

use std::ffi::OsString;
use std::path::Path;

use crate::options::FrameMode;

/// Flags of every browser.
///
/// The egress guard depends on the deny-all default proxy (contexts set their own), on the resolver rule, which turns
/// any attempt to bypass the proxy into a name error, and on the WebRTC policy under both of its names, since each
/// program knows one and silently ignores the other. The byte limit depends on disabling `BackgroundResourceFetch`:
/// with it, scripts are decompressed outside of the page, which reports no bytes until all have arrived or memory is
/// exhausted. It made no page faster here. The other flags reduce background activity. Deliberately absent:
/// `--no-sandbox`, anything that weakens the same-origin policy, and performance flags, none of which helped.
const FLAGS: [&str; 22] = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.99.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--block-new-web-contents",
    "--deny-permission-prompts",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-breakpad",
    "--disable-domain-reliability",
    "--no-pings",
    // Without the last two, documents cannot ask for a process of their own (`Origin-Agent-Cluster`,
    // `Document-Isolation-Policy`). The browser reports the requests of a frame in such a process to another session, so that
    // they were neither paused nor seen to end (Chromium 156): frames bypassed `block_urls` and the rules for domains, and the
    // capture waited for its deadline.
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,MediaRouter,DialMediaRouteProvider,BackgroundResourceFetch,OriginIsolationHeader,DocumentIsolationPolicy",
    // Otherwise the browser asks for permission to reach private addresses, which the egress guard refuses anyway. On a busy
    // machine, that question may overtake the commit of the document, and the browser then ends the page's process ("bad IPC
    // message, reason 262", Chromium 156): in 4 of 160 captures of a page with an image on loopback, eight at once. Without
    // the checks at all, the browser blocks private http addresses in https pages as mixed content: the guard does not see
    // and count them.
    "--enable-features=LocalNetworkAccessChecks:LocalNetworkAccessChecksWarn/true",
    "--hide-scrollbars",
    "--mute-audio",
    // A mouse, as a desktop has: without it, `hover: none` and no pointer. Devices with a touch screen override it.
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
];

/// The flag for the profile directory, which identifies our browsers among all processes.
pub(super) const PROFILE_FLAG: &str = "--user-data-dir=";

/// Enables explicit frame requests. With the second flag a frame waits for all of its content.
const ON_DEMAND: [&str; 4] = [
    "--enable-begin-frame-control",
    "--run-all-compositor-stages-before-draw",
    // On pages with a scroll timeline, the frame in which a compositor animation ends is never drawn, nor is any frame
    // after it (Chromium 156).
    "--disable-threaded-animation",
    // Large images are decoded before the frame is drawn, not after it.
    "--disable-checker-imaging",
];

/// The arguments of the browser. `deny_port` is the port of the deny-all proxy.
pub(super) fn command_line(profile: &Path, deny_port: u16, frames: FrameMode) -> Vec<OsString> {
    let mut user_data = OsString::from(PROFILE_FLAG);
    user_data.push(profile);
    let frames = match frames {
        FrameMode::OnDemand => ON_DEMAND.as_slice(),
        FrameMode::Timer => &[],
    };
    FLAGS
        .iter()
        .chain(frames)
        .map(OsString::from)
        // Containers limit /dev/shm to 64 MB, which one large image fills.
        .chain([
            "--disable-dev-shm-usage".into(),
            format!("--proxy-server=http://127.99.0.1:{deny_port}").into(),
            user_data,
        ])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_prevent_bypassing_the_guard() {
        let line: Vec<String> = command_line(Path::new("/run/x/profile"), 4242, FrameMode::OnDemand)
            .into_iter()
            .map(|flag| flag.into_string().unwrap())
            .collect();
        for flag in [
            "--remote-debugging-pipe",
            "--proxy-server=http://127.99.0.1:4242",
            "--proxy-bypass-list=<-loopback>",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.99.0.1",
            "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
            "--webrtc-ip-handling-policy=disable_non_proxied_udp",
            "--user-data-dir=/run/x/profile",
        ] {
            assert_eq!(line.iter().filter(|given| *given == flag).count(), 1, "{flag}");
        }
        assert_eq!(line.iter().filter(|flag| flag.starts_with("--proxy-server")).count(), 1, "the last one wins");
        for (list, feature) in [
            ("--disable-features=", "BackgroundResourceFetch"),
            ("--disable-features=", "OriginIsolationHeader"),
            ("--disable-features=", "DocumentIsolationPolicy"),
            ("--enable-features=", "LocalNetworkAccessChecks:LocalNetworkAccessChecksWarn/true"),
        ] {
            let lists: Vec<_> = line.iter().filter_map(|flag| flag.strip_prefix(list)).collect();
            let [names] = lists[..] else { panic!("{list} is given {} times, and the last one wins", lists.len()) };
            assert!(names.split(',').any(|name| name == feature), "{feature}");
        }
        for banned in ["--no-sandbox", "--disable-web-security", "--remote-debugging-port", "--allow-file-access"] {
            assert!(!line.iter().any(|flag| flag.starts_with(banned)), "{banned}");
        }
    }
}
