//! A service that names itself to sites: requests for documents are signed, and sites find the public keys.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use grabd_engine::clock::Clock;
use grabd_engine::identity;
use grabd_engine::vault::Vault;
use grabd_tests::harness::{ALLOWED, TestApp};
use reqwest::Response;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

/// Upper limit of every wait.
const LIMIT: Duration = Duration::from_secs(10);

const DIRECTORY: &str = "/.well-known/http-message-signatures-directory";

const SIGNED: [(&str, &str); 2] =
    [("browser.identity", "signed"), ("browser.identity_url", "https://grabs.example.com")];

/// A site that reports the head of each request for its page.
async fn start_site() -> Result<(SocketAddr, mpsc::UnboundedReceiver<String>)> {
    let listener = TcpListener::bind((ALLOWED, 0)).await?;
    let address = listener.local_addr()?;
    let (sender, heads) = mpsc::unbounded_channel();
    // Ends with the test's runtime.
    TaskTracker::new().spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 16_384];
            let Ok(length) = stream.read(&mut head).await else { continue };
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            if head.starts_with("GET / ") && sender.send(head).is_err() {
                return;
            }
            let answer =
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\nConnection: close\r\n\r\n<p>ok";
            // The browser may have closed the connection.
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    Ok((address, heads))
}

fn field(head: &str, name: &str) -> Result<String> {
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let found = fields.find(|(of, _)| of.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().to_owned()).with_context(|| format!("no {name}: {head}"))
}

fn header(response: &Response, name: &str) -> Result<String> {
    Ok(response.headers().get(name).with_context(|| format!("no {name}"))?.to_str()?.to_owned())
}

/// Checks the member of a label of a signature, for a text whose last line are the parameters.
fn verify(key: &Value, label: &str, lines: &str, input: &str, signature: &str) -> Result<()> {
    let member = |value: &str, end: &str| -> Result<String> {
        let start = value.find(&format!("{label}=")).with_context(|| format!("no {label}: {value}"))?;
        let rest = &value[start + label.len() + 1..];
        Ok(rest.split(end).next().unwrap_or_default().to_owned())
    };
    let (covered, sent) = (member(input, ", ")?, member(signature, ", ")?);
    let sent = sent.strip_prefix(':').and_then(|sent| sent.strip_suffix(':')).context("no byte sequence")?;
    let x = URL_SAFE_NO_PAD.decode(key["x"].as_str().context("x")?)?;
    let kid = key["kid"].as_str().context("kid")?;
    ensure!(covered.contains(&format!("keyid=\"{kid}\"")), "{covered}");
    let base = format!("{lines}\"@signature-params\": {covered}");
    let verified = UnparsedPublicKey::new(&ED25519, x).verify(base.as_bytes(), &STANDARD.decode(sent)?);
    ensure!(verified.is_ok(), "the signature is not valid: {base}");
    Ok(())
}

/// The keys of the directory, whose signatures are checked.
async fn published(app: &TestApp) -> Result<Vec<Value>> {
    let response = app.client.get(format!("{}{DIRECTORY}", app.service.public_url())).send().await?;
    ensure!(response.status().as_u16() == 200, "{response:?}");
    ensure!(header(&response, "content-type")? == "application/http-message-signatures-directory+json");
    ensure!(header(&response, "cache-control")? == "public, max-age=3600");
    ensure!(header(&response, "access-control-allow-origin")? == "*");
    let (digest, input) = (header(&response, "content-digest")?, header(&response, "signature-input")?);
    let signature = header(&response, "signature")?;
    let body = response.bytes().await?;
    ensure!(digest == format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(&body))), "{digest}");
    let keys = serde_json::from_slice::<Value>(&body)?["keys"].as_array().context("keys")?.clone();
    let lines = format!("\"@authority\";req: grabs.example.com\n\"content-digest\": {digest}\n");
    for (at, key) in keys.iter().enumerate() {
        ensure!(key.as_object().is_some_and(|key| !key.contains_key("d")), "{key}");
        verify(key, &format!("key{at}"), &lines, &input, &signature)?;
    }
    ensure!(input.contains("tag=\"http-message-signatures-directory\""), "{input}");
    Ok(keys)
}

#[tokio::test(flavor = "multi_thread")]
async fn site_verifies_a_capture_with_the_published_key() -> Result<()> {
    let app = TestApp::start(9, &SIGNED).await?;
    let (site, mut heads) = start_site().await?;
    let (status, grab) = app.create(json!({ "url": format!("http://{site}/") })).await?;
    ensure!(status == 200, "{grab}");
    let head = tokio::time::timeout(LIMIT, heads.recv()).await?.context("no request")?;
    let keys = published(&app).await?;
    ensure!(keys.len() == 1, "{keys:?}");
    ensure!(field(&head, "signature-agent")? == "sig1=\"https://grabs.example.com\"", "{head}");
    let lines = format!("\"@authority\": {site}\n\"signature-agent\";key=\"sig1\": \"https://grabs.example.com\"\n");
    let (input, signature) = (field(&head, "signature-input")?, field(&head, "signature")?);
    verify(&keys[0], "sig1", &lines, &input, &signature)?;

    // The key stays the same after a restart.
    let app = app.restart().await?;
    ensure!(published(&app).await? == keys);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_rotation_are_published_together_and_only_public_parts_are() -> Result<()> {
    let app = TestApp::start_without_browser(0, &SIGNED).await?;
    let first = published(&app).await?;
    let vault = Vault::open(&app.data_dir().join("secrets.key"))?;
    identity::rotate(app.service.store(), &vault, Clock::system().now(), false).await?;
    // The service reads the keys again within a second.
    let both = async {
        loop {
            let keys = published(&app).await?;
            if keys.len() == 2 {
                return anyhow::Ok(keys);
            }
        }
    };
    let keys = tokio::time::timeout(LIMIT, both).await??;
    ensure!(keys[0] == first[0] && keys[1] != first[0], "{keys:?}");
    let used = app.service.core().signing_identity().context("a key")?;
    ensure!(first[0]["kid"] == used.key.id(), "the former key is used until others know the new one");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_signed_or_published_by_default() -> Result<()> {
    let app = TestApp::start(9, &[]).await?;
    let (site, mut heads) = start_site().await?;
    let (status, grab) = app.create(json!({ "url": format!("http://{site}/") })).await?;
    ensure!(status == 200, "{grab}");
    let head = tokio::time::timeout(LIMIT, heads.recv()).await?.context("no request")?;
    ensure!(!head.to_ascii_lowercase().contains("signature"), "{head}");
    let response = app.client.get(format!("{}{DIRECTORY}", app.service.public_url())).send().await?;
    ensure!(response.status().as_u16() == 404, "{response:?}");
    app.finish().await
}

/// Whether the service signs requests or not: a request that worked yesterday must not become a forgery when it begins to.
#[tokio::test(flavor = "multi_thread")]
async fn callers_cannot_set_the_fields_of_the_signature() -> Result<()> {
    let app = TestApp::start_without_browser(9, &SIGNED).await?;
    for name in ["Signature", "signature-input", "SIGNATURE-AGENT"] {
        let refused = app.create_refused(json!({ "url": "https://example.com/", "headers": { name: "x" } })).await?;
        ensure!((refused.status, refused.code.as_str()) == (400, "bad_request"), "{name}: {refused:?}");
        let message = &refused.message;
        ensure!(message.contains("`headers`") && message.contains("not host"), "{message}");
        ensure!(message.contains("signature, signature-agent, signature-input"), "{message}");
    }
    app.finish().await
}
