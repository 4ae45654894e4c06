//! Webhooks as a customer has them: registered, received, verified with other people's libraries, repeated, refused.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd::config::Config;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::dns::Dns;
use grabd_tests::harness::{ALLOWED, Harness, REFUSED};
use grabd_tests::receiver::{Received, Receiver};
use reqwest::Method;
use serde_json::{Value, json};

/// How often something that nobody tells is looked at.
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(40);

struct House {
    harness: Harness,
    receiver: Receiver,
}

impl House {
    async fn start(overlay: &[(&'static str, &str)]) -> Result<Self> {
        let receiver = Receiver::start(ALLOWED).await?;
        let overlay = [&[("webhooks.allow_http", "true")], overlay].concat();
        Ok(Self { harness: Harness::start(9, &overlay).await?, receiver })
    }

    async fn call_as(&self, key: &str, method: Method, path: &str, body: Option<Value>) -> Result<(u16, Value)> {
        let mut request = self.harness.client.request(method, format!("{}{path}", self.harness.base()));
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
        self.call_as(self.harness.live(), method, path, body).await
    }

    /// Registers the receiver; its path and its secret.
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
        let body = json!({ "url": self.harness.site.url(path) });
        let (status, grab) = self.call(Method::POST, "/grabs?async=true", Some(body)).await?;
        ensure!(status == 202, "{status} {grab}");
        Ok(grab["id"].as_str().context("id")?.to_owned())
    }

    /// The newest delivery, once it stands so.
    async fn delivery(&self, webhook: &str, status: &str) -> Result<Value> {
        let look = async {
            let mut look = tokio::time::interval(LOOK);
            loop {
                look.tick().await;
                let (_, list) = self.call(Method::GET, &format!("{webhook}/deliveries"), None).await?;
                if list["data"][0]["status"] == status {
                    return Ok(list["data"][0].clone());
                }
            }
        };
        tokio::time::timeout(PATIENCE, look).await.with_context(|| format!("no delivery is {status}"))?
    }
}

/// Has the libraries of two languages verify a message, and refuse a changed one.
pub(crate) fn verify(secret: &str, received: &Received) -> Result<()> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let [id, timestamp, signature] = &received.signed;
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
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success() && said.contains("standardwebhooks verified") && said.contains("svix verified"),
            "{script} said: {said}{} (are the libraries missing? run script/setup --tests)",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_is_told_once_and_verifies_everywhere() -> Result<()> {
    let house = House::start(&[]).await?;
    let (webhook, secret) = house.register(json!({ "events": ["grab.done"], "description": "prod" })).await?;
    let (failures, _) =
        house.register(json!({ "events": ["grab.failed"], "url": house.receiver.url() + "/failed" })).await?;
    // Nobody is told of grabs whose caller holds the line, nor of placeholders, nor those of the other environment.
    let body = json!({ "url": house.harness.site.url("/tiny") });
    assert_eq!(house.call(Method::POST, "/grabs", Some(body.clone())).await?.0, 200);
    let test = house.harness.test();
    let hook = Some(json!({ "url": house.receiver.url() }));
    assert_eq!(house.call_as(test, Method::POST, "/webhooks", hook).await?.0, 201);
    assert_eq!(house.call_as(test, Method::POST, "/grabs?async=true", Some(body)).await?.0, 200);

    let id = house.capture_async("/tiny").await?;
    let received = house.receiver.wait_for(0).await?;
    assert_eq!((received.path.as_str(), received.agent.as_str()), ("/hook", "grabd-webhooks/1.0"));
    let message = received.json()?;
    assert_eq!(message["id"], json!(received.signed[0]));
    assert_eq!((&message["type"], &message["environment"]), (&json!("grab.done"), &json!("live")));
    assert_eq!(message["data"]["status"], "done");
    // The grab in the message is the grab that REST shows, byte for byte.
    let get = house.harness.client.get(format!("{}/grabs/{id}", house.harness.base()));
    let shown = get.bearer_auth(house.harness.live()).send().await?.text().await?;
    assert!(received.body.ends_with(&format!("\"data\":{shown}}}")), "{}\n{shown}", received.body);
    verify(&secret, &received)?;
    let delivery = house.delivery(&webhook, "delivered").await?;
    assert_eq!((&delivery["attempt"], &delivery["status_code"]), (&json!(1), &json!(200)));
    assert_eq!((&delivery["message_id"], &delivery["next_attempt_at"]), (&message["id"], &Value::Null));

    let failed = house.capture_async("/nocontent").await?;
    let received = house.receiver.wait_for(1).await?;
    let message = received.json()?;
    assert_eq!((received.path.as_str(), &message["type"]), ("/hook/failed", &json!("grab.failed")));
    assert_eq!((&message["data"]["id"], &message["data"]["status"]), (&json!(failed), &json!("failed")));
    house.delivery(&failures, "delivered").await?;

    // For a day after a rotation, both secrets sign.
    let (status, rotated) = house.call(Method::POST, &format!("{webhook}/rotate_secret"), None).await?;
    let new = rotated["secret"].as_str().context("secret")?.to_owned();
    assert_eq!(status, 200);
    assert_ne!(new, secret);
    assert_eq!(house.call(Method::POST, &format!("{webhook}/test"), None).await?.0, 202);
    let received = house.receiver.wait_for(2).await?;
    assert_eq!((received.json()?["type"].as_str(), received.signed[2].split(' ').count()), (Some("webhook.test"), 2));
    verify(&secret, &received)?;
    verify(&new, &received)?;
    assert!(verify("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", &received).is_err());
    assert_eq!(house.receiver.received().len(), 3);

    // Nobody else sees any of it, whatever they do.
    let clock = Clock::system().now();
    let other = accounts::create_team(house.harness.service.store(), "another", 0, clock).await?;
    let delivery = format!("{webhook}/deliveries/{}/redeliver", delivery["id"].as_str().context("id")?);
    for key in [other.live.expose(), house.harness.test()] {
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
            let (status, answer) = house.call_as(key, method.clone(), &path, body).await?;
            assert_eq!((status, &answer["error"]["code"]), (404, &json!("not_found")), "{method} {path}");
        }
    }
    let (_, list) = house.call_as(other.live.expose(), Method::GET, "/webhooks", None).await?;
    assert_eq!(list, json!({ "data": [], "has_more": false }));
    for secret in [&secret, &new] {
        for file in ["grabd.db", "grabd.db-wal"] {
            let bytes = std::fs::read(house.harness.data_dir().join(file)).unwrap_or_default();
            assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "a secret lies in {file}");
        }
    }
    house.harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_repeated_and_redirects_are_not_followed() -> Result<()> {
    let house = House::start(&[]).await?;
    let (webhook, secret) = house.register(json!({})).await?;
    house.receiver.answers(&[500]);
    house.capture_async("/tiny").await?;
    let first = house.receiver.wait_for(0).await?;
    let failed = house.delivery(&webhook, "failed").await?;
    assert_eq!((&failed["attempt"], &failed["status_code"]), (&json!(1), &json!(500)));
    // A new life knows what is owed, and sends the same bytes under the same id.
    let House { harness, receiver } = house;
    let house = House { harness: harness.restart().await?, receiver };
    let second = house.receiver.wait_for(1).await?;
    assert_eq!((&first.signed[0], &first.body), (&second.signed[0], &second.body));
    let seconds = |received: &Received| received.signed[1].parse::<i64>();
    assert!(seconds(&second)? - seconds(&first)? >= 3, "{:?} {:?}", first.signed, second.signed);
    verify(&secret, &second)?;
    let delivered = house.delivery(&webhook, "delivered").await?;
    assert_eq!((&delivered["attempt"], &delivered["id"]), (&json!(2), &failed["id"]));

    // A redirect is a failure, and nobody goes there.
    house.receiver.answers(&[307]);
    assert_eq!(house.call(Method::POST, &format!("{webhook}/test"), None).await?.0, 202);
    let moved = house.delivery(&webhook, "failed").await?;
    assert_eq!(moved["status_code"], 307);
    assert!(house.receiver.received().iter().all(|received| received.path == "/hook"));
    // On request the same message goes out at once.
    let path = format!("{webhook}/deliveries/{}/redeliver", moved["id"].as_str().context("id")?);
    let (status, due) = house.call(Method::POST, &path, None).await?;
    assert_eq!((status, &due["status"], &due["id"]), (202, &json!("pending"), &moved["id"]));
    let again = house.receiver.wait_for(3).await?;
    let test = &house.receiver.received()[2];
    assert_eq!((&again.signed[0], &again.body), (&test.signed[0], &test.body));
    house.delivery(&webhook, "delivered").await?;

    // Gone is gone: disabled, and nothing more is sent.
    house.receiver.answers(&[410]);
    house.call(Method::POST, &format!("{webhook}/test"), None).await?;
    let gone = house.delivery(&webhook, "exhausted").await?;
    assert_eq!(gone["status_code"], 410);
    let (_, disabled) = house.call(Method::GET, &webhook, None).await?;
    assert_eq!((&disabled["status"], &disabled["disabled_reason"]), (&json!("disabled"), &json!("gone")));
    assert_eq!(disabled["secret"], Value::Null);
    let (status, refused) = house.call(Method::POST, &format!("{webhook}/test"), None).await?;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("bad_request")));
    let on = Some(json!({ "status": "enabled", "description": "again" }));
    let (status, enabled) = house.call(Method::PATCH, &webhook, on).await?;
    assert_eq!((status, &enabled["status"], &enabled["description"]), (200, &json!("enabled"), &json!("again")));

    assert_eq!(house.call(Method::DELETE, &webhook, None).await?, (204, Value::Null));
    assert_eq!(house.call(Method::DELETE, &webhook, None).await?.0, 404);
    assert_eq!(house.receiver.received().len(), 5);
    house.harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_refused_at_create_and_at_every_attempt() -> Result<()> {
    let dns = Dns::start([127, 0, 0, 3].into()).await?;
    let house = House::start(&[("egress.dns", &dns.address.to_string())]).await?;
    let port = house.receiver.address().port();
    // What must not be reached listens on the same port.
    let trap = Receiver::start_at((REFUSED, port).into()).await?;
    let create = async |url: &str| house.call(Method::POST, "/webhooks", Some(json!({ "url": url }))).await;
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
    dns.says(ALLOWED);
    let (status, webhook) = create(&named).await?;
    assert_eq!(status, 201, "{webhook}");
    let path = format!("/webhooks/{}", webhook["id"].as_str().context("id")?);
    house.call(Method::POST, &format!("{path}/test"), None).await?;
    house.receiver.wait_for(0).await?;
    house.delivery(&path, "delivered").await?;
    // The name moves: the address is looked at again, and nothing is sent to the new one.
    dns.says(REFUSED);
    house.call(Method::POST, &format!("{path}/test"), None).await?;
    let refused = house.delivery(&path, "failed").await?;
    assert_eq!((&refused["attempt"], &refused["status_code"]), (&json!(1), &Value::Null));
    assert_eq!((trap.received().len(), house.receiver.received().len()), (0, 1));
    let change = Some(json!({ "url": format!("http://other.example.com:{port}/") }));
    let (status, answer) = house.call(Method::PATCH, &path, change).await?;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("ssrf_detected")));
    house.harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_for_development_alone() -> Result<()> {
    let house = House::start(&[("webhooks.allow_http", "false")]).await?;
    let body = Some(json!({ "url": house.receiver.url() }));
    let (status, answer) = house.call(Method::POST, "/webhooks", body).await?;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_request")), "{answer}");
    house.harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_file_that_does_not_belong_to_the_database_is_noticed() -> Result<()> {
    let house = House::start(&[]).await?;
    let store = house.harness.service.store().clone();
    let fits = |name: &str| {
        let config = Config::with(&[("data_dir", house.harness.data_dir().join(name).display().to_string())].into())?;
        std::fs::create_dir_all(&config.data_dir)?;
        grabd::wiring::webhooks(&config)
    };
    assert!(fits("another")?.secrets_open(&store).await?, "nothing is encrypted yet");
    house.register(json!({})).await?;
    assert!(fits(".")?.secrets_open(&store).await?);
    assert!(!fits("another")?.secrets_open(&store).await?);
    house.harness.finish().await
}
