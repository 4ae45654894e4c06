//! DNS names that resolve to forbidden addresses: the proxy checks every answer, for every connection.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use anyhow::Result;
use grabd_tests::dns::{Dns, Record};
use grabd_tests::harness::TestApp;
use grabd_tests::hostile::HostileSite;
use grabd_tests::hostile::channels::NAMES;

use super::channels::{RefusedPorts, capture_all};

const ALLOWED: Record = Record::A(Ipv4Addr::new(127, 0, 0, 2));
const CANARY: Record = Record::A(Ipv4Addr::new(127, 0, 0, 3));

async fn zone() -> Result<Dns> {
    let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
    let mapped = Record::Aaaa(Ipv4Addr::new(127, 0, 0, 3).to_ipv6_mapped());
    let names: [(&str, &[&[Record]]); 7] = [
        ("internal", &[&[CANARY]]),
        ("several", &[&[ALLOWED, CANARY]]),
        ("v6", &[&[Record::Aaaa(Ipv6Addr::LOCALHOST)]]),
        ("mapped", &[&[mapped]]),
        ("alias", &[&[Record::Cname("localhost", Ipv4Addr::LOCALHOST)]]),
        // The first answer is allowed, although nothing listens there.
        ("rebound", &[&[ALLOWED], &[CANARY]]),
        ("rebound-fetch", &[&[ALLOWED], &[CANARY]]),
    ];
    for (name, answers) in names {
        dns.set_records(&format!("{name}.hostile.example"), answers);
    }
    Ok(dns)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_reaches_its_canary() -> Result<()> {
    let refused = RefusedPorts::capture();
    let (dns, hostile) = (zone().await?, HostileSite::start(NAMES, "").await?);
    let app = TestApp::start(100, &[("egress.dns", &dns.address.to_string())]).await?;
    let mut wrong = capture_all(&app, &hostile, NAMES).await?;
    app.finish().await?;
    wrong.extend(refused.missed(&hostile, NAMES));
    assert!(hostile.canaries.hits().is_empty(), "canaries were hit: {:?}", hostile.canaries.hits());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_name_reaches_its_canary_if_allowed() -> Result<()> {
    let (dns, hostile) = (zone().await?, HostileSite::start(NAMES, "").await?);
    let settings =
        [("egress.dns", &*dns.address.to_string()), ("egress.allow_cidrs", "127.0.0.0/8,::1/128,::ffff:0:0/96")];
    let app = TestApp::start(100, &settings).await?;
    capture_all(&app, &hostile, NAMES).await?;
    let names: Vec<_> = NAMES.iter().map(|channel| channel.name).collect();
    let missing = hostile.canaries.missing(&names, Duration::from_secs(5)).await;
    app.finish().await?;
    assert!(missing.is_empty(), "not hit: {missing:?}");
    Ok(())
}

/// A developer's page is at `localhost` as well as at `127.0.0.1`.
#[tokio::test(flavor = "multi_thread")]
async fn localhost_is_captured_if_its_address_is_allowed() -> Result<()> {
    let app = TestApp::start(5, &[("egress.allow_cidrs", "127.0.0.1/32")]).await?;
    let port = app.service.http().port();
    for host in ["localhost", "app.localhost"] {
        let (status, grab) = app.create(serde_json::json!({ "url": format!("http://{host}:{port}/healthz") })).await?;
        assert_eq!((status, &grab["http_status"]), (200, &200.into()), "{grab}");
    }
    app.finish().await?;
    let app = TestApp::start_without_browser(5, &[]).await?;
    let refused = app.create_refused(serde_json::json!({ "url": format!("http://localhost:{port}/") })).await?;
    assert_eq!(refused.code, "ssrf_detected");
    app.finish().await
}
