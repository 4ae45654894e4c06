//! Monitors through the whole service: runs, alerts, accepted captures, and refused requests.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::credentials::Environment;
use grabd_domain::ids::MonitorId;
use grabd_engine::clock::Clock;
use grabd_store::monitors::{Claimed, MonitorRef};
use grabd_tests::harness::{ALLOWED, TestApp};
use grabd_tests::mail_server::{MailServer, ReceivedEmail, TlsMode};
use grabd_tests::receiver::Receiver;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

const POLL_INTERVAL: Duration = Duration::from_millis(50);
const WAIT_LIMIT: Duration = Duration::from_secs(40);

/// Sends a request. Returns the status and the body.
async fn call(app: &TestApp, key: &str, method: Method, path: &str, body: Option<Value>) -> Result<(u16, Value)> {
    let mut request = app.client.request(method, format!("{}{path}", app.base())).bearer_auth(key);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await?;
    let status = response.status().as_u16();
    let text = response.text().await?;
    Ok((status, if text.is_empty() { Value::Null } else { serde_json::from_str(&text)? }))
}

/// Creates a monitor with the live key. Returns it.
async fn create(app: &TestApp, body: Value) -> Result<Value> {
    let (status, monitor) = call(app, app.live(), Method::POST, "/monitors", Some(body)).await?;
    ensure!(status == 201, "{status} {monitor}");
    Ok(monitor)
}

fn path(monitor: &Value) -> Result<String> {
    Ok(format!("/monitors/{}", monitor["id"].as_str().context("id")?))
}

/// Waits until the latest run has ended, and is not one that was seen before. Returns the monitor.
pub(crate) async fn ended(app: &TestApp, key: &str, path: &str, before: Option<&Value>) -> Result<Value> {
    let poll = async {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        loop {
            ticks.tick().await;
            let (_, monitor) = app.get(path, key).await?;
            let run = &monitor["last_run"];
            let is_new = before.is_none_or(|before| before["id"] != run["id"]);
            if is_new && !run.is_null() && run["outcome"] != "running" {
                return Ok(monitor);
            }
        }
    };
    timeout(WAIT_LIMIT, poll).await.context("no run has ended")?
}

/// Lets the next due time come, and waits for the end of its run. Returns the monitor.
async fn run_next(app: &TestApp, monitor: &Value) -> Result<Value> {
    let id: MonitorId = monitor["id"].as_str().context("id")?.parse()?;
    let target = MonitorRef { team: app.team.team, environment: Environment::Live, grant: None, monitor: id };
    let monitors = app.service.store().monitors();
    let found = monitors.find(target).await?.context("a monitor")?;
    let due = found.next_run_at.context("a due time")?;
    // As a process would that ends before it has created the grab. The service starts the run.
    let claimed = monitors.claim(id, due, Clock::system().now()).await?;
    ensure!(matches!(claimed, Some(Claimed::Run(_))), "{claimed:?}");
    let path = path(monitor)?;
    let (_, begun) = app.get(&path, app.live()).await?;
    ensure!(begun["last_run"]["due_at"] == json!(due.to_string()), "{begun}");
    let before = monitor["last_run"].clone();
    ended(app, app.live(), &path, Some(&before)).await
}

async fn change(app: &TestApp, monitor: &Value, body: Value) -> Result<Value> {
    let (status, changed) = call(app, app.live(), Method::PATCH, &path(monitor)?, Some(body)).await?;
    ensure!(status == 200, "{status} {changed}");
    Ok(changed)
}

fn document(colour: &str) -> Value {
    json!({ "html": format!("<body style='background:{colour}'>"), "width": 320, "height": 320 })
}

