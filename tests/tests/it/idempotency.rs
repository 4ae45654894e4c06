//! A repeated create with the same `Idempotency-Key`: every row of the table, through REST.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_domain::credits::LotKind;
use grabd_store::Grant;
use grabd_tests::dns::Dns;
use grabd_tests::harness::{Harness, REFUSED};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

/// An answer, byte by byte.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Answer {
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

/// A create with these `Idempotency-Key` lines.
struct Ask<'a> {
    harness: &'a Harness,
    token: &'a str,
    query: &'a str,
}

impl Ask<'_> {
    async fn lines(&self, lines: &[&str], body: &Value) -> Result<Answer> {
        let base = self.harness.base();
        let mut request = self.harness.client.post(format!("{base}/grabs{}", self.query)).bearer_auth(self.token);
        for line in lines {
            request = request.header("idempotency-key", *line);
        }
        let response = request.json(body).send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { status, headers, body: response.text().await? })
    }

    async fn send(&self, key: &str, body: &Value) -> Result<Answer> {
        self.lines(&[key], body).await
    }

    /// Twice the same: the second is the first one's answer, and told so.
    async fn twice(&self, key: &str, body: &Value, status: u16) -> Result<Answer> {
        let first = self.send(key, body).await?;
        anyhow::ensure!(first.status == status && !first.is_replay(), "{key}: {first:?}");
        let second = self.send(key, body).await?;
        anyhow::ensure!(second.is_replay(), "{key}: {second:?}");
        anyhow::ensure!((second.status, &second.body) == (first.status, &first.body), "{first:?}\n{second:?}");
        for kept in ["location", "content-type", "cache-control"] {
            anyhow::ensure!(first.headers.get(kept) == second.headers.get(kept), "{kept}: {first:?}\n{second:?}");
        }
        anyhow::ensure!(first.headers["x-request-id"] != second.headers["x-request-id"]);
        Ok(first)
    }
}

fn live(harness: &Harness) -> Ask<'_> {
    Ask { harness, token: harness.live(), query: "" }
}

async fn credits(harness: &Harness) -> Result<(i64, i64)> {
    let (_, usage) = harness.get("/usage", harness.live()).await?;
    let of = |member: &str| usage["credits"][member].as_i64().with_context(|| usage.to_string());
    Ok((of("total")?, of("held")?))
}

