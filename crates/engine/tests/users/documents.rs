//! Client ID Metadata Documents, fetched from a test server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use grabd_engine::oauth::{AuthorizationError, AuthorizationRequest, check_request};
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

use crate::test_core::{ALLOWED, REDIRECT, TestCore, TestOptions, exchange, refresh, request, set_field};

/// An HTTPS server with the metadata document of an app.
struct Site {
    url: String,
    root: String,
    requests: Arc<AtomicU32>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Site {
    /// Starts a server that sends the result of `respond`, called with the document's URL.
    async fn new(respond: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let (root, config) = authority();
        let listener = TcpListener::bind((ALLOWED, 0)).await.unwrap();
        let url = format!("https://{}/client.json", listener.local_addr().unwrap());
        let (requests, tasks, stop) = (Arc::<AtomicU32>::default(), TaskTracker::new(), CancellationToken::new());
        let site = Self { url: url.clone(), root, requests: Arc::clone(&requests), tasks, stop: stop.clone() };
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
                    assert_ne!(read, 0, "the request is truncated");
                    seen.extend_from_slice(&buffer[..read]);
                }
                let head = String::from_utf8(seen).unwrap().to_ascii_lowercase();
                assert!(head.starts_with("get /client.json http/1.1\r\n"), "{head}");
                assert!(head.contains("accept: application/json"), "{head}");
                assert!(!head.contains("authorization") && !head.contains("cookie"), "{head}");
                requests.fetch_add(1, Ordering::SeqCst);
                // The client may have closed the connection.
                drop(stream.write_all(respond(&url).as_bytes()).await);
                drop(stream.shutdown().await);
            }
        });
        site
    }

    /// A core that trusts the certificate of this server.
    async fn core(&self) -> TestCore {
        TestCore::with(TestOptions { roots: self.root.clone(), ..TestOptions::default() }).await
    }

    fn request_count(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
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

async fn check(test: &TestCore, client: &str) -> Result<AuthorizationRequest, AuthorizationError> {
    check_request(&test.core, &request(client)).await
}

async fn refusal(respond: impl Fn(&str) -> String + Send + Sync + 'static) -> String {
    let site = Site::new(respond).await;
    let test = site.core().await;
    let mut texts = Vec::new();
    for _ in 0..2 {
        match check(&test, &site.url).await {
            Err(AuthorizationError::Page(text)) => texts.push(text),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(site.request_count(), 2, "failures are not cached");
    test.end().await;
    site.end().await;
    texts.swap_remove(0)
}

#[tokio::test]
async fn document_describes_an_unregistered_public_client() {
    let site = Site::new(|url| ok("", &document(url).to_string())).await;
    let test = site.core().await;
    let checked = check(&test, &site.url).await.unwrap();
    assert_eq!((checked.client_name.as_str(), checked.client_host.as_deref()), ("A well-known app", Some(ALLOWED)));
    let loopback = set_field(request(&site.url), "redirect_uri", Some("http://127.0.0.1:5555/cb"));
    assert!(check_request(&test.core, &loopback).await.unwrap().is_loopback);
    let foreign = set_field(request(&site.url), "redirect_uri", Some("https://evil.example/cb"));
    assert!(matches!(check_request(&test.core, &foreign).await, Err(AuthorizationError::Page(_))));

    // The client is public, and its document is not needed to use a grant.
    let tokens = test.connect(&site.url).await;
    let seen = site.request_count();
    assert_eq!(seen, 1);
    test.advance(Duration::from_secs(24 * 60 * 60));
    test.token(&refresh(&site.url, &tokens.refresh)).await.unwrap();
    let secret = format!("gcs_{}", "x".repeat(43));
    let with_secret = crate::test_core::add_field(exchange(&site.url, "gac_x"), "client_secret", &secret);
    assert_eq!(test.token(&with_secret).await.unwrap_err().error, "invalid_client");
    assert_eq!(site.request_count(), seen);
    test.end().await;
    site.end().await;
}

#[tokio::test]
async fn document_is_cached_for_max_age_within_bounds() {
    for (header, life_s) in [
        ("", 5 * 60),
        ("cache-control: max-age=1\r\n", 5 * 60),
        ("cache-control: no-store, max-age=7200\r\n", 5 * 60),
        ("cache-control: public, Max-Age=7200\r\n", 2 * 60 * 60),
        ("cache-control: max-age=31536000\r\n", 24 * 60 * 60),
    ] {
        let site = Site::new(move |url| ok(header, &document(url).to_string())).await;
        let test = site.core().await;
        check(&test, &site.url).await.unwrap();
        test.advance(Duration::from_secs(life_s) - Duration::from_millis(1));
        check(&test, &site.url).await.unwrap();
        assert_eq!(site.request_count(), 1, "{header}");
        test.advance(Duration::from_millis(1));
        check(&test, &site.url).await.unwrap();
        assert_eq!(site.request_count(), 2, "{header}");
        test.end().await;
        site.end().await;
    }
}

#[tokio::test]
async fn invalid_document_is_refused_and_not_cached() {
    type Respond = Box<dyn Fn(&str) -> String + Send + Sync>;
    let changed = |name: &'static str, value: Value| -> Respond {
        Box::new(move |url| {
            let mut document = document(url);
            document[name] = value.clone();
            ok("", &document.to_string())
        })
    };
    let cases: Vec<(Respond, &str)> = vec![
        (changed("client_id", json!("https://127.0.0.2/client.json")), "client_id"),
        (changed("client_id", Value::Null), "JSON"),
        (changed("redirect_uris", json!(["http://app.example/"])), "redirect_uris"),
        (changed("redirect_uris", json!([])), "redirect_uris"),
        (changed("redirect_uris", json!("x")), "JSON"),
        (changed("client_name", json!("x".repeat(101))), "client_name"),
        (changed("client_secret", json!("x")), "client_secret"),
        (changed("token_endpoint_auth_method", json!("client_secret_basic")), "invalid_client_metadata"),
        (changed("token_endpoint_auth_method", json!("client_secret_post")), "must be none"),
        (changed("token_endpoint_auth_method", json!("client_secret_jwt")), "must be none"),
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
    for (respond, expected) in cases {
        let text = refusal(respond).await;
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[tokio::test]
async fn guard_and_tls_refuse_addresses_and_certificates() {
    let test = TestCore::new().await;
    for client in [
        "https://127.0.0.1/client.json",
        "https://10.0.0.1/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/client.json",
        "https://[::1]/client.json",
    ] {
        let refused = check(&test, client).await;
        assert!(
            matches!(&refused, Err(AuthorizationError::Page(text)) if text.contains("fetched")),
            "{client}: {refused:?}"
        );
    }
    // The certificate is not trusted.
    let site = Site::new(|url| ok("", &document(url).to_string())).await;
    assert!(matches!(check(&test, &site.url).await, Err(AuthorizationError::Page(_))));
    assert_eq!(site.request_count(), 0);
    test.end().await;
    site.end().await;
}

#[tokio::test]
async fn fetch_times_out_after_three_seconds() {
    let listener = TcpListener::bind((ALLOWED, 0)).await.unwrap();
    let test = TestCore::new().await;
    let client = format!("https://{}/client.json", listener.local_addr().unwrap());
    let started = std::time::Instant::now();
    let refused = check(&test, &client).await;
    assert!(matches!(&refused, Err(AuthorizationError::Page(text)) if text.contains("fetched")), "{refused:?}");
    let elapsed = started.elapsed();
    assert!((Duration::from_secs(3)..Duration::from_secs(10)).contains(&elapsed), "{elapsed:?}");
    test.end().await;
}
