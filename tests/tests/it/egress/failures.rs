//! If something that the guard depends on fails, nothing is reachable.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;

use anyhow::Result;
use grabd::config::Config;
use grabd_browser::find_executable;
use grabd_tests::dns::Dns;
use grabd_tests::harness::TestApp;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn names_are_unreachable_without_a_resolver() -> Result<()> {
    let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
    let settings = [("egress.dns", &*dns.address.to_string()), ("egress.lookup_timeout_ms", "300")];
    let app = TestApp::start(10, &settings).await?;
    let named = |path: &str| format!("http://site.hostile.example:{}{path}", app.site.port());
    let (status, grab) = app.create(json!({ "url": named("/tiny") })).await?;
    assert_eq!(status, 200, "{grab}");
    drop(dns);
    let (status, answer) = app.create(json!({ "url": named("/tiny") })).await?;
    assert_eq!(status, 500, "{answer}");
    // A page that is addressed by IP cannot resolve names either.
    let before = app.site.hits("/fonts/blocks.woff2");
    let embed = app.site.url(&format!("/embed?src={}", named("/fonts/blocks.woff2")));
    let (status, grab) = app.create(json!({ "url": embed })).await?;
    assert_eq!(status, 200, "{grab}");
    assert_eq!(app.site.hits("/fonts/blocks.woff2"), before);
    app.finish().await
}

#[test]
fn invalid_egress_settings_are_rejected() {
    for (key, value) in [
        ("egress.dns", "resolver"),
        ("egress.dns", "127.0.0.1"),
        ("egress.allow_cidrs", "127.0.0.300/32"),
        ("egress.deny_cidrs", "10.0.0.0/33"),
        ("egress.lookup_timeout_ms", "0"),
        ("egress.deny_cidr", "10.0.0.0/8"),
    ] {
        assert!(Config::with(&BTreeMap::from([(key, value.to_owned())])).is_err(), "{key} = {value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn service_with_a_leaking_browser_does_not_start() -> Result<()> {
    let directory = tempfile::tempdir()?;
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755))?;
    // A wrapper that drops the WebRTC flags, like another browser that an operator might configure.
    let wrapper = directory.path().join("careless");
    let real = find_executable(None, "").unwrap_or_default();
    let script = "for flag; do shift; case $flag in --*webrtc*) ;; *) set -- \"$@\" \"$flag\" ;; esac; done";
    std::fs::write(&wrapper, format!("#!/bin/sh\n{script}\nexec {} \"$@\"\n", real.display()))?;
    std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755))?;
    let started = TestApp::start(1, &[("browser.executable", &wrapper.display().to_string())]).await;
    let error = started.err().map(|error| format!("{error:#}")).unwrap_or_default();
    assert!(error.contains("WebRTC over UDP of a page reached 127.0.0.1"), "{error:?}");
    Ok(())
}
