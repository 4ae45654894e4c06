//! The self-test passes behind the guard, and names what leaks where a part of the guard is missing.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use grabd_browser::{Held, NetworkJail, SelfTestError, find_executable};
use grabd_domain::address::Policy;

use crate::rig::{Rig, guard, open_directory};

/// A program that starts the browser without some of the flags it is given. Whoever names it in the settings gets it.
pub(crate) fn careless(directory: &tempfile::TempDir, forgets: &str) -> PathBuf {
    let real = find_executable(None, "").unwrap();
    let script = format!(
        "#!/bin/sh\nfor flag; do shift; case $flag in {forgets}) ;; *) set -- \"$@\" \"$flag\" ;; esac; done\nexec {} \"$@\"\n",
        real.display()
    );
    let path = directory.path().join("careless");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guarded_browser_passes() {
    let rig = Rig::start().await;
    let started = std::time::Instant::now();
    let held = rig.chromium.self_test(guard(&[2]).policy()).await;
    println!("the self-test took {:?}", started.elapsed());
    assert_eq!(held, Ok(Held { canary: Some([127, 0, 0, 1].into()) }));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_sends_udp_is_refused() {
    let directory = open_directory();
    let careless = careless(&directory, "--*webrtc-ip-handling-policy=*");
    let rig = Rig::with(&[2], |options| {
        (options.executable, options.network_jail) = (Some(careless), NetworkJail::Off);
    })
    .await;
    let error = rig.chromium.self_test(guard(&[2]).policy()).await.unwrap_err();
    assert!(error.to_string().contains("WebRTC over UDP of a page reached 127.0.0.1:"), "{error}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_lets_through_what_it_must_refuse_is_refused() {
    let rig = Rig::with(&[1, 2], |_| {}).await;
    let error = rig.chromium.self_test(guard(&[2]).policy()).await.unwrap_err();
    assert!(matches!(error, SelfTestError::Leak { channel: "navigation", .. }), "{error}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_canary_sits_where_the_policy_says_no() {
    let rig = Rig::start().await;
    let allow = |nets: &[&str]| {
        let allow = nets.iter().map(|net| net.parse().unwrap()).collect();
        Policy { allow, ..Policy::default() }
    };
    let held = rig.chromium.self_test(&allow(&["127.0.0.0/8", "::/0"])).await;
    assert_eq!(held, Ok(Held { canary: None }));
    let held = rig.chromium.self_test(&allow(&["127.0.0.0/16"])).await;
    assert_eq!(held, Ok(Held { canary: Some([127, 255, 255, 254].into()) }));
    let held = rig.chromium.self_test(&allow(&["127.0.0.0/8"])).await;
    assert_eq!(held, Ok(Held { canary: Some(std::net::Ipv6Addr::LOCALHOST.into()) }));
    rig.chromium.shutdown().await;
}