async fn grabs(harness: &Harness, key: &str) -> Result<usize> {
    let (_, list) = harness.get("/grabs?limit=100", key).await?;
    Ok(list["data"].as_array().context("data")?.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_given_again_byte_by_byte_and_charged_once() -> Result<()> {
    let harness = Harness::start(10, &[]).await?;
    let ask = live(&harness);
    let tiny = json!({ "url": harness.site.url("/tiny") });

    let done = ask.twice("done", &tiny, 200).await?;
    // The same request in other words, and the key in quotes.
    let worded = json!({ "full_page": false, "width": 1280, "unknown": 1, "url": harness.site.url("/tiny") });
    let again = ask.send("\"done\"", &worded).await?;
    assert_eq!((again.status, &again.body), (200, &done.body));
    assert_eq!(credits(&harness).await?, (9, 0));

    let blocked = json!({ "url": harness.site.url("/status/403") });
    assert_eq!(ask.twice("blocked", &blocked, 422).await?.code()?, "render_blocked");
    let broken = json!({ "url": harness.site.url("/nocontent") });
    assert_eq!(ask.twice("broken", &broken, 500).await?.code()?, "render_failed");
    // Found out while it is rendered: the page leads away.
    let away = json!({ "url": harness.site.url(&format!("/redirect?to=http://{REFUSED}:8801/")) });
    assert_eq!(ask.twice("away", &away, 400).await?.code()?, "ssrf_detected");
    assert_eq!(credits(&harness).await?, (9, 0));
    assert_eq!(grabs(&harness, harness.live()).await?, 4);

    // Another request with a known key, whatever became of the first.
    let other = json!({ "url": harness.site.url("/tiny"), "width": 800 });
    for key in ["done", "blocked", "broken", "away"] {
        let mismatch = ask.send(key, &other).await?;
        assert_eq!((mismatch.status, mismatch.code()?.as_str()), (400, "idempotency_mismatch"), "{key}");
        assert!(!mismatch.is_replay());
    }
    // The mode belongs to the request.
    let queued = Ask { query: "?async=true", ..live(&harness) };
    assert_eq!(queued.send("done", &tiny).await?.code()?, "idempotency_mismatch");
    assert_eq!((credits(&harness).await?, grabs(&harness, harness.live()).await?), ((9, 0), 4));

    // Deleted, the grab is no answer any more: the next request is a new one.
    let id = done.id()?;
    let deleted = harness.client.delete(format!("{}/grabs/{id}", harness.base())).bearer_auth(harness.live());
    assert_eq!(deleted.send().await?.status(), 204);
    let anew = ask.send("done", &tiny).await?;
    assert_eq!((anew.status, anew.is_replay()), (200, false));
    assert_ne!(anew.id()?, id);
    assert_eq!(credits(&harness).await?, (8, 0));
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asynchronous_answer_stays_the_queued_one() -> Result<()> {
    let harness = Harness::start(10, &[]).await?;
    let ask = Ask { query: "?async=true", ..live(&harness) };
    let body = json!({ "url": harness.site.url("/slow/300") });
    let first = ask.twice("queued", &body, 202).await?;
    assert_eq!(first.headers["location"].to_str()?, format!("/v1/grabs/{}", first.id()?));
    let wait = harness.client.get(format!("{}/grabs/{}", harness.base(), first.id()?)).bearer_auth(harness.live());
    let ended: Value = wait.header("prefer", "wait=25").send().await?.json().await?;
    assert_eq!(ended["status"], json!("done"), "{ended}");
    let after = ask.send("queued", &body).await?;
    assert_eq!((after.status, &after.body, after.is_replay()), (202, &first.body, true));
    assert_eq!(after.headers["location"], first.headers["location"]);
    let mismatch = ask.send("queued", &json!({ "url": harness.site.url("/tiny") })).await?;
    assert_eq!(mismatch.code()?, "idempotency_mismatch");
    assert_eq!(credits(&harness).await?, (9, 0));
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn in_flight_is_a_conflict_even_when_the_first_caller_is_gone() -> Result<()> {
    let harness = Harness::start(10, &[]).await?;
    let ask = live(&harness);
    let slow = json!({ "url": harness.site.url("/slow/1500") });
    let first = ask.send("slow", &slow);
    let during = async {
        harness.site.wait_for_hits("/slow/1500", 1).await;
        Ok::<_, anyhow::Error>((
            ask.send("slow", &slow).await?,
            ask.send("slow", &json!({"url": "http://a.example/"})).await?,
        ))
    };
    let (first, during) = tokio::join!(first, during);
    let (first, (same, other)) = (first?, during?);
    assert_eq!((same.status, same.code()?.as_str()), (409, "idempotency_conflict"));
    assert_eq!(same.headers["retry-after"], "2");
    assert!(!same.is_replay());
    // A mismatch is told before a conflict.
    assert_eq!((other.status, other.code()?.as_str()), (400, "idempotency_mismatch"));
    assert_eq!(first.status, 200);

    // The caller hangs up in the middle: the work goes on, and its answer is there for the key.
    let gone = json!({ "url": harness.site.url("/slow/1501") });
    tokio::select! {
        answer = ask.send("gone", &gone) => anyhow::bail!("answered too early: {answer:?}"),
        () = harness.site.wait_for_hits("/slow/1501", 1) => {}
    }
    let conflict = ask.send("gone", &gone).await?;
    assert_eq!((conflict.status, conflict.code()?.as_str()), (409, "idempotency_conflict"));
    let (_, list) = harness.get("/grabs?limit=1", harness.live()).await?;
    let id = list["data"][0]["id"].as_str().context("the open grab")?;
    let wait = harness.client.get(format!("{}/grabs/{id}", harness.base())).bearer_auth(harness.live());
    let ended: Value = wait.header("prefer", "wait=25").send().await?.json().await?;
    assert_eq!(ended["status"], json!("done"), "{ended}");
    let answer = ask.send("gone", &gone).await?;
    assert_eq!((answer.status, answer.is_replay(), answer.id()?.as_str()), (200, true, id));
    assert_eq!(credits(&harness).await?, (8, 0));
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_begun_leaves_the_key_free() -> Result<()> {
    let harness = Harness::start(0, &[("limits.async_queue", "1")]).await?;
    let ask = live(&harness);
    let tiny = json!({ "url": harness.site.url("/tiny") });
    let refused = |answer: Answer, status: u16, code: &str| {
        anyhow::ensure!(answer.status == status && answer.code()? == code && !answer.is_replay(), "{answer:?}");
        Ok(())
    };
    // Judged in this order, and none of them is kept.
    let stranger = Ask { token: "sk_live_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", ..live(&harness) };
    refused(stranger.send("k", &tiny).await?, 401, "unauthorized")?;
    refused(ask.send("k", &json!({ "url": 5 })).await?, 400, "bad_request")?;
    refused(ask.send("k", &json!({ "url": harness.site.url("/tiny"), "width": 1 })).await?, 400, "invalid_viewport")?;
    refused(ask.send("k", &json!({ "url": format!("http://{REFUSED}:8801/") })).await?, 400, "ssrf_detected")?;
    refused(ask.send("k", &tiny).await?, 402, "credits_exhausted")?;
    assert_eq!(grabs(&harness, harness.live()).await?, 0);
    // Topped up, the very same request goes through.
    let grant = Grant {
        team: harness.team.team,
        kind: LotKind::Prepaid,
        credits: 2,
        expires_at: None,
        source_ref: "top-up".to_owned(),
        now: Timestamp::from_ms(0),
    };
    harness.service.store().grant(grant).await?;
    let queued = Ask { query: "?async=true", ..live(&harness) };
    let first = queued.send("fills-the-queue", &json!({ "url": harness.site.url("/slow/1500") })).await?;
    refused(queued.send("k", &tiny).await?, 429, "queue_limit_exceeded")?;
    ask.twice("k", &tiny, 200).await?;
    let wait = harness.client.get(format!("{}/grabs/{}", harness.base(), first.id()?)).bearer_auth(harness.live());
    let ended: Value = wait.header("prefer", "wait=25").send().await?.json().await?;
    assert_eq!(ended["status"], json!("done"), "{ended}");
    // With the last credit gone, the answer is still there; a bad request is told before the key is looked at.
    assert_eq!((ask.send("k", &tiny).await?.status, credits(&harness).await?), (200, (0, 0)));
    refused(ask.send("k", &json!({ "url": 5 })).await?, 400, "bad_request")?;
    harness.finish().await
}

/// A request is judged by what it says, then by its key, then by where it leads.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_is_looked_at_before_the_host() -> Result<()> {
    let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
    let harness = Harness::start(10, &[("egress.dns", &dns.address.to_string())]).await?;
    let ask = live(&harness);
    let named = json!({ "url": format!("http://pages.example:{}/tiny", harness.site.port()) });
    let done = ask.send("k", &named).await?;
    assert_eq!(done.status, 200, "{}", done.body);
    // The name has moved to where nobody may go: the answer is there still, and nothing is looked up for it.
    dns.says(REFUSED);
    let again = ask.send("k", &named).await?;
    assert_eq!((again.status, &again.body, again.is_replay()), (200, &done.body, true));
    assert_eq!(ask.send("new", &named).await?.code()?, "ssrf_detected");
    for refused in [format!("http://{REFUSED}:8801/"), "http://printer.local/".into(), "http://[::1]/".into()] {
        for token in [harness.live(), harness.test()] {
            let ask = Ask { token, ..live(&harness) };
            ask.send("k", &named).await?;
            assert_eq!(ask.send("k", &json!({ "url": refused })).await?.code()?, "idempotency_mismatch", "{refused}");
            assert_eq!(ask.send("free", &json!({ "url": refused })).await?.code()?, "ssrf_detected", "{refused}");
            let narrow = json!({ "url": refused, "width": 1 });
            assert_eq!(ask.send("free", &narrow).await?.code()?, "invalid_viewport", "{refused}");
        }
    }
    assert_eq!(credits(&harness).await?, (9, 0));
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_cannot_be_are_refused_and_only_creates_have_any() -> Result<()> {
    let harness = Harness::start(1, &[]).await?;
    let tiny = json!({ "url": harness.site.url("/tiny") });
    let long = "k".repeat(256);
    let malformed: [&[&str]; 6] = [&[""], &["\"\""], &["a b"], &[&long], &["a", "a"], &["a", "b"]];
    for token in [harness.live(), harness.test()] {
        let ask = Ask { token, ..live(&harness) };
        for lines in malformed {
            let answer = ask.lines(lines, &tiny).await?;
            assert_eq!((answer.status, answer.code()?.as_str()), (400, "idempotency_mismatch"), "{lines:?}");
        }
        assert_eq!(grabs(&harness, token).await?, 0);
        ask.twice(&long[..255], &tiny, 200).await?;
    }
    for path in ["/usage", "/grabs", "/pricing"] {
        let request = harness.client.get(format!("{}{path}", harness.base())).bearer_auth(harness.live());
        let response = request.header("idempotency-key", "a b").header("idempotency-key", "c").send().await?;
        assert_eq!(response.status(), 200, "{path}");
        assert!(!response.headers().contains_key("idempotent-replayed"));
    }
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn test_keys_rehearse_all_of_it() -> Result<()> {
    let harness = Harness::start(1, &[]).await?;
    let ask = Ask { token: harness.test(), ..live(&harness) };
    let page = json!({ "url": "https://example.com/", "width": 320, "height": 240 });
    ask.twice("k", &page, 200).await?;
    // Nothing of a test key queues, so asking for it is no other request.
    let queued = Ask { query: "?async=true", ..Ask { token: harness.test(), ..live(&harness) } };
    let same = queued.send("k", &page).await?;
    assert_eq!((same.status, same.is_replay()), (200, true));
    assert_eq!(ask.send("k", &json!({ "url": "https://example.com/" })).await?.code()?, "idempotency_mismatch");
    assert_eq!(ask.twice("blocked", &json!({ "url": "http://blocked.test/" }), 422).await?.code()?, "render_blocked");
    assert_eq!(ask.twice("broken", &json!({ "url": "http://broken.test/" }), 500).await?.code()?, "render_failed");
    for (host, status) in [("exhausted", 402), ("busy", 429)] {
        for _ in 0..2 {
            let answer = ask.send("not-kept", &json!({ "url": format!("http://{host}.test/") })).await?;
            assert_eq!((answer.status, answer.is_replay()), (status, false));
        }
    }
    // The live key's `k` is another one.
    assert!(!live(&harness).send("k", &json!({ "url": harness.site.url("/tiny") })).await?.is_replay());

    // A slow one is in flight while it lasts.
    let slow = json!({ "url": "http://slow.test/", "width": 320, "height": 240 });
    let answers = join_all((0..4).map(|_| ask.send("slow", &slow))).await;
    let mut statuses: Vec<u16> = answers.into_iter().map(|answer| Ok(answer?.status)).collect::<Result<_>>()?;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409]);
    let after = ask.send("slow", &slow).await?;
    assert_eq!((after.status, after.is_replay()), (200, true));
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_at_once_make_one_grab_and_cost_one_credit() -> Result<()> {
    let harness = Harness::start(30, &[]).await?;
    let ask = live(&harness);
    let body = json!({ "url": harness.site.url("/slow/300") });
    let (mut done, mut conflicts) = (Vec::new(), 0);
    for answer in join_all((0..20).map(|_| ask.send("one", &body))).await {
        let answer = answer?;
        match answer.status {
            200 => done.push(answer.body),
            409 => conflicts += 1,
            other => anyhow::bail!("{other}: {}", answer.body),
        }
    }
    assert!(!done.is_empty() && done.iter().all(|body| *body == done[0]), "{done:?}");
    assert_eq!(done.len() + conflicts, 20);
    let queued = Ask { query: "?async=true", ..live(&harness) };
    let mut accepted = Vec::new();
    for answer in join_all((0..20).map(|_| queued.send("two", &body))).await {
        let answer = answer?;
        assert_eq!(answer.status, 202, "{}", answer.body);
        accepted.push((answer.body, answer.headers.contains_key("idempotent-replayed")));
    }
    assert!(accepted.iter().all(|(body, _)| *body == accepted[0].0));
    assert_eq!(accepted.iter().filter(|(_, replayed)| !replayed).count(), 1);
    assert_eq!(grabs(&harness, harness.live()).await?, 2);
    let id: Value = serde_json::from_str(&accepted[0].0)?;
    let wait = harness.client.get(format!("{}/grabs/{}", harness.base(), id["id"].as_str().context("id")?));
    let ended: Value = wait.bearer_auth(harness.live()).header("prefer", "wait=25").send().await?.json().await?;
    assert_eq!(ended["status"], json!("done"));
    assert_eq!(credits(&harness).await?, (28, 0));
    harness.finish().await
}
