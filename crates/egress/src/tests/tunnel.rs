//! Tests of connections through a proxy: what is checked, and what the proxy is asked for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use grabd_domain::address::AddressError;
use grabd_domain::proxies::{ProxyLogin, ProxyProblem, ProxyRoute, ProxyUrl};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::dns::{TestDns, addresses};
use super::{guard, literal, literal_guard, name, zone};
use crate::{ClientTls, EgressError, EgressStream, Guard, Tunnel};

const ESTABLISHED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

/// The address of the server of the caller in these tests.
const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 99, 0, 1));

/// A proxy on 127.0.0.2 that gives the same answer to each request, and records the requests.
struct TestProxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    _server: JoinSet<()>,
}

impl TestProxy {
    async fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heads);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let mut open = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { break };
                    head.push(byte);
                }
                log.lock().unwrap().push(String::from_utf8(head).unwrap());
                stream.write_all(answer.as_bytes()).await.unwrap();
                open.push(stream);
            }
        });
        Self { address, heads, _server: server }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn route(url: &str) -> ProxyRoute {
    let login = Some(ProxyLogin { username: "me".into(), password: "secret".into() });
    ProxyRoute { name: "Office".into(), url: ProxyUrl::restore(url).unwrap(), login }
}

async fn connect(
    guard: &Guard,
    proxy: &str,
    own: IpAddr,
    (host, port): (&str, u16),
) -> Result<EgressStream, EgressError> {
    let (route, tls) = (route(proxy), ClientTls::default());
    let tunnel = Tunnel { route: &route, tls: &tls, own };
    let host = if host.parse::<IpAddr>().is_ok() { literal(host) } else { name(host) };
    tunnel.connect(guard, &host, port).await
}

#[tokio::test]
async fn proxy_is_asked_for_the_checked_address_and_not_for_the_name() {
    let (dns, proxy) = (TestDns::start(zone).await, TestProxy::start(ESTABLISHED).await);
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    connect(&guard, &proxy.url(), OWN, ("public.example", 443)).await.unwrap();
    let heads = proxy.heads();
    assert!(heads[0].starts_with("CONNECT 93.184.216.34:443 HTTP/1.1\r\n"), "{heads:?}");
    assert!(
        heads[0].contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n") && !heads[0].contains("example"),
        "{heads:?}"
    );
}

#[tokio::test]
async fn target_that_is_not_public_is_refused_before_the_proxy_is_asked() {
    let (dns, proxy) = (TestDns::start(zone).await, TestProxy::start(ESTABLISHED).await);
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    for (host, port) in [
        ("10.0.0.1", 443),
        ("169.254.169.254", 80),
        ("::1", 443),
        ("localhost", 80),
        ("private.example", 443),
        ("mixed.example", 443),
        ("mixed-families.example", 443),
        ("public.example", 25),
    ] {
        let refused = connect(&guard, &proxy.url(), OWN, (host, port)).await.unwrap_err();
        assert!(refused.is_refused(), "{host}: {refused:?}");
    }
    let missing = connect(&guard, &proxy.url(), OWN, ("missing.example", 443)).await.unwrap_err();
    assert_eq!(missing, EgressError::Unresolved);
    assert_eq!(proxy.heads(), [] as [String; 0]);
}

#[tokio::test]
async fn address_of_the_proxy_is_checked_like_that_of_a_page() {
    let guard = literal_guard(&["127.0.0.2/32"]);
    let listener = TcpListener::bind("127.0.0.3:0").await.unwrap();
    let refused = format!("http://{}", listener.local_addr().unwrap());
    for proxy in [&*refused, "http://10.0.0.1:3128", "socks5://169.254.169.254:1080", "https://[::1]:443"] {
        let outcome = connect(&guard, proxy, OWN, ("93.184.216.34", 443)).await.unwrap_err();
        assert_eq!(outcome, EgressError::Proxy(ProxyProblem::NotPublic), "{proxy}");
    }
    // The caller's own server is none, even if the operator allows its address.
    let own = TestProxy::start(ESTABLISHED).await;
    let outcome = connect(&guard, &own.url(), own.address.ip(), ("93.184.216.34", 443)).await.unwrap_err();
    assert_eq!(outcome, EgressError::Proxy(ProxyProblem::NotPublic));
    // Neither is it a target.
    let guard = literal_guard(&["127.0.0.2/31"]);
    let server: IpAddr = "127.0.0.3".parse().unwrap();
    let outcome = connect(&guard, &own.url(), server, ("127.0.0.3", 443)).await.unwrap_err();
    assert_eq!(outcome, EgressError::Address { address: server, why: AddressError::Own });
    assert_eq!(own.heads(), [] as [String; 0]);
}

