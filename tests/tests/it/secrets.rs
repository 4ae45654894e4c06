//! Headers, cookies and passwords of captures reach the target, and are neither stored nor shown.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use grabd_tests::harness::{ALLOWED, TestApp};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::TaskTracker;

/// In every secret of these tests, and nowhere else.
const HIDDEN: &str = "hidden-value";

const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// A site that reports the head of each request and answers it when it is told to.
struct HeldSite {
    address: SocketAddr,
    heads: mpsc::Receiver<String>,
    answers: Arc<Semaphore>,
}

impl HeldSite {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind((ALLOWED, 0)).await?;
        let address = listener.local_addr()?;
        let (sender, heads) = mpsc::channel(64);
        let answers = Arc::new(Semaphore::new(0));
        let permits = answers.clone();
        // Ends with the test's runtime.
        TaskTracker::new().spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 16_384];
                let Ok(length) = stream.read(&mut head).await else { continue };
                let Ok(()) = sender.send(String::from_utf8_lossy(&head[..length]).into_owned()).await else { return };
                let Ok(permit) = permits.acquire().await else { return };
                permit.forget();
                let answer =
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\nConnection: close\r\n\r\n<p>ok";
                // The browser may have closed the connection.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Ok(Self { address, heads, answers })
    }

    /// The head of the next request.
    async fn next(&mut self) -> Result<String> {
        tokio::time::timeout(WAIT_LIMIT, self.heads.recv()).await?.context("the site has ended")
    }
}

fn body(site: &HeldSite, token: &str) -> Value {
    json!({
        "url": format!("http://{}/", site.address),
        "headers": { "X-Token": format!("{HIDDEN}-{token}") },
        "cookies": [{ "name": "sid", "value": format!("{HIDDEN}-2") }],
        "basic_auth": { "username": "me", "password": format!("{HIDDEN}-3") },
    })
}

async fn create(app: &TestApp, key: &str, token: &str, body: &Value) -> Result<(u16, Value)> {
    let request = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(token);
    let response = request.header("idempotency-key", key).json(body).send().await?;
    Ok((response.status().as_u16(), response.json().await?))
}

/// Fails if a file below the directory contains the secret.
pub(super) fn check_files(directory: &Path, secret: &str) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            check_files(&path, secret)?;
            continue;
        }
        // Sockets cannot be read, and files may be removed meanwhile.
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let has_secret = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        anyhow::ensure!(!has_secret, "{} contains a secret", path.display());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_reach_the_target_and_are_neither_stored_nor_shown() -> Result<()> {
    let mut site = HeldSite::start().await?;
    let app = TestApp::start(10, &[]).await?;
    let (status, grab) = create(&app, "one", app.live(), &body(&site, "1")).await?;
    assert_eq!(status, 202, "{grab}");
    assert!(!grab.to_string().contains(HIDDEN), "{grab}");
    let head = site.next().await?.to_ascii_lowercase();
    for line in ["x-token: hidden-value-1", "cookie: sid=hidden-value-2", "authorization: basic "] {
        assert!(head.contains(line), "{line}: {head}");
    }
    check_files(&app.data_dir(), HIDDEN)?;
    let path = format!("/grabs/{}", grab["id"].as_str().context("an id")?);
    // The icon of the site may be requested as well.
    site.answers.add_permits(1000);
    let wait = app.client.get(format!("{}{path}", app.base())).bearer_auth(app.live());
    let ended: Value = wait.header("prefer", "wait=25").send().await?.json().await?;
    assert_eq!(ended["status"], "done", "{ended}");
    assert!(!ended.to_string().contains(HIDDEN), "{ended}");
    check_files(&app.data_dir(), HIDDEN)?;

    let (status, repeated) = create(&app, "one", app.live(), &body(&site, "1")).await?;
    assert_eq!((status, &repeated["id"]), (202, &ended["id"]), "{repeated}");
    let (_, other) = create(&app, "one", app.live(), &body(&site, "other")).await?;
    assert_eq!(other["error"]["code"], "idempotency_mismatch", "{other}");
    assert!(!other.to_string().contains(HIDDEN), "{other}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_secrets_are_refused_without_showing_them() -> Result<()> {
    let app = TestApp::start_without_browser(1, &[]).await?;
    for (name, value) in [
        ("headers", json!({ "Cookie": HIDDEN })),
        ("headers", json!([HIDDEN])),
        ("cookies", json!([{ "name": "sid", "value": HIDDEN, "domain": "other.example" }])),
        ("cookies", json!({ "sid": HIDDEN })),
        ("basic_auth", json!({ "username": HIDDEN })),
    ] {
        let (status, answer) = app.create(json!({ "url": "https://example.com/", name: value })).await?;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_request")), "{answer}");
        let text = answer.to_string();
        assert!(text.contains(&format!("`{name}` must be")) && !text.contains(HIDDEN), "{text}");
    }
    app.finish().await
}
