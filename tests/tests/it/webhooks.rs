//! Webhooks end to end: registered, received, verified with third-party libraries, repeated and refused.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use grabd::config::Config;
use grabd::serve::{Rendering, Timeouts};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_engine::webhooks::can_decrypt_secrets;
use grabd_tests::contract::Shape;
use grabd_tests::dns::Dns;
use grabd_tests::harness::{ALLOWED, REFUSED, TestApp};
use grabd_tests::receiver::{ReceivedRequest, Receiver, SilentServer};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const WAIT_LIMIT: Duration = Duration::from_secs(40);

struct WebhookTest {
    app: TestApp,
    receiver: Receiver,
}

impl WebhookTest {
    async fn start(overlay: &[(&'static str, &str)]) -> Result<Self> {
        Self::start_with(overlay, Rendering::Chromium).await
    }

    /// For tests that capture nothing.
    async fn start_without_browser(overlay: &[(&'static str, &str)]) -> Result<Self> {
        Self::start_with(overlay, Rendering::None).await
    }

    async fn start_with(overlay: &[(&'static str, &str)], rendering: Rendering) -> Result<Self> {
        let receiver = Receiver::start(ALLOWED).await?;
        let overlay = [&[("webhooks.allow_http", "true")], overlay].concat();
        Ok(Self { app: TestApp::start_with(9, &overlay, Timeouts::default(), rendering).await?, receiver })
    }

    async fn call_as(&self, key: &str, method: Method, path: &str, body: Option<Value>) -> Result<(u16, Value)> {
        let mut request = self.app.client.request(method, format!("{}{path}", self.app.base()));
        request = request.bearer_auth(key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await?;
        let status = response.status().as_u16();
        let text = response.text().await?;
        Ok((status, if text.is_empty() { Value::Null } else { serde_json::from_str(&text)? }))
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<(u16, Value)> {
        self.call_as(self.app.live(), method, path, body).await
    }

    /// Registers the receiver. Returns the path and the secret of the webhook.
    async fn register(&self, members: Value) -> Result<(String, String)> {
        let mut body = json!({ "url": self.receiver.url() });
        for (name, value) in members.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let (status, webhook) = self.call(Method::POST, "/webhooks", Some(body)).await?;
        ensure!(status == 201, "{status} {webhook}");
        let id = webhook["id"].as_str().context("id")?;
        Ok((format!("/webhooks/{id}"), webhook["secret"].as_str().context("secret")?.to_owned()))
    }

    async fn capture_async(&self, path: &str) -> Result<String> {
        let body = json!({ "url": self.app.site.url(path) });
        let (status, grab) = self.call(Method::POST, "/grabs?async=true", Some(body)).await?;
        ensure!(status == 202, "{status} {grab}");
        Ok(grab["id"].as_str().context("id")?.to_owned())
    }

    /// Waits until the newest delivery has this status.
    async fn delivery(&self, webhook: &str, status: &str) -> Result<Value> {
        let poll = async {
            let mut ticks = tokio::time::interval(POLL_INTERVAL);
            loop {
                ticks.tick().await;
                let (_, list) = self.call(Method::GET, &format!("{webhook}/deliveries"), None).await?;
                if list["data"][0]["status"] == status {
                    return Ok(list["data"][0].clone());
                }
            }
        };
        tokio::time::timeout(WAIT_LIMIT, poll).await.with_context(|| format!("no delivery has the status {status}"))?
    }
}

/// Verifies a message with libraries in two languages, which must also refuse a changed message.
pub(crate) fn verify(secret: &str, received: &ReceivedRequest) -> Result<()> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let [id, timestamp, signature] = &received.signature_headers;
    let headers = json!({ "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature });
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("message.json");
    std::fs::write(&file, json!({ "secret": secret, "headers": headers, "body": received.body }).to_string())?;
    for (program, script) in [("node", "verify.mjs"), ("target/python/bin/python", "verify.py")] {
        let program = if program.contains('/') { root.join(program) } else { program.into() };
        let output = Command::new(&program)
            .arg(root.join("tests/verify").join(script))
            .arg(&file)
            .output()
            .with_context(|| format!("{} is missing: run script/setup --tests", program.display()))?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success() && stdout.contains("standardwebhooks verified") && stdout.contains("svix verified"),
            "{script} stdout: {stdout}{} (are the libraries missing? run script/setup --tests)",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_grabs_are_delivered_once_with_valid_signatures() -> Result<()> {
    let webhooks = WebhookTest::start(&[]).await?;
    let (webhook, secret) = webhooks.register(json!({ "events": ["grab.done"], "description": "prod" })).await?;
    let (failures, _) =
        webhooks.register(json!({ "events": ["grab.failed"], "url": webhooks.receiver.url() + "/failed" })).await?;
    // No messages are sent for synchronous grabs, placeholders or the other environment.
    let body = json!({ "url": webhooks.app.site.url("/tiny") });
    assert_eq!(webhooks.call(Method::POST, "/grabs", Some(body.clone())).await?.0, 200);
    let test = webhooks.app.test();
    let hook = Some(json!({ "url": webhooks.receiver.url() }));
    assert_eq!(webhooks.call_as(test, Method::POST, "/webhooks", hook).await?.0, 201);
    assert_eq!(webhooks.call_as(test, Method::POST, "/grabs?async=true", Some(body)).await?.0, 200);

    let id = webhooks.capture_async("/tiny").await?;
    let received = webhooks.receiver.wait_for(0).await?;
    assert_eq!((received.path.as_str(), received.agent.as_str()), ("/hook", "grabd-webhooks/1.0"));
    let message = received.json()?;
    assert_eq!(message["id"], json!(received.signature_headers[0]));
    assert_eq!((&message["type"], &message["environment"]), (&json!("grab.done"), &json!("live")));
    assert_eq!(message["data"]["status"], "done");
    // The grab in the message is byte for byte what REST returns.
    let get = webhooks.app.client.get(format!("{}/grabs/{id}", webhooks.app.base()));
    let shown = get.bearer_auth(webhooks.app.live()).send().await?.text().await?;
    assert!(received.body.ends_with(&format!("\"data\":{shown}}}")), "{}\n{shown}", received.body);
    verify(&secret, &received)?;
    let delivery = webhooks.delivery(&webhook, "delivered").await?;
    assert_eq!((&delivery["attempt"], &delivery["status_code"]), (&json!(1), &json!(200)));
    assert_eq!((&delivery["message_id"], &delivery["next_attempt_at"]), (&message["id"], &Value::Null));

    let failed = webhooks.capture_async("/nocontent").await?;
    let received = webhooks.receiver.wait_for(1).await?;
    let message = received.json()?;
    assert_eq!((received.path.as_str(), &message["type"]), ("/hook/failed", &json!("grab.failed")));
    assert_eq!((&message["data"]["id"], &message["data"]["status"]), (&json!(failed), &json!("failed")));
    Shape::Grab.check(&message["data"])?;
    assert_eq!(message["data"]["error_code"], "render_failed");
    assert_eq!(message["data"], webhooks.call(Method::GET, &format!("/grabs/{failed}"), None).await?.1);
    webhooks.delivery(&failures, "delivered").await?;

    // For a day after a rotation, messages are signed with both secrets.
    let (status, rotated) = webhooks.call(Method::POST, &format!("{webhook}/rotate_secret"), None).await?;
    let new = rotated["secret"].as_str().context("secret")?.to_owned();
    assert_eq!(status, 200);
    assert_ne!(new, secret);
    assert_eq!(webhooks.call(Method::POST, &format!("{webhook}/test"), None).await?.0, 202);
    let received = webhooks.receiver.wait_for(2).await?;
    assert_eq!(
        (received.json()?["type"].as_str(), received.signature_headers[2].split(' ').count()),
        (Some("webhook.test"), 2)
    );
    verify(&secret, &received)?;
    verify(&new, &received)?;
    assert!(verify("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", &received).is_err());
    assert_eq!(webhooks.receiver.received().len(), 3);

    // Other teams and environments cannot access any of it.
    let clock = Clock::system().now();
    let other = accounts::create_team(webhooks.app.service.store(), "another", 0, clock).await?;
    let delivery = format!("{webhook}/deliveries/{}/redeliver", delivery["id"].as_str().context("id")?);
    for key in [other.live.expose(), webhooks.app.test()] {
        for (method, path) in [
            (Method::GET, webhook.clone()),
            (Method::PATCH, webhook.clone()),
            (Method::DELETE, webhook.clone()),
            (Method::GET, format!("{webhook}/deliveries")),
            (Method::POST, format!("{webhook}/rotate_secret")),
            (Method::POST, format!("{webhook}/test")),
            (Method::POST, delivery.clone()),
        ] {
            let body = (method == Method::PATCH).then(|| json!({}));
            let (status, answer) = webhooks.call_as(key, method.clone(), &path, body).await?;
            assert_eq!((status, &answer["error"]["code"]), (404, &json!("not_found")), "{method} {path}");
        }
    }
    let (_, list) = webhooks.call_as(other.live.expose(), Method::GET, "/webhooks", None).await?;
    assert_eq!(list, json!({ "data": [], "has_more": false }));
    for secret in [&secret, &new] {
        for file in ["grabd.db", "grabd.db-wal"] {
            let bytes = std::fs::read(webhooks.app.data_dir().join(file)).unwrap_or_default();
            assert!(
                !bytes.windows(secret.len()).any(|window| window == secret.as_bytes()),
                "a secret is stored in {file}"
            );
        }
    }
    webhooks.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_deliveries_are_retried_and_redirects_are_not_followed() -> Result<()> {
    let webhooks = WebhookTest::start(&[]).await?;
    let (webhook, secret) = webhooks.register(json!({})).await?;
    webhooks.receiver.respond_with(&[500]);
    webhooks.capture_async("/tiny").await?;
    let first = webhooks.receiver.wait_for(0).await?;
    let failed = webhooks.delivery(&webhook, "failed").await?;
    assert_eq!((&failed["attempt"], &failed["status_code"]), (&json!(1), &json!(500)));
    // After a restart the scheduled delivery is sent with the same bytes and id.
    let WebhookTest { app, receiver } = webhooks;
    let webhooks = WebhookTest { app: app.restart().await?, receiver };
    let second = webhooks.receiver.wait_for(1).await?;
    assert_eq!((&first.signature_headers[0], &first.body), (&second.signature_headers[0], &second.body));
    let seconds = |received: &ReceivedRequest| received.signature_headers[1].parse::<i64>();
    assert!(seconds(&second)? - seconds(&first)? >= 3, "{:?} {:?}", first.signature_headers, second.signature_headers);
    verify(&secret, &second)?;
    let delivered = webhooks.delivery(&webhook, "delivered").await?;
    assert_eq!((&delivered["attempt"], &delivered["id"]), (&json!(2), &failed["id"]));

    // A redirect is a failure and is not followed.
    webhooks.receiver.respond_with(&[307]);
    assert_eq!(webhooks.call(Method::POST, &format!("{webhook}/test"), None).await?.0, 202);
    let moved = webhooks.delivery(&webhook, "failed").await?;
    assert_eq!(moved["status_code"], 307);
    assert!(webhooks.receiver.received().iter().all(|received| received.path == "/hook"));
    // A redelivery sends the same message at once.
    let path = format!("{webhook}/deliveries/{}/redeliver", moved["id"].as_str().context("id")?);
    let (status, due) = webhooks.call(Method::POST, &path, None).await?;
    assert_eq!((status, &due["status"], &due["id"]), (202, &json!("pending"), &moved["id"]));
    let again = webhooks.receiver.wait_for(3).await?;
    let test = &webhooks.receiver.received()[2];
    assert_eq!((&again.signature_headers[0], &again.body), (&test.signature_headers[0], &test.body));
    webhooks.delivery(&webhook, "delivered").await?;

    // 410 Gone disables the webhook.
    webhooks.receiver.respond_with(&[410]);
    webhooks.call(Method::POST, &format!("{webhook}/test"), None).await?;
    let gone = webhooks.delivery(&webhook, "exhausted").await?;
    assert_eq!(gone["status_code"], 410);
    let (_, disabled) = webhooks.call(Method::GET, &webhook, None).await?;
    assert_eq!((&disabled["status"], &disabled["disabled_reason"]), (&json!("disabled"), &json!("gone")));
    assert_eq!(disabled["secret"], Value::Null);
    let (status, refused) = webhooks.call(Method::POST, &format!("{webhook}/test"), None).await?;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("bad_request")));
    let on = Some(json!({ "status": "enabled", "description": "again" }));
    let (status, enabled) = webhooks.call(Method::PATCH, &webhook, on).await?;
    assert_eq!((status, &enabled["status"], &enabled["description"]), (200, &json!("enabled"), &json!("again")));

    assert_eq!(webhooks.call(Method::DELETE, &webhook, None).await?, (204, Value::Null));
    assert_eq!(webhooks.call(Method::DELETE, &webhook, None).await?.0, 404);
    assert_eq!(webhooks.receiver.received().len(), 5);
    webhooks.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_endpoints_of_other_teams_do_not_delay_webhooks() -> Result<()> {
    let webhooks = WebhookTest::start_without_browser(&[]).await?;
    let silent = SilentServer::start(ALLOWED).await?;
    let (webhook, _) = webhooks.register(json!({})).await?;
    let clock = Clock::system().now();
    for _ in 0..4 {
        let hostile = accounts::create_team(webhooks.app.service.store(), "hostile", 0, clock).await?;
        let key = hostile.live.expose();
        for _ in 0..10 {
            let body = json!({ "url": silent.url() });
            let (status, dead) = webhooks.call_as(key, Method::POST, "/webhooks", Some(body)).await?;
            assert_eq!(status, 201, "{dead}");
            let path = format!("/webhooks/{}/test", dead["id"].as_str().context("id")?);
            for _ in 0..10 {
                assert_eq!(webhooks.call_as(key, Method::POST, &path, None).await?.0, 202);
            }
        }
    }
    // Also the first message to a new endpoint.
    for number in 0..3 {
        let began = Instant::now();
        assert_eq!(webhooks.call(Method::POST, &format!("{webhook}/test"), None).await?.0, 202);
        timeout(Duration::from_secs(5), webhooks.receiver.wait_for(number)).await.context("it is delayed")??;
        println!("message {number} took {:?}", began.elapsed());
    }
    webhooks.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_refused_on_create_and_on_every_attempt() -> Result<()> {
    let dns = Dns::start([127, 0, 0, 3].into()).await?;
    let webhooks = WebhookTest::start_without_browser(&[("egress.dns", &dns.address.to_string())]).await?;
    let port = webhooks.receiver.address().port();
    // A forbidden receiver on the same port.
    let trap = Receiver::start_at((REFUSED, port).into()).await?;
    let create = async |url: &str| webhooks.call(Method::POST, "/webhooks", Some(json!({ "url": url }))).await;
    let named = format!("http://hooks.example.com:{port}/hook");
    for (url, code) in [
        (format!("http://{REFUSED}:{port}/"), "ssrf_detected"),
        ("https://10.0.0.1/".into(), "ssrf_detected"),
        ("https://localhost/".into(), "ssrf_detected"),
        (named.clone(), "ssrf_detected"),
        ("https://user:word@example.com/".into(), "bad_request"),
        ("ftp://example.com/".into(), "bad_request"),
    ] {
        let (status, answer) = create(&url).await?;
        assert_eq!((status, answer["error"]["code"].as_str()), (400, Some(code)), "{url}");
    }
    dns.set_default(ALLOWED);
    let (status, webhook) = create(&named).await?;
    assert_eq!(status, 201, "{webhook}");
    let path = format!("/webhooks/{}", webhook["id"].as_str().context("id")?);
    webhooks.call(Method::POST, &format!("{path}/test"), None).await?;
    webhooks.receiver.wait_for(0).await?;
    webhooks.delivery(&path, "delivered").await?;
    // The name now resolves to a forbidden address: it is checked again, and nothing is sent.
    dns.set_default(REFUSED);
    webhooks.call(Method::POST, &format!("{path}/test"), None).await?;
    let refused = webhooks.delivery(&path, "failed").await?;
    assert_eq!((&refused["attempt"], &refused["status_code"]), (&json!(1), &Value::Null));
    assert_eq!((trap.received().len(), webhooks.receiver.received().len()), (0, 1));
    let change = Some(json!({ "url": format!("http://other.example.com:{port}/") }));
    let (status, answer) = webhooks.call(Method::PATCH, &path, change).await?;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("ssrf_detected")));
    webhooks.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_refused_by_default() -> Result<()> {
    let webhooks = WebhookTest::start_without_browser(&[("webhooks.allow_http", "false")]).await?;
    let body = Some(json!({ "url": webhooks.receiver.url() }));
    let (status, answer) = webhooks.call(Method::POST, "/webhooks", body).await?;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_request")), "{answer}");
    webhooks.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn key_file_of_another_database_is_detected() -> Result<()> {
    let webhooks = WebhookTest::start_without_browser(&[]).await?;
    let store = webhooks.app.service.store().clone();
    let fits = |name: &str| {
        let config = Config::with(&[("data_dir", webhooks.app.data_dir().join(name).display().to_string())].into())?;
        std::fs::create_dir_all(&config.data_dir)?;
        grabd::wiring::open_vault(&config)
    };
    assert!(can_decrypt_secrets(&fits("another")?, &store).await?, "nothing is encrypted yet");
    webhooks.register(json!({})).await?;
    assert!(can_decrypt_secrets(&fits(".")?, &store).await?);
    assert!(!can_decrypt_secrets(&fits("another")?, &store).await?);
    webhooks.app.finish().await
}
