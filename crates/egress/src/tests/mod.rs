//! Tests of the guard with a real resolver and real sockets.

mod dns;
mod tunnel;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grabd_domain::address::{AddressError, Policy};
use grabd_domain::target::TargetHost;
use hickory_resolver::proto::rr::RecordType;
use tokio::net::TcpListener;

use self::dns::{DnsResponse, TestDns, addresses, alias};
use crate::{EgressError, Guard, Options};

const LOOKUP: Duration = Duration::from_millis(400);

/// Much longer than any lookup in these tests.
const LONG_LOOKUP: Duration = Duration::from_secs(10);

fn guard(dns: SocketAddr, allow: &[&str]) -> Guard {
    let allow = allow.iter().map(|net| net.parse().unwrap()).collect();
    let policy = Policy { allow, ..Policy::default() };
    Guard::new(Options { policy, dns: vec![dns], lookup_timeout: LOOKUP, ..Options::default() }).unwrap()
}

/// A guard for IP literals. Its resolver is unreachable.
fn literal_guard(allow: &[&str]) -> Guard {
    guard("127.0.0.1:9".parse().unwrap(), allow)
}

fn name(text: &str) -> TargetHost {
    TargetHost::Name(text.to_owned())
}

fn literal(text: &str) -> TargetHost {
    TargetHost::Address(text.parse().unwrap())
}

fn refused_address(outcome: Result<Vec<IpAddr>, EgressError>) -> String {
    match outcome {
        Err(EgressError::Address { address, .. }) => address.to_string(),
        other => panic!("expected a refused address, got {other:?}"),
    }
}

/// The zone of most tests. They never connect to its public addresses.
fn zone(name: &str, kind: RecordType) -> DnsResponse {
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
        "v6-silent.example." if kind == RecordType::AAAA => DnsResponse::NoResponse,
        "v6-silent.example." => addresses(kind, &["93.184.216.34"]),
        "allowed.example." => addresses(kind, &["127.0.0.2"]),
        "allowed-and-not.example." => addresses(kind, &["127.0.0.2", "127.0.0.3"]),
        "silent.example." => DnsResponse::NoResponse,
        "broken.example." => DnsResponse::ServerFailure,
        "empty.example." => DnsResponse::Records(Vec::new()),
        _ => DnsResponse::NoSuchName,
    }
}

#[tokio::test]
async fn resolve_returns_both_families_of_a_public_name() {
    let dns = TestDns::start(zone).await;
    let found = guard(dns.address, &[]).resolve(&name("public.example")).await.unwrap();
    let expected: [IpAddr; 2] = ["93.184.216.34".parse().unwrap(), "2606:4700:4700::1111".parse().unwrap()];
    assert_eq!(found, expected);
    assert_eq!(guard(dns.address, &[]).resolve(&name("alias-to-public.example")).await.unwrap(), expected);
    assert_eq!(guard(dns.address, &[]).resolve(&name("v6only.example")).await.unwrap(), expected[1..]);
}

#[tokio::test]
async fn resolve_refuses_a_name_with_any_refused_address() {
    let dns = TestDns::start(zone).await;
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
async fn resolve_drops_a_dns64_address_when_an_ipv4_address_exists() {
    let dns = TestDns::start(zone).await;
    let found = guard(dns.address, &[]).resolve(&name("dns64.example")).await.unwrap();
    assert_eq!(found, ["93.184.216.34".parse::<IpAddr>().unwrap()]);
}

#[tokio::test]
async fn resolve_reports_a_name_without_addresses_as_unresolved() {
    let dns = TestDns::start(zone).await;
    let guard = guard(dns.address, &[]);
    for host in ["missing.example", "empty.example", "broken.example", "not a name.example"] {
        let outcome = guard.resolve(&name(host)).await;
        let expected = if host.contains(' ') { EgressError::Name } else { EgressError::Unresolved };
        assert_eq!(outcome, Err(expected), "{host}");
    }
}

#[tokio::test]
async fn resolve_times_out_when_the_server_does_not_respond() {
    let dns = TestDns::start(zone).await;
    let guard = guard(dns.address, &[]);
    let started = Instant::now();
    assert_eq!(guard.resolve(&name("silent.example")).await, Err(EgressError::TimedOut));
    assert!(started.elapsed() < LOOKUP * 2, "{:?}", started.elapsed());
}

#[tokio::test]
async fn resolve_does_not_wait_long_for_a_missing_aaaa_response() {
    let dns = TestDns::start(zone).await;
    let dns = vec![dns.address];
    let guard = Guard::new(Options { dns, lookup_timeout: LONG_LOOKUP, ..Options::default() }).unwrap();
    let started = Instant::now();
    let found = guard.resolve(&name("v6-silent.example")).await.unwrap();
    assert_eq!(found, ["93.184.216.34".parse::<IpAddr>().unwrap()]);
    assert!(started.elapsed() < LONG_LOOKUP / 4, "{:?}", started.elapsed());
}

#[tokio::test]
async fn resolve_does_not_fall_back_when_the_resolver_is_unreachable() {
    let outcome = literal_guard(&[]).resolve(&name("localtest.example")).await;
    assert!(matches!(outcome, Err(EgressError::TimedOut | EgressError::Unresolved)), "{outcome:?}");
}

#[tokio::test]
async fn resolve_refuses_local_and_malformed_names_without_a_query() {
    let dns = TestDns::start(|_, kind| addresses(kind, &["127.0.0.2"])).await;
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
        assert_eq!(guard.resolve(&name(host)).await, Err(EgressError::Name), "{host}");
    }
    assert_eq!(dns.queried_names(), Vec::<String>::new());
}

