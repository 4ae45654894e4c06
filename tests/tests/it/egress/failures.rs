//! What the guard stands on may fail; then nothing is reached, rather than anything.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;

use anyhow::Result;
use grabd::config::Config;
use grabd_browser::find_executable;
use grabd_tests::dns::Dns;
use grabd_tests::harness::Harness;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn without_a_resolver_no_name_is_reached() -> Result<()> {
    let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
    let settings = [("egress.dns", &*dns.address.to_string()), ("egress.lookup_timeout_ms", "300")];
    let harness = Harness::start(10, &settings).await?;
    let named = |path: &str| format!("http://site.hostile.example:{}{path}", harness.site.port());
    let (status, grab) = harness.create(json!({ "url": named("/tiny") })).await?;
    assert_eq!(status, 200, "{grab}");
    drop(dns);
    let (status, answer) = harness.create(json!({ "url": named("/tiny") })).await?;
    assert_eq!(status, 500, "{answer}");
    // A page that was reached by its address finds no name either.
    let before = harness.site.hits("/fonts/blocks.woff2");
    let embed = harness.site.url(&format!("/embed?src={}", named("/fonts/blocks.woff2")));
    let (status, grab) = harness.create(json!({ "url": embed })).await?;
    assert_eq!(status, 200, "{grab}");
    assert_eq!(harness.site.hits("/fonts/blocks.woff2"), before);
    harness.finish().await
}

#[test]
fn a_guard_that_is_not_understood_does_not_start() {
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
async fn a_service_whose_browser_leaks_does_not_start() -> Result<()> {
    let directory = tempfile::tempdir()?;
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755))?;
    // A program that is not told how to treat WebRTC: what an operator may get by naming another browser.
    let careless = directory.path().join("careless");
    let real = find_executable(None, "").unwrap_or_default();
    let script = "for flag; do shift; case $flag in --*webrtc*) ;; *) set -- \"$@\" \"$flag\" ;; esac; done";
    std::fs::write(&careless, format!("#!/bin/sh\n{script}\nexec {} \"$@\"\n", real.display()))?;
    std::fs::set_permissions(&careless, PermissionsExt::from_mode(0o755))?;
    let started = Harness::start(1, &[("browser.executable", &careless.display().to_string())]).await;
    let error = started.err().map(|error| format!("{error:#}")).unwrap_or_default();
    assert!(error.contains("WebRTC over UDP of a page reached 127.0.0.1"), "{error:?}");
    Ok(())
}
