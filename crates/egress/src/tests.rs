//! Each rule of the guard as a case, over a real resolver and real sockets.

mod dns;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grabd_domain::address::{Policy, Refused};
use grabd_domain::target::TargetHost;
use hickory_resolver::proto::rr::RecordType;
use tokio::net::TcpListener;

use self::dns::{Answer, Dns, addresses, alias};
use crate::{Guard, Options, Refusal};

const LOOKUP: Duration = Duration::from_millis(400);

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

fn guard(dns: SocketAddr, allow: &[&str]) -> Guard {
    let allow = allow.iter().map(|net| net.parse().unwrap()).collect();
    let policy = Policy { allow, ..Policy::default() };
    Guard::new(Options { policy, dns: vec![dns], lookup_timeout: LOOKUP, ..Options::default() }).unwrap()
}

/// A guard whose resolver is never to be reached.
fn literal_guard(allow: &[&str]) -> Guard {
    guard("127.0.0.1:9".parse().unwrap(), allow)
}

fn name(text: &str) -> TargetHost {
    TargetHost::Name(text.to_owned())
}

fn literal(text: &str) -> TargetHost {
    TargetHost::Address(text.parse().unwrap())
}

fn refused_address(outcome: Result<Vec<IpAddr>, Refusal>) -> String {
    match outcome {
        Err(Refusal::Address { address, .. }) => address.to_string(),
        other => panic!("not a refused address: {other:?}"),
    }
}

/// The zone of most cases. Public addresses in it are never dialled.
fn zone(name: &str, kind: RecordType) -> Answer {
    match name {
        "public.example." => addresses(kind, &["93.184.216.34", "2606:4700:4700::1111"]),
        "v6only.example." => addresses(kind, &["2606:4700:4700::1111"]),
        "private.example." => addresses(kind, &["10.0.0.1"]),
        "mixed.example." => addresses(kind, &["93.184.216.34", "10.0.0.1"]),
        "mixed-families.example." => addresses(kind, &["93.184.216.34", "fd00::1"]),
        "v6-loopback.example." => addresses(kind, &["::1"]),
        "mapped.example." => addresses(kind, &["::ffff:127.0.0.1"]),
        "alias.example." => alias("target.example."),
        "target.example." => addresses(kind, &["127.0.0.1"]),
        "alias-to-localhost.example." => alias("localhost."),
        "alias-to-public.example." => alias("public.example."),
        "dns64.example." => addresses(kind, &["93.184.216.34", "64:ff9b::5db8:d822"]),
        "only-dns64.example." => addresses(kind, &["64:ff9b::7f00:1"]),
        "v6-silent.example." if kind == RecordType::AAAA => Answer::Silence,
        "v6-silent.example." => addresses(kind, &["93.184.216.34"]),
        "allowed.example." => addresses(kind, &["127.0.0.2"]),
        "allowed-and-not.example." => addresses(kind, &["127.0.0.2", "127.0.0.3"]),
        "silent.example." => Answer::Silence,
        "broken.example." => Answer::Broken,
        "empty.example." => Answer::Records(Vec::new()),
        _ => Answer::NoSuchName,
    }
}

#[tokio::test]
async fn a_public_name_passes_with_both_families() {
    let dns = Dns::start(zone).await;
    let found = guard(dns.address, &[]).resolve(&name("public.example")).await.unwrap();
    let expected: [IpAddr; 2] = ["93.184.216.34".parse().unwrap(), "2606:4700:4700::1111".parse().unwrap()];
    assert_eq!(found, expected);
    assert_eq!(guard(dns.address, &[]).resolve(&name("alias-to-public.example")).await.unwrap(), expected);
    assert_eq!(guard(dns.address, &[]).resolve(&name("v6only.example")).await.unwrap(), expected[1..]);
}

#[tokio::test]
async fn one_refused_answer_refuses_the_name() {
    let dns = Dns::start(zone).await;
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    for (host, address) in [
        ("private.example", "10.0.0.1"),
        ("mixed.example", "10.0.0.1"),
        ("mixed-families.example", "fd00::1"),
        ("v6-loopback.example", "::1"),
        ("mapped.example", "::ffff:127.0.0.1"),
        ("alias.example", "127.0.0.1"),
        ("alias-to-localhost.example", "127.0.0.1"),
        ("only-dns64.example", "64:ff9b::7f00:1"),
        ("allowed-and-not.example", "127.0.0.3"),
    ] {
        assert_eq!(refused_address(guard.resolve(&name(host)).await), address, "{host}");
    }
}

