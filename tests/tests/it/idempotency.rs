//! Repeated creates with the same `Idempotency-Key` over REST.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_domain::credits::LotKind;
use grabd_store::credits::Grant;
use grabd_tests::dns::Dns;
use grabd_tests::harness::{REFUSED, TestApp};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

/// A raw response.
#[derive(Debug)]
struct CreateResponse {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl CreateResponse {
    fn is_replay(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }

    fn code(&self) -> Result<String> {
        let body: Value = serde_json::from_str(&self.body)?;
        Ok(body["error"]["code"].as_str().with_context(|| self.body.clone())?.to_owned())
    }

    fn id(&self) -> Result<String> {
        let body: Value = serde_json::from_str(&self.body)?;
        Ok(body["id"].as_str().with_context(|| self.body.clone())?.to_owned())
    }
}

/// Sends creates with a key of a team.
struct CreateClient<'a> {
    app: &'a TestApp,
    token: &'a str,
    query: &'a str,
}

impl CreateClient<'_> {
    async fn send_with_headers(&self, lines: &[&str], body: &Value) -> Result<CreateResponse> {
        let base = self.app.base();
        let mut request = self.app.client.post(format!("{base}/grabs{}", self.query)).bearer_auth(self.token);
        for line in lines {
            request = request.header("idempotency-key", *line);
        }
        let response = request.json(body).send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(CreateResponse { status, headers, body: response.text().await? })
    }

    async fn send(&self, key: &str, body: &Value) -> Result<CreateResponse> {
        self.send_with_headers(&[key], body).await
    }

    /// Sends the same request twice. The second response must be a replay of the first.
    async fn send_twice(&self, key: &str, body: &Value, status: u16) -> Result<CreateResponse> {
        let first = self.send(key, body).await?;
        anyhow::ensure!(first.status == status && !first.is_replay(), "{key}: {first:?}");
        let second = self.send(key, body).await?;
        anyhow::ensure!(second.is_replay(), "{key}: {second:?}");
        anyhow::ensure!((second.status, &second.body) == (first.status, &first.body), "{first:?}\n{second:?}");
        for header in ["location", "content-type", "cache-control"] {
            anyhow::ensure!(first.headers.get(header) == second.headers.get(header), "{header}: {first:?}\n{second:?}");
        }
        anyhow::ensure!(first.headers["x-request-id"] != second.headers["x-request-id"]);
        Ok(first)
    }
}

fn live(app: &TestApp) -> CreateClient<'_> {
    CreateClient { app, token: app.live(), query: "" }
}

async fn credits(app: &TestApp) -> Result<(i64, i64)> {
    let (_, usage) = app.get("/usage", app.live()).await?;
    let of = |member: &str| usage["credits"][member].as_i64().with_context(|| usage.to_string());
    Ok((of("total")?, of("held")?))
}

