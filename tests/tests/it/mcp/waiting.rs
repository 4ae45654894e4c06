//! Waiting for a slow page: progress on the way, and the answer as the last event.

use anyhow::{Context, Result};
use futures::StreamExt;
use grabd_tests::agent::{Agent, LEGACY, MODERN, told};
use grabd_tests::harness::Harness;
use serde_json::{Value, json};

/// The messages of a stream of events, and its comments.
fn parse(text: &str) -> Result<(Vec<Value>, usize)> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let messages = data.map(|data| Ok(serde_json::from_str(data)?)).collect::<Result<_>>()?;
    Ok((messages, text.lines().filter(|line| line.starts_with(':')).count()))
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_grows_until_the_answer() -> Result<()> {
    // The first grab holds the only slot, so that the second is seen waiting.
    for version in [LEGACY[0], MODERN] {
        for token in [json!("a token"), json!(7)] {
            let harness = Harness::start(5, &[("browser.slots", "1")]).await?;
            let body = json!({ "url": harness.site.url("/slow/2000") });
            let first = harness.client.post(format!("{}/grabs?async=true", harness.base())).bearer_auth(harness.live());
            first.json(&body).send().await?.error_for_status()?;
            harness.site.wait_for_hits("/slow/2000", 1).await;

            let agent = Agent::new(&harness, harness.live(), version);
            let mut params = json!({ "name": "create_grab", "arguments": { "url": harness.site.url("/slow/5500") } });
            params["_meta"]["progressToken"] = token.clone();
            let message = agent.message(json!("id"), "tools/call", params);
            let response = agent.send(agent.headers(&message), message.to_string()).await?;
            let headers = response.headers().clone();
            assert_eq!((response.status().as_u16(), headers["content-type"].to_str()?), (200, "text/event-stream"));
            assert_eq!(
                (headers["x-accel-buffering"].to_str()?, headers["cache-control"].to_str()?),
                ("no", "private, no-store")
            );
            assert!(headers.contains_key("ratelimit"), "{headers:?}");
            let (messages, _) = parse(&response.text().await?)?;
            let (last, progress) = messages.split_last().context("an answer")?;
            assert_eq!((&last["id"], &last["result"]["structuredContent"]["status"]), (&json!("id"), &json!("done")));
            let mut steps = Vec::new();
            for note in progress {
                assert_eq!(
                    (&note["method"], &note["params"]["progressToken"]),
                    (&json!("notifications/progress"), &token)
                );
                assert!(note.get("id").is_none());
                steps.push(note["params"]["progress"].as_f64().context("a number")?);
            }
            assert!(steps.is_sorted_by(|a, b| a < b) && steps.len() >= 3, "{steps:?}");
            let texts: Vec<_> =
                progress.iter().map(|note| note["params"]["message"].as_str().unwrap_or_default()).collect();
            assert_eq!((texts[0], texts[texts.len() - 1]), ("Waiting for a browser.", "The page is being rendered."));
            harness.finish().await?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_none_or_takes_no_events_gets_one_answer() -> Result<()> {
    let harness = Harness::start(5, &[]).await?;
    let agent = Agent::new(&harness, harness.live(), MODERN);
    let params = |token: Value| {
        let mut params = json!({ "name": "create_grab", "arguments": { "url": harness.site.url("/slow/300") } });
        if !token.is_null() {
            params["_meta"]["progressToken"] = token;
        }
        params
    };
    for (token, accept) in
        [(Value::Null, "application/json, text/event-stream"), (json!(1), "application/json"), (json!({}), "*/*")]
    {
        let message = agent.message(json!(1), "tools/call", params(token));
        let mut headers = agent.headers(&message);
        headers.insert("accept", accept.parse()?);
        assert_eq!(told(agent.send(headers, message.to_string()).await?).await?.structured()?["status"], "done");
    }
    // What is refused before there is a grab has its own answer, whoever wanted to hear of it.
    let mut wrong = params(json!(1));
    wrong["arguments"]["width"] = json!(1);
    let message = agent.message(json!(1), "tools/call", wrong.clone());
    assert_eq!(agent.post(&message).await?.failure()?["error"]["code"], "invalid_viewport");
    let stranger = Agent::new(&harness, "nobody", MODERN);
    assert_eq!(stranger.post(&message).await?.status, 401);
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_stream_is_kept_alive_and_ends_in_time() -> Result<()> {
    let harness = Harness::start(1, &[]).await?;
    let agent = Agent::new(&harness, harness.live(), MODERN);
    let mut params = json!({ "name": "create_grab", "arguments": { "url": harness.site.url("/hang") } });
    params["_meta"]["progressToken"] = json!("t");
    let message = agent.message(json!(1), "tools/call", params);
    let began = std::time::Instant::now();
    let mut events = agent.send(agent.headers(&message), message.to_string()).await?.bytes_stream();
    let mut text = String::new();
    while let Some(part) = events.next().await {
        text.push_str(std::str::from_utf8(&part?)?);
    }
    let (messages, _) = parse(&text)?;
    let last = messages.last().context("an answer")?;
    assert_eq!(last["result"]["isError"], true, "{last}");
    assert!(last["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("render_failed")));
    assert!((24..29).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert!(messages.len() >= 5, "something is told every five seconds: {}", messages.len());
    let (_, usage) = harness.get("/usage", harness.live()).await?;
    assert_eq!(usage["credits"]["total"], 1);
    harness.finish().await
}