async fn credits(app: &TestApp) -> Result<Value> {
    Ok(app.get("/usage", app.live()).await?.1["credits"]["total"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_a_page_is_reported_once_and_each_done_run_costs_a_credit() -> Result<()> {
    let receiver = Receiver::start(ALLOWED).await?;
    let app = TestApp::start(9, &[("webhooks.allow_http", "true")]).await?;
    let webhook = json!({ "url": receiver.url(), "events": ["monitor.changed"] });
    assert_eq!(call(&app, app.live(), Method::POST, "/webhooks", Some(webhook)).await?.0, 201);

    let body = json!({ "name": "Prices", "capture": document("#c00"), "every": "1h", "keep": 3 });
    let monitor = create(&app, body).await?;
    assert_eq!(
        (&monitor["state"], &monitor["last_run"], &monitor["live"]),
        (&json!("active"), &Value::Null, &json!(true))
    );
    // Documents are never returned.
    assert_eq!(monitor["capture"], json!({ "width": 320, "height": 320 }));
    let monitor = ended(&app, app.live(), &path(&monitor)?, None).await?;
    let first = &monitor["last_run"];
    assert_eq!((&first["outcome"], &first["compared_to"]), (&json!("first"), &Value::Null), "{monitor}");
    assert_eq!(monitor["baseline_grab_id"], first["grab_id"]);

    let monitor = run_next(&app, &monitor).await?;
    let same = &monitor["last_run"];
    assert_eq!((&same["outcome"], &same["difference_ratio"]), (&json!("same"), &json!(0.0)), "{monitor}");
    assert_eq!(same["compared_to"], first["grab_id"]);

    let monitor = change(&app, &monitor, json!({ "capture": document("#00c") })).await?;
    let monitor = run_next(&app, &monitor).await?;
    let changed = &monitor["last_run"];
    assert_eq!((&changed["outcome"], &changed["what_changed"]), (&json!("changed"), &json!(["image"])), "{monitor}");
    assert_eq!((&changed["difference_ratio"], &changed["alerted"]), (&json!(1.0), &json!(true)));
    assert_eq!(monitor["baseline_grab_id"], changed["grab_id"]);
    let message: Value = serde_json::from_str(&receiver.wait_for(0).await?.body)?;
    assert_eq!((&message["type"], &message["environment"]), (&json!("monitor.changed"), &json!("live")));
    assert_eq!((&message["data"]["run"], &message["data"]["monitor"]), (changed, &monitor), "{message}");

    let monitor = run_next(&app, &monitor).await?;
    assert_eq!(monitor["last_run"]["outcome"], "same", "{monitor}");
    let (_, runs) = app.get(&format!("{}/runs", path(&monitor)?), app.live()).await?;
    let outcomes: Vec<&Value> = runs["data"].as_array().context("runs")?.iter().map(|run| &run["outcome"]).collect();
    assert_eq!(outcomes, [&json!("same"), &json!("changed"), &json!("same")], "only those that are kept");
    assert_eq!(credits(&app).await?, json!(5));
    assert_eq!(receiver.received().len(), 1);

    // Its captures are ordinary grabs, which stay.
    assert_eq!(call(&app, app.live(), Method::DELETE, &path(&monitor)?, None).await?.0, 204);
    assert_eq!(app.get(&path(&monitor)?, app.live()).await?.0, 404);
    let grab = format!("/grabs/{}", monitor["last_run"]["grab_id"].as_str().context("grab")?);
    assert_eq!(app.get(&grab, app.live()).await?.0, 200);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_lines_of_the_text_are_reported() -> Result<()> {
    let receiver = Receiver::start(ALLOWED).await?;
    let app = TestApp::start(9, &[("webhooks.allow_http", "true")]).await?;
    let webhook = json!({ "url": receiver.url(), "events": ["monitor.changed"] });
    assert_eq!(call(&app, app.live(), Method::POST, "/webhooks", Some(webhook)).await?.0, 201);
    let document = |price: u32, views: u32| {
        let html = format!("<body><p>Tea</p><p>{price} coins</p><p>{views} views</p>");
        json!({ "html": html, "width": 320, "height": 320 })
    };
    let body = json!({
        "capture": document(5, 1),
        "every": "1h",
        "compare": { "text": { "ignore_patterns": ["[0-9]+ views"] } },
    });
    let monitor = create(&app, body).await?;
    assert_eq!(monitor["compare"]["text"], json!({ "ignore_patterns": ["[0-9]+ views"] }));
    assert_eq!((&monitor["compare"]["image"], &monitor["capture"]["also"]), (&Value::Null, &Value::Null));
    let monitor = ended(&app, app.live(), &path(&monitor)?, None).await?;
    assert_eq!(monitor["last_run"]["outcome"], "first", "{monitor}");

    let monitor = change(&app, &monitor, json!({ "capture": document(5, 2) })).await?;
    let monitor = run_next(&app, &monitor).await?;
    let same = &monitor["last_run"];
    assert_eq!((&same["outcome"], &same["text_changes"]), (&json!("same"), &json!([])), "{monitor}");
    assert_eq!(same["error"], Value::Null, "{monitor}");

    let monitor = change(&app, &monitor, json!({ "capture": document(6, 3) })).await?;
    let monitor = run_next(&app, &monitor).await?;
    let changed = &monitor["last_run"];
    assert_eq!((&changed["outcome"], &changed["what_changed"]), (&json!("changed"), &json!(["text"])), "{monitor}");
    assert_eq!(changed["text_changes"], json!([{ "before": "5 coins", "after": "6 coins" }]));
    let message: Value = serde_json::from_str(&receiver.wait_for(0).await?.body)?;
    assert_eq!(&message["data"]["run"], changed, "{message}");
    let grab = format!("/grabs/{}", changed["grab_id"].as_str().context("grab")?);
    let (_, grab) = app.get(&grab, app.live()).await?;
    assert_eq!(grab["files"][0]["kind"], "text", "{grab}");
    assert_eq!(credits(&app).await?, json!(6));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_and_their_end_are_reported_and_cost_nothing() -> Result<()> {
    let receiver = Receiver::start(ALLOWED).await?;
    let app = TestApp::start(9, &[("webhooks.allow_http", "true")]).await?;
    let webhook = json!({ "url": receiver.url(), "events": ["monitor.failed", "monitor.recovered"] });
    assert_eq!(call(&app, app.live(), Method::POST, "/webhooks", Some(webhook)).await?.0, 201);
    let body = json!({ "capture": { "url": app.site.url("/status/403") }, "every": "1h" });
    let mut monitor = create(&app, body).await?;
    assert_eq!(monitor["name"], json!(ALLOWED.to_string()));
    monitor = ended(&app, app.live(), &path(&monitor)?, None).await?;
    for _ in 0..2 {
        assert_eq!(monitor["last_run"]["outcome"], "failed", "{monitor}");
        monitor = run_next(&app, &monitor).await?;
    }
    assert_eq!(monitor["last_run"]["error"]["code"], "render_blocked", "{monitor}");
    let message: Value = serde_json::from_str(&receiver.wait_for(0).await?.body)?;
    assert_eq!(message["type"], "monitor.failed");
    assert_eq!(credits(&app).await?, json!(9));

    let capture = json!({ "url": app.site.url("/tiny") });
    monitor = change(&app, &monitor, json!({ "capture": capture })).await?;
    monitor = run_next(&app, &monitor).await?;
    assert_eq!(monitor["last_run"]["outcome"], "first", "{monitor}");
    let message: Value = serde_json::from_str(&receiver.wait_for(1).await?.body)?;
    assert_eq!(message["type"], "monitor.recovered");
    assert_eq!(credits(&app).await?, json!(8));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_capture_is_the_baseline_until_another_one_is() -> Result<()> {
    let app = TestApp::start(9, &[]).await?;
    let body = json!({
        "capture": document("#c00"),
        "cron": "0 9 * * *",
        "time_zone": "Europe/Berlin",
        "compare": { "baseline": "accepted" },
    });
    let monitor = create(&app, body).await?;
    assert_eq!((&monitor["last_run"], &monitor["time_zone"]), (&Value::Null, &json!("Europe/Berlin")));
    let accept = format!("{}/accept", path(&monitor)?);
    let refused = call(&app, app.live(), Method::POST, &accept, None).await?;
    assert_eq!((refused.0, &refused.1["error"]["code"]), (400, &json!("bad_request")), "{}", refused.1);
    let monitor = run_next(&app, &monitor).await?;
    let first = monitor["baseline_grab_id"].clone();
    let monitor = change(&app, &monitor, json!({ "capture": document("#00c") })).await?;
    let monitor = run_next(&app, &monitor).await?;
    assert_eq!(
        (&monitor["last_run"]["outcome"], &monitor["baseline_grab_id"]),
        (&json!("changed"), &first),
        "{monitor}"
    );
    let (status, accepted) = call(&app, app.live(), Method::POST, &accept, None).await?;
    assert_eq!((status, &accepted["baseline_grab_id"]), (200, &monitor["last_run"]["grab_id"]), "{accepted}");
    let (status, accepted) = call(&app, app.live(), Method::POST, &accept, Some(json!({ "grab_id": first }))).await?;
    assert_eq!((status, &accepted["baseline_grab_id"]), (200, &first), "{accepted}");
    let (status, misspelt) = call(&app, app.live(), Method::POST, &accept, Some(json!({ "grabid": first }))).await?;
    let message = misspelt["error"]["message"].as_str().unwrap_or_default();
    assert!(status == 400 && message.contains("grabid (did you mean grab_id?)"), "{status} {misspelt}");

    let paused = change(&app, &monitor, json!({ "paused": true })).await?;
    assert_eq!((&paused["state"], &paused["next_run_at"]), (&json!("paused"), &Value::Null));
    let active = change(&app, &monitor, json!({ "paused": false })).await?;
    assert_eq!((&active["state"], active["next_run_at"].is_string()), (&json!("active"), true));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn monitor_of_a_test_key_makes_placeholders_and_is_not_seen_by_the_live_key() -> Result<()> {
    let app = TestApp::start_without_browser(3, &[]).await?;
    let body = json!({ "capture": { "url": "https://93.184.215.14/" }, "every": "30d" });
    let (status, monitor) = call(&app, app.test(), Method::POST, "/monitors", Some(body)).await?;
    assert_eq!((status, &monitor["live"]), (201, &json!(false)), "{monitor}");
    let monitor = ended(&app, app.test(), &path(&monitor)?, None).await?;
    assert_eq!(monitor["last_run"]["outcome"], "first", "{monitor}");
    assert_eq!(credits(&app).await?, json!(3));
    assert_eq!(app.get(&path(&monitor)?, app.live()).await?.0, 404);
    let (_, listed) = app.get("/monitors", app.live()).await?;
    assert_eq!(listed, json!({ "data": [], "has_more": false }));
    let (_, listed) = app.get("/monitors", app.test()).await?;
    assert_eq!(listed["data"], json!([monitor]));
    let history = async |key: &str| {
        let url = format!("{}{}/history.zip", app.base(), path(&monitor)?);
        Ok::<_, anyhow::Error>(app.client.get(url).bearer_auth(key).send().await?)
    };
    assert_eq!(history(app.live()).await?.status(), 404);
    let archive = history(app.test()).await?;
    assert_eq!((archive.status().as_u16(), archive.headers()["content-type"].to_str()?), (200, "application/zip"));
    let bytes = archive.bytes().await?;
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    // Files are stored without compression, and the archive is complete.
    assert!(bytes.starts_with(b"PK") && has("runs.json") && has("-first.png\"") && has("PK\x05\x06"));
    assert!(has(monitor["last_run"]["id"].as_str().context("run")?));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn team_without_credits_gets_one_mail_and_its_monitors_wait() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let url = server.url("");
    let mail = [("mail.smtp_url", url.as_str()), ("mail.from", "grabd <grabd@example.com>")];
    let app = TestApp::start_without_browser(0, &mail).await?;
    app.create_member("ada@example.com").await?;
    let body = json!({ "name": "Prices", "capture": { "url": "https://93.184.215.14/" }, "every": "1h" });
    let (one, other) = (create(&app, body.clone()).await?, create(&app, body).await?);
    for monitor in [&one, &other] {
        let monitor = ended(&app, app.live(), &path(monitor)?, None).await?;
        assert_eq!((&monitor["state"], &monitor["last_run"]["outcome"]), (&json!("out_of_credits"), &json!("failed")));
        assert_eq!(monitor["last_run"]["error"]["code"], "credits_exhausted", "{monitor}");
        assert!(monitor["next_run_at"].is_string(), "{monitor}");
    }
    let is_about_credits = |email: &ReceivedEmail| {
        email.header("Subject").is_some_and(|subject| subject.starts_with("No credits left: monitor \"Prices\""))
    };
    // There may be one about the low balance as well.
    let mut number = 0;
    let email = loop {
        let email = server.wait_for(number).await?;
        if is_about_credits(&email) {
            break email;
        }
        number += 1;
    };
    assert_eq!(email.envelope.1, "<ada@example.com>");
    let link = email.link()?;
    let pages = [&one, &other].map(|monitor| format!("/teams/{}{}", app.team.team, path(monitor).unwrap_or_default()));
    assert!(pages.iter().any(|page| link.ends_with(page)), "{link} {pages:?}");
    assert_eq!(server.emails().iter().filter(|email| is_about_credits(email)).count(), 1);

    // A due time at which there are credits makes it active again. Nothing renders its grab.
    grabd_engine::accounts::grant_prepaid(
        app.service.store(),
        app.team.team,
        5,
        "ref:an invoice",
        Clock::system().now(),
    )
    .await?;
    let id: MonitorId = one["id"].as_str().context("id")?.parse()?;
    let target = MonitorRef { team: app.team.team, environment: Environment::Live, grant: None, monitor: id };
    let monitors = app.service.store().monitors();
    let due = monitors.find(target).await?.and_then(|monitor| monitor.next_run_at).context("a due time")?;
    monitors.claim(id, due, Clock::system().now()).await?.context("a run")?;
    let active = async {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        loop {
            ticks.tick().await;
            let (_, monitor) = app.get(&path(&one)?, app.live()).await?;
            if monitor["state"] == "active" {
                return Ok::<_, anyhow::Error>(monitor);
            }
        }
    };
    let monitor = timeout(WAIT_LIMIT, active).await.context("the monitor stays without credits")??;
    assert_eq!(
        (&monitor["last_run"]["outcome"], monitor["last_run"]["grab_id"].is_string()),
        (&json!("running"), true)
    );
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_name_the_member() -> Result<()> {
    let app = TestApp::start_without_browser(3, &[("monitors.per_team", "1")]).await?;
    let with = |member: &str, value: Value| {
        let mut body = json!({ "capture": { "url": "https://93.184.215.14/" }, "every": "1h" });
        body[member] = value;
        body
    };
    for (body, code, expected) in [
        (json!([]), "bad_request", "`body` must be a JSON object with some of `name`"),
        (json!({ "every": "1h" }), "bad_request", "`capture` must be an object with capture options"),
        (with("capture", json!({ "url": "http://127.0.0.3/" })), "ssrf_detected", "The target URL is not an allowed"),
        (
            with("capture", json!({ "url": "https://93.184.215.14/", "width": 1 })),
            "invalid_viewport",
            "`width` must be",
        ),
        (with("every", json!("1m")), "bad_request", "`every` must be an integer and `m`, `h` or `d`, from 5m to 30d"),
        (with("cron", json!("0 9 * * *")), "bad_request", "`cron` must be left out where `every` is used"),
        (with("compare", json!({ "pdf": {} })), "bad_request", "`compare` must be an object with some of `image`"),
        (
            with("compare", json!({ "text": { "selector": "main" } })),
            "bad_request",
            "`compare.text.selector` must be left out",
        ),
        (
            with("compare", json!({ "text": { "ignore_patterns": ["("] } })),
            "bad_request",
            "`compare.text.ignore_patterns`",
        ),
        (with("compare", json!({ "image": { "ignore": 5 } })), "bad_request", "`compare.image.ignore` must be"),
        (
            with("compare", json!({ "image": { "ignore": [{ "x": 0, "y": 0, "width": 0, "height": 9 }] } })),
            "bad_request",
            "`compare.image.ignore` must be an array in which each rectangle is",
        ),
        (with("compare", json!({ "elements": 1 })), "bad_request", "`compare.elements` must be true or false"),
        (with("quiet", json!({ "from": "22:00" })), "bad_request", "`quiet.to` must be a time of day"),
        (with("quiet", json!({})), "bad_request", "`quiet` must be null, or an object with `from` and `to`"),
        (with("alert_after", json!("2")), "bad_request", "`alert_after` must be an integer from 1 to 10; got \"2\"."),
        (with("keep", json!(1001)), "bad_request", "`keep` must be an integer from 1 to 1000; got 1001."),
        (with("alert_afer", json!(2)), "bad_request", "`body` must be a JSON object with some of `name`"),
    ] {
        let (status, refused) = call(&app, app.live(), Method::POST, "/monitors", Some(body.clone())).await?;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((status, &refused["error"]["code"]), (400, &json!(code)), "{body} {refused}");
        assert!(message.starts_with(expected), "{body} {message}");
    }
    let monitor = create(&app, with("name", json!("The only one"))).await?;
    let misspelt = call(&app, app.live(), Method::PATCH, &path(&monitor)?, Some(json!({ "pausd": true }))).await?;
    let message = misspelt.1["error"]["message"].as_str().unwrap_or_default();
    let ending = "got the unknown member pausd (did you mean paused?).";
    assert!(misspelt.0 == 400 && message.ends_with(ending), "{} {}", misspelt.0, misspelt.1);
    // What a read returns can be sent back.
    let (_, read) = app.get(&path(&monitor)?, app.live()).await?;
    assert_eq!(change(&app, &monitor, read).await?["capture"], monitor["capture"]);
    let (status, refused) = call(&app, app.live(), Method::POST, "/monitors", Some(with("keep", json!(1)))).await?;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(status == 400 && message.starts_with("`monitors` must be at most 1"), "{status} {refused}");
    let unknown = "/monitors/01993e1c-7b1a-7000-8000-0123456789ab";
    for (method, path) in [
        (Method::GET, unknown.to_owned()),
        (Method::DELETE, unknown.to_owned()),
        (Method::GET, format!("{unknown}/runs")),
        (Method::POST, format!("{unknown}/accept")),
        (Method::GET, "/monitors/none".to_owned()),
    ] {
        let (status, refused) = call(&app, app.live(), method.clone(), &path, None).await?;
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("not_found")), "{method} {path}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn ignored_rectangles_and_small_regions_do_not_count() -> Result<()> {
    let app = TestApp::start(9, &[]).await?;
    // A banner of 40 pixels, and a square of 16 pixels.
    let document = |banner: &str, square: &str| {
        let html = format!(
            "<body style='margin:0'><div style='height:40px;background:{banner}'></div>\
             <div style='position:absolute;left:160px;top:160px;width:16px;height:16px;background:{square}'></div>"
        );
        json!({ "html": html, "width": 320, "height": 320, "scale": 2 })
    };
    // In CSS pixels: 80 rows of the image.
    let banner = json!({ "x": 0, "y": 0, "width": 320, "height": 40 });
    let image = json!({ "threshold_ratio": 0.0, "ignore": [banner], "min_region_px": 2000 });
    let body = json!({ "capture": document("#c00", "#fff"), "every": "1h", "compare": { "image": image } });
    let monitor = create(&app, body).await?;
    assert_eq!(monitor["compare"]["image"], image);
    let monitor = ended(&app, app.live(), &path(&monitor)?, None).await?;
    let monitor = change(&app, &monitor, json!({ "capture": document("#00c", "#000") })).await?;
    let monitor = run_next(&app, &monitor).await?;
    let same = &monitor["last_run"];
    assert_eq!((&same["outcome"], &same["difference_ratio"]), (&json!("same"), &json!(0.0)), "{monitor}");

    // The square has 32 x 32 pixels of the image.
    let image = json!({ "threshold_ratio": 0.0, "ignore": [banner], "min_region_px": 1000 });
    let changes = json!({ "capture": document("#0c0", "#fff"), "compare": { "image": image } });
    let monitor = change(&app, &monitor, changes).await?;
    let monitor = run_next(&app, &monitor).await?;
    assert_eq!(monitor["last_run"]["outcome"], "same", "the square is as in the baseline: {monitor}");
    let monitor = change(&app, &monitor, json!({ "capture": document("#0c0", "#000") })).await?;
    let monitor = run_next(&app, &monitor).await?;
    assert_eq!(monitor["last_run"]["outcome"], "changed", "{monitor}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_elements_of_a_page_are_reported() -> Result<()> {
    let app = TestApp::start(9, &[]).await?;
    let document = |button: &str, top: u32, link: &str| {
        let html = format!("<body><button style='position:absolute;top:{top}px'>{button}</button>{link}");
        json!({ "html": html, "width": 320, "height": 320 })
    };
    let capture = document("Buy", 100, "");
    let monitor = create(&app, json!({ "capture": capture, "every": "1h", "compare": { "elements": true } })).await?;
    assert_eq!((&monitor["compare"]["elements"], &monitor["compare"]["image"]), (&json!(true), &Value::Null));
    let monitor = ended(&app, app.live(), &path(&monitor)?, None).await?;
    let monitor = change(&app, &monitor, json!({ "capture": document("Buy", 103, "") })).await?;
    let monitor = run_next(&app, &monitor).await?;
    assert_eq!(monitor["last_run"]["outcome"], "same", "3 pixels do not count: {monitor}");
    let link = "<a href='https://example.com/'>News</a>";
    let monitor = change(&app, &monitor, json!({ "capture": document("Order", 103, link) })).await?;
    let monitor = run_next(&app, &monitor).await?;
    let changed = &monitor["last_run"];
    assert_eq!((&changed["outcome"], &changed["what_changed"]), (&json!("changed"), &json!(["elements"])), "{monitor}");
    let added = json!({ "change": "added", "role": "link", "name": "News", "before": null, "after": null });
    let renamed = json!({ "change": "changed", "role": "button", "name": "Order", "before": "Buy", "after": "Order" });
    assert_eq!(changed["element_changes"], json!([added, renamed]), "{monitor}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn feed_and_badge_are_public_at_their_address_until_it_is_replaced_or_removed() -> Result<()> {
    let app = TestApp::start_without_browser(3, &[]).await?;
    let body = json!({ "name": "Prices", "capture": { "url": "https://93.184.215.14/?secret=1" }, "every": "30d" });
    let (_, monitor) = call(&app, app.test(), Method::POST, "/monitors", Some(body)).await?;
    let monitor = ended(&app, app.test(), &path(&monitor)?, None).await?;
    assert_eq!(monitor["has_feed"], false);
    let feed = format!("{}/feed", path(&monitor)?);
    assert_eq!(call(&app, app.live(), Method::POST, &feed, None).await?.0, 404);
    let (status, addresses) = call(&app, app.test(), Method::POST, &feed, None).await?;
    assert_eq!(status, 201, "{addresses}");
    assert_eq!(app.get(&path(&monitor)?, app.test()).await?.1["has_feed"], true);
    let origin = app.base().trim_end_matches("/v1").to_owned();
    let address = |addresses: &Value, member: &str| -> Result<String> {
        let public = addresses[member].as_str().context("an address")?;
        Ok(format!("{origin}{}", &public[public.find("/feeds/").context("the path")?..]))
    };
    let (atom, badge) = (address(&addresses, "feed_url")?, address(&addresses, "badge_url")?);

    let shown = app.client.get(&atom).send().await?;
    assert_eq!(
        (shown.status().as_u16(), shown.headers()["content-type"].to_str()?),
        (200, "application/atom+xml; charset=utf-8")
    );
    let tag = shown.headers()["etag"].clone();
    let text = shown.text().await?;
    assert!(text.contains("<title>Prices</title>") && text.contains("<title>First capture</title>"), "{text}");
    assert!(!text.contains("secret") && !text.contains("93.184"), "{text}");
    assert_eq!(app.client.get(&atom).header("if-none-match", tag).send().await?.status(), 304);
    let shown = app.client.get(&badge).send().await?;
    assert_eq!((shown.status().as_u16(), shown.headers()["content-type"].to_str()?), (200, "image/svg+xml"));
    assert!(shown.text().await?.contains("active, no change"));

    let (_, replaced) = call(&app, app.test(), Method::POST, &feed, None).await?;
    assert_eq!(app.client.get(&atom).send().await?.status(), 404);
    let atom = address(&replaced, "feed_url")?;
    assert_eq!(app.client.get(&atom).send().await?.status(), 200);
    assert_eq!(call(&app, app.test(), Method::DELETE, &feed, None).await?.0, 204);
    assert_eq!(app.client.get(&atom).send().await?.status(), 404);
    app.finish().await
}
