//! Names that lead where no page may: the proxy looks at every answer, and again for every connection.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use anyhow::Result;
use grabd_tests::dns::{Dns, Record};
use grabd_tests::harness::Harness;
use grabd_tests::hostile::Hostile;
use grabd_tests::hostile::channels::NAMES;

use super::channels::{Refused, visit};

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
        // The first answer is one that may be reached, though nobody listens there.
        ("rebound", &[&[ALLOWED], &[CANARY]]),
        ("rebound-fetch", &[&[ALLOWED], &[CANARY]]),
    ];
    for (name, answers) in names {
        dns.says_of(&format!("{name}.hostile.example"), answers);
    }
    Ok(dns)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_leads_to_a_canary() -> Result<()> {
    let refused = Refused::listen();
    let (dns, hostile) = (zone().await?, Hostile::start(NAMES, "").await?);
    let harness = Harness::start(100, &[("egress.dns", &dns.address.to_string())]).await?;
    let mut wrong = visit(&harness, &hostile, NAMES).await?;
    harness.finish().await?;
    wrong.extend(refused.wrong(&hostile, NAMES));
    assert!(hostile.canaries.hits().is_empty(), "canaries were hit: {:?}", hostile.canaries.hits());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_name_leads_to_its_canary_where_that_is_allowed() -> Result<()> {
    let (dns, hostile) = (zone().await?, Hostile::start(NAMES, "").await?);
    let settings =
        [("egress.dns", &*dns.address.to_string()), ("egress.allow_cidrs", "127.0.0.0/8,::1/128,::ffff:0:0/96")];
    let harness = Harness::start(100, &settings).await?;
    visit(&harness, &hostile, NAMES).await?;
    let names: Vec<_> = NAMES.iter().map(|channel| channel.name).collect();
    let missing = hostile.canaries.missing(&names, Duration::from_secs(5)).await;
    harness.finish().await?;
    assert!(missing.is_empty(), "not hit: {missing:?}");
    Ok(())
}