#[tokio::test]
async fn name_of_the_proxy_is_resolved_and_checked_at_each_connection() {
    let is_rebound = Arc::new(AtomicBool::new(false));
    let rebound = Arc::clone(&is_rebound);
    let dns = TestDns::start(move |name, kind| match name {
        "proxy.example." if rebound.load(Ordering::SeqCst) => addresses(kind, &["127.0.0.3"]),
        "proxy.example." => addresses(kind, &["127.0.0.2"]),
        _ => zone(name, kind),
    })
    .await;
    let proxy = TestProxy::start(ESTABLISHED).await;
    let guard = guard(dns.address, &["127.0.0.2/32"]);
    let url = format!("http://proxy.example:{}", proxy.address.port());
    connect(&guard, &url, OWN, ("93.184.216.34", 443)).await.unwrap();
    is_rebound.store(true, Ordering::SeqCst);
    let outcome = connect(&guard, &url, OWN, ("93.184.216.34", 443)).await.unwrap_err();
    assert_eq!(outcome, EgressError::Proxy(ProxyProblem::NotPublic));
    assert_eq!(proxy.heads().len(), 1);
}

#[tokio::test]
async fn each_failure_of_the_proxy_has_its_problem() {
    let guard = literal_guard(&["127.0.0.2/32"]);
    for (answer, problem) in [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", ProxyProblem::Login),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", ProxyProblem::Refused),
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", ProxyProblem::SiteUnreached),
        ("220 mail.example.com ESMTP\r\n", ProxyProblem::NotAProxy),
    ] {
        let proxy = TestProxy::start(answer).await;
        let outcome = connect(&guard, &proxy.url(), OWN, ("93.184.216.34", 443)).await.unwrap_err();
        assert_eq!(outcome, EgressError::Proxy(problem), "{answer}");
    }
    let closed = TcpListener::bind("127.0.0.2:0").await.unwrap().local_addr().unwrap();
    let outcome = connect(&guard, &format!("http://{closed}"), OWN, ("93.184.216.34", 443)).await.unwrap_err();
    assert_eq!(outcome, EgressError::Proxy(ProxyProblem::Unreachable));
    // It speaks no TLS.
    let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let plain = format!("https://{}", listener.local_addr().unwrap());
    let answer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream
    };
    let (outcome, _stream) = tokio::join!(connect(&guard, &plain, OWN, ("93.184.216.34", 443)), answer);
    assert_eq!(outcome.unwrap_err(), EgressError::Proxy(ProxyProblem::Tls));
}

#[tokio::test]
async fn proxy_that_does_not_end_its_answer_is_given_up() {
    let guard = literal_guard(&["127.0.0.2/32"]);
    for part in ["", "HTTP/1.1 200 OK\r\nX: "] {
        let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_u8().await.unwrap();
            stream.write_all(part.as_bytes()).await.unwrap();
            // From here on, only the time limit can end the connection, and the clock goes there at once.
            tokio::time::pause();
            stream
        };
        let (outcome, _stream) = tokio::join!(connect(&guard, &url, OWN, ("93.184.216.34", 443)), served);
        assert_eq!(outcome.unwrap_err(), EgressError::Proxy(ProxyProblem::TimedOut), "{part}");
        tokio::time::resume();
    }
}
