//! The browser's command line.

use std::ffi::OsString;
use std::path::Path;

/// What every browser is started with.
///
/// Load-bearing for the egress guard: the proxy that denies all (contexts bring their own), the resolver rule, which
/// turns every way round a proxy into a name error, and the WebRTC policy under both its names, since each program
/// knows one and ignores the other in silence. Load-bearing for the limit of bytes: with `BackgroundResourceFetch`, scripts
/// are unpacked beside their page, which tells of none of their bytes until it has them all, or has no memory left; it
/// made no page faster here. The rest cuts noise and keeps later surprises out. Deliberately absent:
/// `--no-sandbox`, anything that weakens the same-origin rules, and flags for speed, none of which helped.
const FLAGS: [&str; 20] = [
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
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,MediaRouter,DialMediaRouteProvider,BackgroundResourceFetch",
    "--hide-scrollbars",
    "--mute-audio",
];

/// The flag that names the profile, by which a browser of ours is known among all processes.
pub(super) const PROFILE_FLAG: &str = "--user-data-dir=";

/// The whole command line behind the program: `deny_port` is the port of the proxy that refuses everything.
pub(super) fn command_line(profile: &Path, deny_port: u16) -> Vec<OsString> {
    let mut user_data = OsString::from(PROFILE_FLAG);
    user_data.push(profile);
    FLAGS
        .into_iter()
        .map(OsString::from)
        // Containers give /dev/shm 64 MB, which one large picture fills.
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
    fn the_guard_cannot_be_walked_round() {
        let line: Vec<String> = command_line(Path::new("/run/x/profile"), 4242)
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
        for banned in ["--no-sandbox", "--disable-web-security", "--remote-debugging-port", "--allow-file-access"] {
            assert!(!line.iter().any(|flag| flag.starts_with(banned)), "{banned}");
        }
    }
}