async fn grabs(app: &TestApp, key: &str) -> Result<usize> {
    let (_, list) = app.get("/grabs?limit=100", key).await?;
    Ok(list["data"].as_array().context("data")?.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_is_identical_and_charged_once() -> Result<()> {
    let app = TestApp::start(10, &[]).await?;
    let client = live(&app);
    let tiny = json!({ "url": app.site.url("/tiny") });

    let done = client.send_twice("done", &tiny, 200).await?;
    // The same request in another form, and the key in quotes.
    let equivalent = json!({ "full_page": false, "width": 1280, "unknown": 1, "url": app.site.url("/tiny") });
    let again = client.send("\"done\"", &equivalent).await?;
    assert_eq!((again.status, &again.body), (200, &done.body));
    assert_eq!(credits(&app).await?, (9, 0));

    let blocked = json!({ "url": app.site.url("/status/403") });
    assert_eq!(client.send_twice("blocked", &blocked, 422).await?.code()?, "render_blocked");
    let broken = json!({ "url": app.site.url("/nocontent") });
    assert_eq!(client.send_twice("broken", &broken, 500).await?.code()?, "render_failed");
    // Detected during the capture: the page redirects.
    let away = json!({ "url": app.site.url(&format!("/redirect?to=http://{REFUSED}:8801/")) });
    assert_eq!(client.send_twice("away", &away, 400).await?.code()?, "ssrf_detected");
    assert_eq!(credits(&app).await?, (9, 0));
    assert_eq!(grabs(&app, app.live()).await?, 4);

    // A different request with a known key is refused, whatever the result of the first.
    let other = json!({ "url": app.site.url("/tiny"), "width": 800 });
    for key in ["done", "blocked", "broken", "away"] {
        let mismatch = client.send(key, &other).await?;
        assert_eq!((mismatch.status, mismatch.code()?.as_str()), (400, "idempotency_mismatch"), "{key}");
        assert!(!mismatch.is_replay());
    }
    // The mode is part of the request.
    let queued = CreateClient { query: "?async=true", ..live(&app) };
    assert_eq!(queued.send("done", &tiny).await?.code()?, "idempotency_mismatch");
    assert_eq!((credits(&app).await?, grabs(&app, app.live()).await?), ((9, 0), 4));

    // A deleted grab is not replayed: the next request creates a new one.
    let id = done.id()?;
    let deleted = app.client.delete(format!("{}/grabs/{id}", app.base())).bearer_auth(app.live());
    assert_eq!(deleted.send().await?.status(), 204);
    let anew = client.send("done", &tiny).await?;
    assert_eq!((anew.status, anew.is_replay()), (200, false));
    assert_ne!(anew.id()?, id);
    assert_eq!(credits(&app).await?, (8, 0));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_batch_returns_what_was_created_and_tries_the_rest_again() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let tiny = json!({ "url": app.site.url("/tiny") });
    let body = json!({ "grabs": [tiny, { "url": "ftp://example.com/" }, tiny, tiny], "options": { "width": 400 } });
    let send = async || -> Result<(u16, Value)> {
        let request = app.client.post(format!("{}/grabs/batch", app.base())).bearer_auth(app.live());
        let response = request.header("idempotency-key", "pages").json(&body).send().await?;
        Ok((response.status().as_u16(), response.json().await?))
    };
    let (status, first) = send().await?;
    assert_eq!(status, 200, "{first}");
    let code = |result: &Value| result["error"]["code"].as_str().unwrap_or("created").to_owned();
    let codes = |batch: &Value| batch["results"].as_array().into_iter().flatten().map(code).collect::<Vec<_>>();
    assert_eq!(codes(&first), ["created", "bad_request", "created", "credits_exhausted"], "{first}");
    assert_eq!(first["results"][2]["grab"]["width"], 400);
    // The same grabs, and nothing more is created or charged.
    let (_, second) = send().await?;
    assert_eq!(codes(&second), codes(&first));
    for index in [0, 2] {
        assert_eq!(second["results"][index]["grab"]["id"], first["results"][index]["grab"]["id"]);
        let id = first["results"][index]["grab"]["id"].as_str().context("id")?;
        let ended = app.client.get(format!("{}/grabs/{id}", app.base())).bearer_auth(app.live());
        let ended: Value = ended.header("prefer", "wait=25").send().await?.json().await?;
        assert_eq!(ended["status"], "done", "{ended}");
    }
    assert_eq!((credits(&app).await?, grabs(&app, app.live()).await?), ((0, 0), 2));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn asynchronous_replay_returns_the_queued_response() -> Result<()> {
    let app = TestApp::start(10, &[]).await?;
    let client = CreateClient { query: "?async=true", ..live(&app) };
    let body = json!({ "url": app.site.url("/slow/300") });
    let first = client.send_twice("queued", &body, 202).await?;
    assert_eq!(first.headers["location"].to_str()?, format!("/v1/grabs/{}", first.id()?));
    let wait = app.client.get(format!("{}/grabs/{}", app.base(), first.id()?)).bearer_auth(app.live());
    let ended: Value = wait.header("prefer", "wait=25").send().await?.json().await?;
    assert_eq!(ended["status"], json!("done"), "{ended}");
    let after = client.send("queued", &body).await?;
    assert_eq!((after.status, &after.body, after.is_replay()), (202, &first.body, true));
    assert_eq!(after.headers["location"], first.headers["location"]);
    let mismatch = client.send("queued", &json!({ "url": app.site.url("/tiny") })).await?;
    assert_eq!(mismatch.code()?, "idempotency_mismatch");
    assert_eq!(credits(&app).await?, (9, 0));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn request_in_flight_is_a_conflict_even_after_disconnect() -> Result<()> {
    let app = TestApp::start(10, &[]).await?;
    let client = live(&app);
    let slow = json!({ "url": app.site.url("/slow/1500") });
    let first = client.send("slow", &slow);
    let during = async {
        app.site.wait_for_hits("/slow/1500", 1).await;
        Ok::<_, anyhow::Error>((
            client.send("slow", &slow).await?,
            client.send("slow", &json!({"url": "http://a.example/"})).await?,
        ))
    };
    let (first, during) = tokio::join!(first, during);
    let (first, (same, other)) = (first?, during?);
    assert_eq!((same.status, same.code()?.as_str()), (409, "idempotency_conflict"));
    assert_eq!(same.headers["retry-after"], "2");
    assert!(!same.is_replay());
    // A mismatch takes precedence over a conflict.
    assert_eq!((other.status, other.code()?.as_str()), (400, "idempotency_mismatch"));
    assert_eq!(first.status, 200);

    // If the caller disconnects, the capture continues, and its result is available under the key.
    let gone = json!({ "url": app.site.url("/slow/1501") });
    tokio::select! {
        answer = client.send("gone", &gone) => anyhow::bail!("answered too early: {answer:?}"),
        () = app.site.wait_for_hits("/slow/1501", 1) => {}
    }
    let conflict = client.send("gone", &gone).await?;
    assert_eq!((conflict.status, conflict.code()?.as_str()), (409, "idempotency_conflict"));
    let (_, list) = app.get("/grabs?limit=1", app.live()).await?;
    let id = list["data"][0]["id"].as_str().context("the open grab")?;
    let wait = app.client.get(format!("{}/grabs/{id}", app.base())).bearer_auth(app.live());
    let ended: Value = wait.header("prefer", "wait=25").send().await?.json().await?;
    assert_eq!(ended["status"], json!("done"), "{ended}");
    let answer = client.send("gone", &gone).await?;
    assert_eq!((answer.status, answer.is_replay(), answer.id()?.as_str()), (200, true, id));
    assert_eq!(credits(&app).await?, (8, 0));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_creates_do_not_use_the_key() -> Result<()> {
    let app = TestApp::start(0, &[("limits.async_queue", "1")]).await?;
    let client = live(&app);
    let tiny = json!({ "url": app.site.url("/tiny") });
    let refused = |answer: CreateResponse, status: u16, code: &str| {
        anyhow::ensure!(answer.status == status && answer.code()? == code && !answer.is_replay(), "{answer:?}");
        Ok(())
    };
    // Checked in this order. None of these results is stored.
    let unknown_key = CreateClient { token: "sk_live_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", ..live(&app) };
    refused(unknown_key.send("k", &tiny).await?, 401, "unauthorized")?;
    refused(client.send("k", &json!({ "url": 5 })).await?, 400, "bad_request")?;
    refused(client.send("k", &json!({ "url": app.site.url("/tiny"), "width": 1 })).await?, 400, "invalid_viewport")?;
    refused(client.send("k", &json!({ "url": format!("http://{REFUSED}:8801/") })).await?, 400, "ssrf_detected")?;
    refused(client.send("k", &tiny).await?, 402, "credits_exhausted")?;
    assert_eq!(grabs(&app, app.live()).await?, 0);
    // With credits, the same request succeeds.
    let grant = Grant {
        team: app.team.team,
        kind: LotKind::Prepaid,
        credits: 2,
        expires_at: None,
        source_ref: "top-up".to_owned(),
        now: Timestamp::from_ms(0),
    };
    app.service.store().credits().grant(grant).await?;
    let queued = CreateClient { query: "?async=true", ..live(&app) };
    let first = queued.send("fills-the-queue", &json!({ "url": app.site.url("/slow/1500") })).await?;
    refused(queued.send("k", &tiny).await?, 429, "queue_limit_exceeded")?;
    client.send_twice("k", &tiny, 200).await?;
    let wait = app.client.get(format!("{}/grabs/{}", app.base(), first.id()?)).bearer_auth(app.live());
    let ended: Value = wait.header("prefer", "wait=25").send().await?.json().await?;
    assert_eq!(ended["status"], json!("done"), "{ended}");
    // The replay works without credits. A malformed request is refused before the key is looked up.
    assert_eq!((client.send("k", &tiny).await?.status, credits(&app).await?), (200, (0, 0)));
    refused(client.send("k", &json!({ "url": 5 })).await?, 400, "bad_request")?;
    app.finish().await
}

/// A request is validated first, then its key is looked up, then its address is checked.
#[tokio::test(flavor = "multi_thread")]
async fn known_key_is_replayed_before_the_host_is_checked() -> Result<()> {
    let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
    let app = TestApp::start(10, &[("egress.dns", &dns.address.to_string())]).await?;
    let client = live(&app);
    let named = json!({ "url": format!("http://pages.example:{}/tiny", app.site.port()) });
    let done = client.send("k", &named).await?;
    assert_eq!(done.status, 200, "{}", done.body);
    // The name now resolves to a forbidden address. The replay still works, without a lookup.
    dns.set_default(REFUSED);
    let again = client.send("k", &named).await?;
    assert_eq!((again.status, &again.body, again.is_replay()), (200, &done.body, true));
    assert_eq!(client.send("new", &named).await?.code()?, "ssrf_detected");
    for refused in [format!("http://{REFUSED}:8801/"), "http://printer.local/".into(), "http://[::1]/".into()] {
        for token in [app.live(), app.test()] {
            let client = CreateClient { token, ..live(&app) };
            client.send("k", &named).await?;
            assert_eq!(
                client.send("k", &json!({ "url": refused })).await?.code()?,
                "idempotency_mismatch",
                "{refused}"
            );
            assert_eq!(client.send("free", &json!({ "url": refused })).await?.code()?, "ssrf_detected", "{refused}");
            let narrow = json!({ "url": refused, "width": 1 });
            assert_eq!(client.send("free", &narrow).await?.code()?, "invalid_viewport", "{refused}");
        }
    }
    assert_eq!(credits(&app).await?, (9, 0));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_keys_are_refused_on_create_and_ignored_elsewhere() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let tiny = json!({ "url": app.site.url("/tiny") });
    let long = "k".repeat(256);
    let malformed: [&[&str]; 6] = [&[""], &["\"\""], &["a b"], &[&long], &["a", "a"], &["a", "b"]];
    for token in [app.live(), app.test()] {
        let client = CreateClient { token, ..live(&app) };
        for lines in malformed {
            let answer = client.send_with_headers(lines, &tiny).await?;
            assert_eq!((answer.status, answer.code()?.as_str()), (400, "idempotency_mismatch"), "{lines:?}");
        }
        assert_eq!(grabs(&app, token).await?, 0);
        client.send_twice(&long[..255], &tiny, 200).await?;
    }
    for path in ["/usage", "/grabs", "/pricing"] {
        let request = app.client.get(format!("{}{path}", app.base())).bearer_auth(app.live());
        let response = request.header("idempotency-key", "a b").header("idempotency-key", "c").send().await?;
        assert_eq!(response.status(), 200, "{path}");
        assert!(!response.headers().contains_key("idempotent-replayed"));
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn test_keys_support_idempotency() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let client = CreateClient { token: app.test(), ..live(&app) };
    let page = json!({ "url": "https://example.com/", "width": 320, "height": 240 });
    client.send_twice("k", &page, 200).await?;
    // Test grabs are never queued, so `async` does not change the request.
    let queued = CreateClient { query: "?async=true", ..CreateClient { token: app.test(), ..live(&app) } };
    let same = queued.send("k", &page).await?;
    assert_eq!((same.status, same.is_replay()), (200, true));
    assert_eq!(client.send("k", &json!({ "url": "https://example.com/" })).await?.code()?, "idempotency_mismatch");
    assert_eq!(
        client.send_twice("blocked", &json!({ "url": "http://blocked.test/" }), 422).await?.code()?,
        "render_blocked"
    );
    assert_eq!(
        client.send_twice("broken", &json!({ "url": "http://broken.test/" }), 500).await?.code()?,
        "render_failed"
    );
    for (host, status) in [("exhausted", 402), ("busy", 429)] {
        for _ in 0..2 {
            let answer = client.send("not-kept", &json!({ "url": format!("http://{host}.test/") })).await?;
            assert_eq!((answer.status, answer.is_replay()), (status, false));
        }
    }
    // Keys of the live environment are separate.
    assert!(!live(&app).send("k", &json!({ "url": app.site.url("/tiny") })).await?.is_replay());

    // A slow placeholder is in flight while it is rendered.
    let slow = json!({ "url": "http://slow.test/", "width": 320, "height": 240 });
    let answers = join_all((0..4).map(|_| client.send("slow", &slow))).await;
    let mut statuses: Vec<u16> = answers.into_iter().map(|answer| Ok(answer?.status)).collect::<Result<_>>()?;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409]);
    let after = client.send("slow", &slow).await?;
    assert_eq!((after.status, after.is_replay()), (200, true));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_concurrent_creates_make_one_grab_and_cost_one_credit() -> Result<()> {
    let app = TestApp::start(30, &[]).await?;
    let client = live(&app);
    let body = json!({ "url": app.site.url("/slow/300") });
    let (mut done, mut conflicts) = (Vec::new(), 0);
    for answer in join_all((0..20).map(|_| client.send("one", &body))).await {
        let answer = answer?;
        match answer.status {
            200 => done.push(answer.body),
            409 => conflicts += 1,
            other => anyhow::bail!("{other}: {}", answer.body),
        }
    }
    assert!(!done.is_empty() && done.iter().all(|body| *body == done[0]), "{done:?}");
    assert_eq!(done.len() + conflicts, 20);
    let queued = CreateClient { query: "?async=true", ..live(&app) };
    let mut accepted = Vec::new();
    for answer in join_all((0..20).map(|_| queued.send("two", &body))).await {
        let answer = answer?;
        assert_eq!(answer.status, 202, "{}", answer.body);
        accepted.push((answer.body, answer.headers.contains_key("idempotent-replayed")));
    }
    assert!(accepted.iter().all(|(body, _)| *body == accepted[0].0));
    assert_eq!(accepted.iter().filter(|(_, replayed)| !replayed).count(), 1);
    assert_eq!(grabs(&app, app.live()).await?, 2);
    let id: Value = serde_json::from_str(&accepted[0].0)?;
    let wait = app.client.get(format!("{}/grabs/{}", app.base(), id["id"].as_str().context("id")?));
    let ended: Value = wait.bearer_auth(app.live()).header("prefer", "wait=25").send().await?.json().await?;
    assert_eq!(ended["status"], json!("done"));
    assert_eq!(credits(&app).await?, (28, 0));
    app.finish().await
}