#[tokio::test]
async fn resolve_queries_the_name_without_a_search_list() {
    let dns = TestDns::start(zone).await;
    let guard = guard(dns.address, &[]);
    guard.resolve(&name("Missing.Example.")).await.unwrap_err();
    let mut queried = dns.queried_names();
    queried.dedup();
    // No search list: never "missing.example.<domain of this machine>".
    assert_eq!(queried, ["missing.example."]);
}

#[tokio::test]
async fn resolve_checks_ip_literals_in_every_notation() {
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
async fn resolve_refuses_addresses_of_this_machine() {
    let policy = Policy { own: vec!["93.184.216.34".parse().unwrap()], ..Policy::default() };
    let guard = Guard::new(Options { policy, ..Options::default() }).unwrap();
    assert!(guard.policy().own.contains(&"127.0.0.1".parse().unwrap()));
    for own in &guard.policy().own {
        let error = guard.resolve(&TargetHost::Address(*own)).await.unwrap_err();
        assert_eq!(error, EgressError::Address { address: *own, why: AddressError::Own });
    }
}

#[tokio::test]
async fn allow_list_overrides_addresses_of_this_machine() {
    let guard = literal_guard(&["127.0.0.1/32"]);
    assert!(guard.resolve(&literal("127.0.0.1")).await.is_ok());
}

#[tokio::test]
async fn localhost_is_what_the_operator_allows_of_it() {
    for (allow, expected) in [
        (&["127.0.0.1/32"][..], &["127.0.0.1"][..]),
        (&["127.0.0.0/8", "::1/128"], &["127.0.0.1", "::1"]),
        (&["::1/128"], &["::1"]),
    ] {
        let guard = literal_guard(allow);
        let expected: Vec<IpAddr> = expected.iter().map(|address| address.parse().unwrap()).collect();
        for host in ["localhost", "LOCALHOST.", "app.localhost"] {
            assert_eq!(guard.resolve(&name(host)).await.as_ref(), Ok(&expected), "{host}");
        }
        assert_eq!(guard.resolve(&name("notlocalhost")).await, Err(EgressError::Name));
    }
}

#[tokio::test]
async fn connect_reaches_an_allowed_name() {
    let dns = TestDns::start(zone).await;
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
async fn connect_dials_nothing_for_a_name_with_a_refused_address() {
    let dns = TestDns::start(zone).await;
    let site = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = site.local_addr().unwrap().port();
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    assert!(guard.connect(&name("allowed-and-not.example"), port).await.unwrap_err().is_refused());
    // If the allowed address had been dialled, its connection would be accepted before this one.
    let allowed = name("allowed.example");
    let (near, far) = tokio::join!(guard.connect(&allowed, port), site.accept());
    assert_eq!(near.unwrap().local_addr().unwrap(), far.unwrap().1);
}

#[tokio::test]
async fn resolve_refuses_a_name_that_rebinds_to_a_private_address() {
    let flipped = AtomicBool::new(false);
    let dns = TestDns::start(move |_, kind| {
        let second = kind == RecordType::A && flipped.swap(true, Ordering::Relaxed);
        addresses(kind, if second { &["127.0.0.1"] } else { &["127.0.0.2"] })
    })
    .await;
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    assert!(guard.resolve(&name("rebind.example")).await.is_ok());
    assert_eq!(refused_address(guard.resolve(&name("rebind.example")).await), "127.0.0.1");
}

#[tokio::test]
async fn connect_refuses_a_port_before_any_lookup() {
    let dns = TestDns::start(zone).await;
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    for port in [0, 22, 25, 6379, 10080] {
        assert_eq!(guard.connect(&name("allowed.example"), port).await.unwrap_err(), EgressError::Port, "{port}");
    }
    assert_eq!(dns.queried_names(), Vec::<String>::new());
}

#[tokio::test]
async fn connect_reports_a_closed_port_as_connect_failed() {
    let closed = TcpListener::bind("127.0.0.2:0").await.unwrap().local_addr().unwrap().port();
    let outcome = literal_guard(&["127.0.0.2/32"]).connect(&literal("127.0.0.2"), closed).await;
    assert_eq!(outcome.unwrap_err(), EgressError::ConnectFailed(io::ErrorKind::ConnectionRefused));
}

#[tokio::test]
async fn connect_tries_the_next_address_after_a_failure() {
    let dns = TestDns::start(|_, kind| addresses(kind, &["127.0.0.3", "127.0.0.2"])).await;
    let site = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = site.local_addr().unwrap().port();
    let guard = guard(dns.address, &["127.0.0.2/31"]);
    let two = name("two.example");
    let (near, far) = tokio::join!(guard.connect(&two, port), site.accept());
    assert_eq!(near.unwrap().local_addr().unwrap(), far.unwrap().1);
}

#[test]
fn is_refused_is_true_only_for_refusals_of_the_guard() {
    let address = "10.0.0.1".parse().unwrap();
    let refused =
        [EgressError::Address { address, why: AddressError::NotGlobal }, EgressError::Name, EgressError::Port];
    let failed =
        [EgressError::Unresolved, EgressError::ConnectFailed(io::ErrorKind::ConnectionRefused), EgressError::TimedOut];
    assert!(refused.iter().all(EgressError::is_refused));
    assert!(!failed.iter().any(EgressError::is_refused));
    assert_eq!(refused.map(|error| error.reason()), ["address_not_global", "name", "port"]);
    assert_eq!(failed.map(|error| error.reason()), ["unresolved", "connect_failed", "timed_out"]);
}
