//! The self-test passes with an intact guard, and names the leak if a part of the guard is missing.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use grabd_browser::{NetworkJail, SelfTestError, SelfTestReport, find_executable};
use grabd_domain::address::Policy;

use crate::rig::{Rig, guard, open_directory};

/// A program that starts the browser without the matching flags.
pub(crate) fn browser_without_flag(directory: &tempfile::TempDir, pattern: &str) -> PathBuf {
    let real = find_executable(None, "").unwrap();
    let script = format!(
        "#!/bin/sh\nfor flag; do shift; case $flag in {pattern}) ;; *) set -- \"$@\" \"$flag\" ;; esac; done\nexec {} \"$@\"\n",
        real.display()
    );
    let path = directory.path().join("browser_without_flag");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn guarded_browser_passes() {
    let rig = Rig::start().await;
    let started = std::time::Instant::now();
    let report = rig.chromium.self_test(guard(&[2]).policy()).await;
    println!("the self-test took {:?}", started.elapsed());
    assert_eq!(report, Ok(SelfTestReport { canary: Some([127, 0, 0, 1].into()) }));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn browser_that_sends_udp_fails() {
    let directory = open_directory();
    let browser_without_flag = browser_without_flag(&directory, "--*webrtc-ip-handling-policy=*");
    let rig = Rig::with(&[2], |options| {
        (options.executable, options.network_jail) = (Some(browser_without_flag), NetworkJail::Off);
    })
    .await;
    let error = rig.chromium.self_test(guard(&[2]).policy()).await.unwrap_err();
    assert!(error.to_string().contains("WebRTC over UDP of a page reached 127.0.0.1:"), "{error}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn permissive_proxy_fails() {
    let rig = Rig::with(&[1, 2], |_| {}).await;
    let error = rig.chromium.self_test(guard(&[2]).policy()).await.unwrap_err();
    assert!(matches!(error, SelfTestError::Leak { channel: "navigation", .. }), "{error}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn canary_uses_an_address_that_the_policy_refuses() {
    let rig = Rig::start().await;
    let allow = |nets: &[&str]| {
        let allow = nets.iter().map(|net| net.parse().unwrap()).collect();
        Policy { allow, ..Policy::default() }
    };
    let report = rig.chromium.self_test(&allow(&["127.0.0.0/8", "::/0"])).await;
    assert_eq!(report, Ok(SelfTestReport { canary: None }));
    let report = rig.chromium.self_test(&allow(&["127.0.0.0/16"])).await;
    assert_eq!(report, Ok(SelfTestReport { canary: Some([127, 255, 255, 254].into()) }));
    let report = rig.chromium.self_test(&allow(&["127.0.0.0/8"])).await;
    assert_eq!(report, Ok(SelfTestReport { canary: Some(std::net::Ipv6Addr::LOCALHOST.into()) }));
    rig.chromium.shutdown().await;
}
