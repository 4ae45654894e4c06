use std::net::IpAddr;
use std::time::Instant;

use grabd_domain::address::Policy;
use grabd_egress::Options;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_util::task::TaskTracker;

use super::*;

const ALLOWED: &str = "127.0.0.2";

fn guard() -> Guard {
    let policy = Policy { allow: vec![format!("{ALLOWED}/32").parse().unwrap()], ..Policy::default() };
    Guard::new(Options { policy, ..Options::default() }).unwrap()
}

fn message() -> SignedMessage {
    let (id, signature, body) = ("msg_1".into(), "v1,a v1,b".into(), r#"{"é":1}"#.into());
    SignedMessage { id, seconds: 1_795_206_774, signature, body }
}

fn outgoing(extra_roots: &str) -> OutgoingClient {
    OutgoingClient::new(extra_roots.as_bytes()).unwrap()
}

#[tokio::test]
async fn root_file_without_certificates_is_an_error() {
    assert!(matches!(OutgoingClient::new(b"no pem"), Err(crate::outgoing::Error::Roots(_))));
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind((ALLOWED, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Reads one request with a body that ends in `}`.
async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut seen = Vec::new();
    while !seen.ends_with(b"}") {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "the request is incomplete");
        seen.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8(seen).unwrap()
}

/// Posts to a server that sends these bytes. Returns the outcome and the received request.
async fn post_plain(response: &'static str) -> (Result<EndpointResponse, RequestError>, String) {
    let (listener, port) = listen().await;
    let tasks = TaskTracker::new();
    let server = tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_request(&mut stream).await;
        stream.write_all(response.as_bytes()).await.unwrap();
        request
    });
    let url = TargetUrl::restore(&format!("http://{ALLOWED}:{port}/hooks/grabd?x=1#y")).unwrap();
    let outcome = post(&guard(), &outgoing(""), &url, message()).await;
    (outcome, server.await.unwrap())
}

#[tokio::test]
async fn request_matches_the_documentation() {
    let (outcome, request) = post_plain("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    assert_eq!(outcome.unwrap(), EndpointResponse { status: StatusCode::OK, retry_after: None });
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, r#"{"é":1}"#);
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("POST /hooks/grabd?x=1 HTTP/1.1"));
    let headers: Vec<_> = lines.map(str::to_ascii_lowercase).collect();
    for expected in [
        "content-type: application/json",
        "user-agent: grabd-webhooks/1.0",
        "webhook-id: msg_1",
        "webhook-timestamp: 1795206774",
        "webhook-signature: v1,a v1,b",
        "content-length: 8",
    ] {
        assert!(headers.iter().any(|line| line == expected), "{expected}: {headers:?}");
    }
    assert!(headers.iter().any(|line| line.starts_with("host: 127.0.0.2:")), "{headers:?}");
}

#[tokio::test]
async fn every_status_is_a_response_and_redirects_are_not_followed() {
    let (outcome, _) =
        post_plain("HTTP/1.1 307 Away\r\nLocation: http://127.0.0.2:1/\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(outcome.unwrap().status, 307);
    let (outcome, _) = post_plain("HTTP/1.1 503 Later\r\nRetry-After: 60\r\n\r\n").await;
    let retry_after = Some(HeaderValue::from_static("60"));
    assert_eq!(outcome.unwrap(), EndpointResponse { status: StatusCode::SERVICE_UNAVAILABLE, retry_after });
    // The body is incomplete, but the status was received.
    let (outcome, _) = post_plain("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nok").await;
    assert_eq!(outcome.unwrap().status, 200);
    let (outcome, _) = post_plain("SSH-2.0-OpenSSH_9.2\r\n").await;
    assert!(matches!(outcome, Err(RequestError::Http(_))), "{outcome:?}");
}

#[tokio::test]
async fn long_response_body_is_not_read_to_its_end() {
    let (listener, port) = listen().await;
    let tasks = TaskTracker::new();
    let server = tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n").await.unwrap();
        let mut sent = 0_u64;
        // Ends when the client closes the connection.
        while let Ok(written) = stream.write(&[b'x'; 16 << 10]).await {
            sent += written as u64;
        }
        sent
    });
    let url = TargetUrl::restore(&format!("http://{ALLOWED}:{port}/")).unwrap();
    let began = Instant::now();
    assert_eq!(post(&guard(), &outgoing(""), &url, message()).await.unwrap().status, 200);
    let sent = server.await.unwrap();
    // Includes the buffers of both sockets.
    assert!(sent < 32 << 20, "{sent} bytes were sent");
    assert!(began.elapsed() < ATTEMPT_TIMEOUT);
}

#[tokio::test]
async fn attempt_times_out_after_the_limit() {
    let (listener, port) = listen().await;
    let (connected, connection) = oneshot::channel();
    let tasks = TaskTracker::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        connected.send(stream).unwrap();
    });
    let url = TargetUrl::restore(&format!("http://{ALLOWED}:{port}/")).unwrap();
    let waiting = tasks.spawn(async move { post(&guard(), &outgoing(""), &url, message()).await });
    // The connection stays open. The paused clock advances once all tasks wait.
    let _open = connection.await.unwrap();
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    assert!(matches!(waiting.await.unwrap(), Err(RequestError::TimedOut(_))));
    assert!(began.elapsed() < ATTEMPT_TIMEOUT + Duration::from_secs(1));
}

#[tokio::test]
async fn guard_checks_the_address_at_the_attempt() {
    for url in ["http://127.0.0.3:8000/", "http://10.0.0.1/", "http://127.0.0.2:22/"] {
        let url = TargetUrl::restore(url).unwrap();
        let outcome = post(&guard(), &outgoing(""), &url, message()).await;
        assert!(
            matches!(&outcome, Err(RequestError::Connection(refusal)) if refusal.is_refused()),
            "{url}: {outcome:?}"
        );
    }
}

/// A certificate authority, and a server with a certificate of it for this name.
fn authority(name: &str) -> (String, ServerConfig) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&server_key, &issuer).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![server.der().clone()], PrivateKeyDer::try_from(server_key.serialize_der()).unwrap())
        .unwrap();
    (root, config)
}

async fn serve_tls(stream: TcpStream, config: ServerConfig) {
    let Ok(mut stream) = TlsAcceptor::from(Arc::new(config)).accept(stream).await else { return };
    read_request(&mut stream).await;
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    // The client may have disconnected already.
    drop(stream.shutdown().await);
}

#[tokio::test]
async fn tls_certificate_must_be_trusted_and_match_the_host() {
    let address: IpAddr = ALLOWED.parse().unwrap();
    let (root, good) = authority(ALLOWED);
    let (other_root, _) = authority(ALLOWED);
    let (wrong_root, wrong_name) = authority("127.0.0.9");
    for (config, roots, trusted) in [
        (good.clone(), root.as_str(), true),
        (good.clone(), "", false),
        (good, other_root.as_str(), false),
        (wrong_name, wrong_root.as_str(), false),
    ] {
        let (listener, port) = listen().await;
        let tasks = TaskTracker::new();
        tasks.spawn(async move { serve_tls(listener.accept().await.unwrap().0, config).await });
        let url = TargetUrl::restore(&format!("https://{address}:{port}/")).unwrap();
        match post(&guard(), &outgoing(roots), &url, message()).await {
            Ok(response) => assert_eq!((response.status, trusted), (StatusCode::NO_CONTENT, true)),
            Err(RequestError::Tls(error)) => assert!(!trusted, "{error}"),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        OutgoingClient::new(
            b"-----BEGIN CERTIFICATE-----
x
-----END CERTIFICATE-----
"
        )
        .is_err()
    );
}
