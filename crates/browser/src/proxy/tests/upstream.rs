//! Connections through a proxy of the team, which is for one grab only.

use std::sync::Arc;

use grabd_domain::proxies::{ProxyLogin, ProxyProblem, ProxyRoute, ProxyUrl};
use grabd_egress::ClientTls;
use tokio::io::copy_bidirectional;

use super::*;

/// An HTTP proxy on 127.0.0.3 that records what it is asked for, and connects to it unless it has another answer.
struct Upstream {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    _server: JoinSet<()>,
}

impl Upstream {
    async fn start(answer: Option<&'static str>) -> Self {
        let socket = TcpListener::bind("127.0.0.3:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heads);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (mut client, _) = socket.accept().await.unwrap();
                let log = Arc::clone(&log);
                connections.spawn(async move {
                    let Some(request) = head(&mut client).await else { return };
                    let target = request.split(' ').nth(1).unwrap().to_owned();
                    log.lock().unwrap().push(request);
                    if let Some(answer) = answer {
                        // The listener may have closed the connection.
                        let _ = client.write_all(answer.as_bytes()).await;
                        return;
                    }
                    let mut origin = TcpStream::connect(target).await.unwrap();
                    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                    // Either side may close the connection.
                    let _ = copy_bidirectional(&mut client, &mut origin).await;
                });
            }
        });
        Self { address, heads, _server: server }
    }

    fn route(&self) -> Arc<ProxyRoute> {
        let login = Some(ProxyLogin { username: "me".into(), password: "secret".into() });
        let url = ProxyUrl::restore(&format!("http://{}", self.address)).unwrap();
        Arc::new(ProxyRoute { name: "Office".into(), url, login })
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// The proxy in front of a browser that may reach 127.0.0.2 and 127.0.0.3.
fn two() -> Proxy {
    proxy_allowing("127.0.0.2/31", Limits::default())
}

async fn listener_through(proxy: &Proxy, upstream: &Upstream) -> Listener {
    let listener = proxy.open().await.unwrap();
    listener.set_upstream(upstream.route(), ClientTls::default());
    listener
}

#[tokio::test]
async fn http_and_tunnels_go_through_the_proxy_of_the_grab_and_no_other_does() {
    let (proxy, upstream, origin) = (two(), Upstream::start(None).await, Origin::hello().await);
    let listener = listener_through(&proxy, &upstream).await;
    let at = origin.address;
    let plain = format!("GET http://{at}/ HTTP/1.1\r\nConnection: close\r\n\r\n");
    let mut client = browser(&listener).await;
    client.write_all(plain.as_bytes()).await.unwrap();
    assert!(head(&mut client).await.unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(read_exactly(&mut client, 5).await, "hello");
    let mut tunnel = browser(&listener).await;
    tunnel.write_all(format!("CONNECT {at} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    assert!(head(&mut tunnel).await.unwrap().starts_with("HTTP/1.1 200"));
    tunnel.write_all(b"GET /in-a-tunnel HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(head(&mut tunnel).await.unwrap().starts_with("HTTP/1.1 200"));
    let heads = upstream.heads();
    assert_eq!(heads.len(), 2, "{heads:?}");
    for head in &heads {
        assert!(head.starts_with(&format!("CONNECT {at} HTTP/1.1\r\n")), "{head}");
        assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");
    }
    let requests = origin.recorded().requests;
    assert!(requests.iter().all(|request| !request.contains("Basic")), "{requests:?}");
    assert_eq!(listener.upstream_problem(), None);

    // The next grab has none, and the other one is still running.
    let next = proxy.open().await.unwrap();
    let mut client = browser(&next).await;
    client.write_all(plain.as_bytes()).await.unwrap();
    assert!(head(&mut client).await.unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(upstream.heads().len(), 2);
    assert!(next.upstream().is_none());
}

#[tokio::test]
async fn private_targets_are_refused_before_the_proxy_is_asked() {
    let (proxy, upstream) = (two(), Upstream::start(None).await);
    let listener = listener_through(&proxy, &upstream).await;
    for target in ["10.0.0.1:443", "169.254.169.254:80", "127.0.0.4:443", "127.99.0.1:443", "localhost:443"] {
        let answer = exchange(&listener, &format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{target}: {answer}");
    }
    assert_eq!(upstream.heads(), [] as [String; 0]);
    assert!(listener.was_refused("10.0.0.1", 443));
    assert_eq!(listener.upstream_problem(), None, "the proxy was not asked");
}

#[tokio::test]
async fn answer_of_the_proxy_does_not_reach_the_browser() {
    let answer = "HTTP/1.1 407 Secret\r\nProxy-Authenticate: Basic realm=secret\r\nContent-Length: 6\r\n\r\nsecret";
    let (proxy, upstream) = (two(), Upstream::start(Some(answer)).await);
    let listener = listener_through(&proxy, &upstream).await;
    let seen = exchange(&listener, "CONNECT 127.0.0.2:443 HTTP/1.1\r\n\r\n").await;
    assert!(seen.starts_with("HTTP/1.1 502") && !seen.to_lowercase().contains("secret"), "{seen}");
    assert_eq!(exchange(&listener, "GET http://127.0.0.2:8080/ HTTP/1.1\r\n\r\n").await, "");
    assert_eq!(listener.upstream_problem(), Some(ProxyProblem::Login));
    assert_eq!(listener.refused_count(), 0);
}

#[tokio::test]
async fn problem_of_the_proxy_is_forgotten_when_it_works_again() {
    let (proxy, origin) = (two(), Origin::hello().await);
    // A refused site is no problem of the proxy itself.
    let upstream = Upstream::start(Some("HTTP/1.1 403 Forbidden\r\n\r\n")).await;
    let listener = listener_through(&proxy, &upstream).await;
    exchange(&listener, "CONNECT 127.0.0.2:443 HTTP/1.1\r\n\r\n").await;
    assert_eq!(listener.upstream_problem(), None);

    let address = TcpListener::bind("127.0.0.3:0").await.unwrap().local_addr().unwrap();
    let listener = proxy.open().await.unwrap();
    let url = ProxyUrl::restore(&format!("http://{address}")).unwrap();
    listener.set_upstream(Arc::new(ProxyRoute { name: "Gone".into(), url, login: None }), ClientTls::default());
    let request = format!("CONNECT {} HTTP/1.1\r\n\r\n", origin.address);
    assert!(exchange(&listener, &request).await.starts_with("HTTP/1.1 502"));
    assert_eq!(listener.upstream_problem(), Some(ProxyProblem::Unreachable));
    let socket = TcpListener::bind(address).await.unwrap();
    let answer = async {
        let (mut stream, _) = socket.accept().await.unwrap();
        head(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        stream
    };
    let mut client = browser(&listener).await;
    client.write_all(request.as_bytes()).await.unwrap();
    let (_stream, answered) = tokio::join!(answer, head(&mut client));
    assert!(answered.unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(listener.upstream_problem(), None);
}

#[tokio::test]
async fn site_that_a_working_proxy_refuses_is_no_problem_of_the_proxy() {
    let proxy = two();
    let socket = TcpListener::bind("127.0.0.3:0").await.unwrap();
    let url = ProxyUrl::restore(&format!("http://{}", socket.local_addr().unwrap())).unwrap();
    let listener = proxy.open().await.unwrap();
    listener.set_upstream(Arc::new(ProxyRoute { name: "Office".into(), url, login: None }), ClientTls::default());
    for (answer, problem) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", Some(ProxyProblem::NotAProxy)),
        ("HTTP/1.1 200 OK\r\n\r\n", None),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", None),
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", Some(ProxyProblem::Login)),
    ] {
        let served = async {
            let (mut stream, _) = socket.accept().await.unwrap();
            head(&mut stream).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream
        };
        let mut client = browser(&listener).await;
        client.write_all(b"CONNECT 127.0.0.2:443 HTTP/1.1\r\n\r\n").await.unwrap();
        let (_stream, answered) = tokio::join!(served, head(&mut client));
        assert!(answered.is_some(), "{answer}");
        assert_eq!(listener.upstream_problem(), problem, "{answer}");
    }
}