#[tokio::test]
async fn a_made_up_v6_answer_beside_a_real_v4_one_is_dropped() {
    let dns = Dns::start(zone).await;
    let found = guard(dns.address, &[]).resolve(&name("dns64.example")).await.unwrap();
    assert_eq!(found, ["93.184.216.34".parse::<IpAddr>().unwrap()]);
}

#[tokio::test]
async fn a_name_without_addresses_is_unresolved() {
    let dns = Dns::start(zone).await;
    let guard = guard(dns.address, &[]);
    for host in ["missing.example", "empty.example", "broken.example", "not a name.example"] {
        let outcome = guard.resolve(&name(host)).await;
        let expected = if host.contains(' ') { Refusal::Name } else { Refusal::Unresolved };
        assert_eq!(outcome, Err(expected), "{host}");
    }
}

#[tokio::test]
async fn silence_ends_at_the_limit() {
    let dns = Dns::start(zone).await;
    let guard = guard(dns.address, &[]);
    let started = Instant::now();
    assert_eq!(guard.resolve(&name("silent.example")).await, Err(Refusal::TimedOut));
    assert!(started.elapsed() < LOOKUP * 2, "{:?}", started.elapsed());
}

#[tokio::test]
async fn an_address_does_not_wait_long_for_its_other_family() {
    let dns = Dns::start(zone).await;
    let dns = vec![dns.address];
    let guard = Guard::new(Options { dns, lookup_timeout: PATIENCE, ..Options::default() }).unwrap();
    let started = Instant::now();
    let found = guard.resolve(&name("v6-silent.example")).await.unwrap();
    assert_eq!(found, ["93.184.216.34".parse::<IpAddr>().unwrap()]);
    assert!(started.elapsed() < PATIENCE / 4, "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_resolver_out_of_reach_is_no_reason_to_ask_another() {
    let outcome = literal_guard(&[]).resolve(&name("localtest.example")).await;
    assert!(matches!(outcome, Err(Refusal::TimedOut | Refusal::Unresolved)), "{outcome:?}");
}

#[tokio::test]
async fn a_local_or_malformed_name_is_refused_without_a_question() {
    let dns = Dns::start(|_, kind| addresses(kind, &["127.0.0.2"])).await;
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    let long = "a".repeat(64) + ".example";
    for host in [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "x.localhost",
        "router",
        "db.internal",
        "a.local",
        &long,
        "a..example",
        "",
    ] {
        assert_eq!(guard.resolve(&name(host)).await, Err(Refusal::Name), "{host}");
    }
    assert_eq!(dns.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_is_asked_for_as_it_is() {
    let dns = Dns::start(zone).await;
    let guard = guard(dns.address, &[]);
    guard.resolve(&name("Missing.Example.")).await.unwrap_err();
    let mut asked = dns.asked();
    asked.dedup();
    // No search list: never "missing.example.<domain of this machine>".
    assert_eq!(asked, ["missing.example."]);
}

#[tokio::test]
async fn a_literal_is_checked_in_every_spelling() {
    let guard = literal_guard(&["127.0.0.2/32"]);
    for address in ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "::ffff:127.0.0.2", "fe80::1", "64:ff9b::1"] {
        assert_eq!(refused_address(guard.resolve(&literal(address)).await), address);
    }
    for (spelling, address) in [
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("[::1]", "::1"),
        ("127.0.0.1.", "127.0.0.1"),
    ] {
        assert_eq!(refused_address(guard.resolve(&name(spelling)).await), address, "{spelling}");
    }
    assert_eq!(guard.resolve(&literal("93.184.216.34")).await.unwrap(), ["93.184.216.34".parse::<IpAddr>().unwrap()]);
    assert_eq!(guard.resolve(&literal("127.0.0.2")).await.unwrap(), ["127.0.0.2".parse::<IpAddr>().unwrap()]);
}

#[tokio::test]
async fn the_machines_own_addresses_are_refused() {
    let policy = Policy { own: vec!["93.184.216.34".parse().unwrap()], ..Policy::default() };
    let guard = Guard::new(Options { policy, ..Options::default() }).unwrap();
    assert!(guard.policy().own.contains(&"127.0.0.1".parse().unwrap()));
    for own in &guard.policy().own {
        let refusal = guard.resolve(&TargetHost::Address(*own)).await.unwrap_err();
        assert_eq!(refusal, Refusal::Address { address: *own, why: Refused::Own });
    }
}

#[tokio::test]
async fn the_allow_list_wins_over_the_machines_own_addresses() {
    let guard = literal_guard(&["127.0.0.1/32"]);
    assert!(guard.resolve(&literal("127.0.0.1")).await.is_ok());
}

#[tokio::test]
async fn an_allowed_name_is_really_connected() {
    let dns = Dns::start(zone).await;
    let site = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = site.local_addr().unwrap().port();
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    for host in [name("allowed.example"), literal("127.0.0.2")] {
        let (near, far) = tokio::join!(guard.connect(&host, port), site.accept());
        let near = near.unwrap();
        assert!(near.nodelay().unwrap());
        assert_eq!(near.local_addr().unwrap(), far.unwrap().1);
    }
}

#[tokio::test]
async fn nothing_is_dialled_for_a_name_with_one_refused_answer() {
    let dns = Dns::start(zone).await;
    let site = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = site.local_addr().unwrap().port();
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    assert!(guard.connect(&name("allowed-and-not.example"), port).await.unwrap_err().is_refused());
    // Had the allowed address been dialled, its connection would be waiting before this one.
    let allowed = name("allowed.example");
    let (near, far) = tokio::join!(guard.connect(&allowed, port), site.accept());
    assert_eq!(near.unwrap().local_addr().unwrap(), far.unwrap().1);
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_refused() {
    let flipped = AtomicBool::new(false);
    let dns = Dns::start(move |_, kind| {
        let second = kind == RecordType::A && flipped.swap(true, Ordering::Relaxed);
        addresses(kind, if second { &["127.0.0.1"] } else { &["127.0.0.2"] })
    })
    .await;
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    assert!(guard.resolve(&name("rebind.example")).await.is_ok());
    assert_eq!(refused_address(guard.resolve(&name("rebind.example")).await), "127.0.0.1");
}

#[tokio::test]
async fn a_port_is_refused_before_anything_else() {
    let dns = Dns::start(zone).await;
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    for port in [0, 22, 25, 6379, 10080] {
        assert_eq!(guard.connect(&name("allowed.example"), port).await.unwrap_err(), Refusal::Port, "{port}");
    }
    assert_eq!(dns.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_closed_port_is_a_failed_connection() {
    let closed = TcpListener::bind("127.0.0.2:0").await.unwrap().local_addr().unwrap().port();
    let outcome = literal_guard(&["127.0.0.2/32"]).connect(&literal("127.0.0.2"), closed).await;
    assert_eq!(outcome.unwrap_err(), Refusal::ConnectFailed(io::ErrorKind::ConnectionRefused));
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_fails() {
    let dns = Dns::start(|_, kind| addresses(kind, &["127.0.0.3", "127.0.0.2"])).await;
    let site = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = site.local_addr().unwrap().port();
    let guard = guard(dns.address, &["127.0.0.2/31"]);
    let two = name("two.example");
    let (near, far) = tokio::join!(guard.connect(&two, port), site.accept());
    assert_eq!(near.unwrap().local_addr().unwrap(), far.unwrap().1);
}

#[test]
fn only_the_guards_own_no_counts_as_refused() {
    let address = "10.0.0.1".parse().unwrap();
    let refused = [Refusal::Address { address, why: Refused::NotGlobal }, Refusal::Name, Refusal::Port];
    let failed = [Refusal::Unresolved, Refusal::ConnectFailed(io::ErrorKind::ConnectionRefused), Refusal::TimedOut];
    assert!(refused.iter().all(Refusal::is_refused));
    assert!(!failed.iter().any(Refusal::is_refused));
    assert_eq!(refused.map(|refusal| refusal.reason()), ["address_not_global", "name", "port"]);
    assert_eq!(failed.map(|refusal| refusal.reason()), ["unresolved", "connect_failed", "timed_out"]);
}
