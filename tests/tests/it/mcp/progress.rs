//! Progress notifications of a slow capture, followed by the response as the last event.

use anyhow::{Context, Result};
use futures::StreamExt;
use grabd_tests::agent::{Agent, LEGACY, MODERN, check_tool_error, read_response};
use grabd_tests::harness::TestApp;
use serde_json::{Value, json};

/// Parses an event stream into its messages and the number of comments.
fn parse(text: &str) -> Result<(Vec<Value>, usize)> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let messages = data.map(|data| Ok(serde_json::from_str(data)?)).collect::<Result<_>>()?;
    Ok((messages, text.lines().filter(|line| line.starts_with(':')).count()))
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_increases_until_the_response() -> Result<()> {
    // The first grab occupies the only slot, so that the second waits.
    for version in [LEGACY[0], MODERN] {
        for token in [json!("a token"), json!(7)] {
            let app = TestApp::start(5, &[("browser.slots", "1")]).await?;
            let body = json!({ "url": app.site.url("/slow/2000") });
            let first = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
            first.json(&body).send().await?.error_for_status()?;
            app.site.wait_for_hits("/slow/2000", 1).await;

            let agent = Agent::new(&app, app.live(), version);
            let mut params = json!({ "name": "create_grab", "arguments": { "url": app.site.url("/slow/5500") } });
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
                assert_eq!(note["params"]["total"], 100.0);
                steps.push(note["params"]["progress"].as_f64().context("a number")?);
            }
            assert!(steps.is_sorted_by(|a, b| a < b) && steps.len() >= 3, "{steps:?}");
            let texts: Vec<_> =
                progress.iter().map(|note| note["params"]["message"].as_str().unwrap_or_default()).collect();
            assert_eq!(texts[0], "Waiting for a free browser.");
            // By stage, not by time: most pages take a second of the thirty that a call may take.
            assert!(steps[0] < 15.0 && steps.last().is_some_and(|last| *last >= 45.0), "{steps:?}");
            // The site answers after five seconds, so that this stage cannot be missed.
            assert!(texts.contains(&"The page is being opened."), "{texts:?}");
            app.finish().await?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_without_progress_get_a_single_json_response() -> Result<()> {
    let app = TestApp::start(5, &[]).await?;
    let agent = Agent::new(&app, app.live(), MODERN);
    let params = |token: Value| {
        let mut params = json!({ "name": "create_grab", "arguments": { "url": app.site.url("/slow/300") } });
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
        assert_eq!(
            read_response(agent.send(headers, message.to_string()).await?).await?.structured()?["status"],
            "done"
        );
    }
    // Requests that are refused before a grab exists get a plain response, even with a progress token.
    let mut wrong = params(json!(1));
    wrong["arguments"]["width"] = json!(1);
    let message = agent.message(json!(1), "tools/call", wrong.clone());
    assert_eq!(agent.post(&message).await?.failure()?["error"]["code"], "invalid_viewport");
    let unauthenticated = Agent::new(&app, "nobody", MODERN);
    assert_eq!(unauthenticated.post(&message).await?.status, 401);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_of_a_hanging_page_is_kept_alive_and_ends_in_time() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let agent = Agent::new(&app, app.live(), MODERN);
    let mut params = json!({ "name": "create_grab", "arguments": { "url": app.site.url("/hang") } });
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
    check_tool_error(last)?;
    assert!(last["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("render_failed")));
    assert!((24..29).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert!(messages.len() >= 5, "progress is sent every five seconds: {}", messages.len());
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!(usage["credits"]["total"], 1);
    app.finish().await
}
