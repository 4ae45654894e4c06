//! Apps that describe themselves, at an address that this service fetches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use grabd_engine::oauth::{Asked, Refusal, check_request};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::house::{ALLOWED, House, REDIRECT, Wishes, but, exchange, refresh, request};

/// A site that an app describes itself at.
struct Site {
    url: String,
    root: String,
    asked: Arc<AtomicU32>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Site {
    /// Answers every request with what `answer` makes of the document's address.
    async fn new(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let (root, config) = authority();
        let listener = TcpListener::bind((ALLOWED, 0)).await.unwrap();
        let url = format!("https://{}/client.json", listener.local_addr().unwrap());
        let (asked, tasks, stop) = (Arc::<AtomicU32>::default(), TaskTracker::new(), CancellationToken::new());
        let site = Self { url: url.clone(), root, asked: Arc::clone(&asked), tasks, stop: stop.clone() };
        let acceptor = TlsAcceptor::from(Arc::new(config));
        site.tasks.spawn(async move {
            loop {
                let (stream, _) = tokio::select! {
                    () = stop.cancelled() => return,
                    accepted = listener.accept() => accepted.unwrap(),
                };
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut seen = Vec::new();
                while !seen.ends_with(b"\r\n\r\n") {
                    let mut buffer = [0; 4096];
                    let read = stream.read(&mut buffer).await.unwrap();
                    assert_ne!(read, 0, "the request broke off");
                    seen.extend_from_slice(&buffer[..read]);
                }
                let head = String::from_utf8(seen).unwrap().to_ascii_lowercase();
                assert!(head.starts_with("get /client.json http/1.1\r\n"), "{head}");
                assert!(head.contains("accept: application/json"), "{head}");
                assert!(!head.contains("authorization") && !head.contains("cookie"), "{head}");
                asked.fetch_add(1, Ordering::SeqCst);
                // Whoever asked may have had enough.
                drop(stream.write_all(answer(&url).as_bytes()).await);
                drop(stream.shutdown().await);
            }
        });
        site
    }

    async fn house(&self) -> House {
        House::with(Wishes { roots: self.root.clone(), ..Wishes::default() }).await
    }

    fn times(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }

    async fn end(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn authority() -> (String, ServerConfig) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![ALLOWED.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    (root, config)
}

fn document(url: &str) -> Value {
    json!({ "client_id": url, "client_name": "A well-known app", "redirect_uris": [REDIRECT, "http://127.0.0.1/cb"] })
}

fn ok(header: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{header}content-length: {length}\r\n\r\n{body}")
}

async fn ask(house: &House, client: &str) -> Result<Asked, Refusal> {
    check_request(&house.core, &request(client)).await
}

async fn refused(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> String {
    let site = Site::new(answer).await;
    let house = site.house().await;
    let mut texts = Vec::new();
    for _ in 0..2 {
        match ask(&house, &site.url).await {
            Err(Refusal::Page(text)) => texts.push(text),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(site.times(), 2, "a failure is not remembered");
    house.end().await;
    site.end().await;
    texts.swap_remove(0)
}

#[tokio::test]
async fn an_app_is_what_its_document_says_and_needs_no_registration() {
    let site = Site::new(|url| ok("", &document(url).to_string())).await;
    let house = site.house().await;
    let asked = ask(&house, &site.url).await.unwrap();
    assert_eq!((asked.client_name.as_str(), asked.client_host.as_deref()), ("A well-known app", Some(ALLOWED)));
    let loopback = but(request(&site.url), "redirect_uri", Some("http://127.0.0.1:5555/cb"));
    assert!(check_request(&house.core, &loopback).await.unwrap().is_loopback);
    let foreign = but(request(&site.url), "redirect_uri", Some("https://evil.example/cb"));
    assert!(matches!(check_request(&house.core, &foreign).await, Err(Refusal::Page(_))));

    // It is a public app; once it is allowed, its document need not be there.
    let tokens = house.connect(&site.url).await;
    let seen = site.times();
    assert_eq!(seen, 1);
    house.advance(Duration::from_secs(24 * 60 * 60));
    house.token(&refresh(&site.url, &tokens.refresh)).await.unwrap();
    let secret = format!("gcs_{}", "x".repeat(43));
    let with_secret = crate::house::and(exchange(&site.url, "gac_x"), "client_secret", &secret);
    assert_eq!(house.token(&with_secret).await.unwrap_err().error, "invalid_client");
    assert_eq!(site.times(), seen);
    house.end().await;
    site.end().await;
}

#[tokio::test]
async fn a_document_is_remembered_within_what_its_server_says_and_our_bounds() {
    for (header, life_s) in [
        ("", 5 * 60),
        ("cache-control: max-age=1\r\n", 5 * 60),
        ("cache-control: no-store, max-age=7200\r\n", 5 * 60),
        ("cache-control: public, Max-Age=7200\r\n", 2 * 60 * 60),
        ("cache-control: max-age=31536000\r\n", 24 * 60 * 60),
    ] {
        let site = Site::new(move |url| ok(header, &document(url).to_string())).await;
        let house = site.house().await;
        ask(&house, &site.url).await.unwrap();
        house.advance(Duration::from_secs(life_s) - Duration::from_millis(1));
        ask(&house, &site.url).await.unwrap();
        assert_eq!(site.times(), 1, "{header}");
        house.advance(Duration::from_millis(1));
        ask(&house, &site.url).await.unwrap();
        assert_eq!(site.times(), 2, "{header}");
        house.end().await;
        site.end().await;
    }
}

#[tokio::test]
async fn what_is_no_proper_document_is_told_and_not_remembered() {
    type Answer = Box<dyn Fn(&str) -> String + Send + Sync>;
    let changed = |name: &'static str, value: Value| -> Answer {
        Box::new(move |url| {
            let mut document = document(url);
            document[name] = value.clone();
            ok("", &document.to_string())
        })
    };
    let cases: Vec<(Answer, &str)> = vec![
        (changed("client_id", json!("https://127.0.0.2/client.json")), "client_id"),
        (changed("client_id", Value::Null), "JSON"),
        (changed("redirect_uris", json!(["http://app.example/"])), "redirect_uris"),
        (changed("redirect_uris", json!([])), "redirect_uris"),
        (changed("redirect_uris", json!("x")), "JSON"),
        (changed("client_name", json!("x".repeat(101))), "client_name"),
        (changed("client_secret", json!("x")), "client_secret"),
        (changed("padding", json!("x".repeat(5 << 10))), "bytes"),
        (Box::new(|url| ok("", &document(&format!("{url}/")).to_string())), "client_id"),
        (Box::new(|_| ok("", "hello")), "JSON"),
        (Box::new(|url| ok("", &document(url).to_string()).replace("application/json", "text/html")), "type"),
        (Box::new(|url| ok("", &document(url).to_string()).replace("200 OK", "203 Perhaps")), "203"),
        (Box::new(|url| format!("HTTP/1.1 302 Found\r\nlocation: {url}\r\ncontent-length: 0\r\n\r\n")), "302"),
        (Box::new(|_| "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned()), "404"),
        (Box::new(|_| ok("", "{").replace("content-length: 1", "content-length: 2")), "breaks off"),
        (Box::new(|_| "SSH-2.0-OpenSSH_9.2\r\n".to_owned()), "fetched"),
    ];
    for (answer, told) in cases {
        let text = refused(answer).await;
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[tokio::test]
async fn the_guard_and_tls_decide_where_documents_are_fetched() {
    let house = House::new().await;
    for client in [
        "https://127.0.0.1/client.json",
        "https://10.0.0.1/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/client.json",
        "https://[::1]/client.json",
    ] {
        let refused = ask(&house, client).await;
        assert!(matches!(&refused, Err(Refusal::Page(text)) if text.contains("fetched")), "{client}: {refused:?}");
    }
    // Nobody vouches for this one.
    let site = Site::new(|url| ok("", &document(url).to_string())).await;
    assert!(matches!(ask(&house, &site.url).await, Err(Refusal::Page(_))));
    assert_eq!(site.times(), 0);
    house.end().await;
    site.end().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_waited_for_three_seconds() {
    let listener = TcpListener::bind((ALLOWED, 0)).await.unwrap();
    let house = House::new().await;
    let client = format!("https://{}/client.json", listener.local_addr().unwrap());
    let began = std::time::Instant::now();
    let refused = ask(&house, &client).await;
    assert!(matches!(&refused, Err(Refusal::Page(text)) if text.contains("fetched")), "{refused:?}");
    let took = began.elapsed();
    assert!((Duration::from_secs(3)..Duration::from_secs(10)).contains(&took), "{took:?}");
    house.end().await;
}
