//! Cancelling a call: a modern client closes its connection, a legacy one sends a notification. Cancelled grabs cost
//! nothing.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{CaptureGrabRequest, CreateGrabRequest, GrabStatus};
use grabd_tests::agent::{Agent, LEGACY, MODERN, check_tool_error};
use grabd_tests::harness::TestApp;
use reqwest::Response;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tonic::Request;
use tonic::transport::Endpoint;

/// Time limit for an event. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(30);
const KEY: &str = "once";

/// Starts a service with one slot.
async fn start() -> Result<TestApp> {
    TestApp::start(3, &[("browser.slots", "1")]).await
}

fn create(app: &TestApp, path: &str) -> Value {
    json!({ "name": "create_grab", "arguments": { "url": app.site.url(path), "idempotency_key": KEY } })
}

/// Waits for the end of the newest grab.
async fn end(app: &TestApp) -> Result<Value> {
    let (_, list) = app.get("/grabs?limit=1", app.live()).await?;
    let id = list["data"][0]["id"].as_str().context("a grab")?.to_owned();
    let request = app.client.get(format!("{}/grabs/{id}", app.base())).bearer_auth(app.live());
    Ok(request.header("prefer", "wait=25").send().await?.error_for_status()?.json().await?)
}

/// The available and the held credits.
async fn credits(app: &TestApp) -> Result<(i64, i64)> {
    let (_, usage) = app.get("/usage", app.live()).await?;
    let number = |name: &str| usage["credits"][name].as_i64().unwrap_or(-1);
    Ok((number("total"), number("held")))
}

/// Sends a call and disconnects while the page is being rendered. With progress, the response header is sent at once.
async fn disconnect_during_call(
    app: &TestApp,
    call: impl Future<Output = Result<Response>>,
    progress: bool,
    path: &str,
) -> Result<()> {
    let visited = app.site.wait_for_hits(path, 1);
    if progress {
        let answer = call.await?;
        ensure!(answer.headers()["content-type"] == "text/event-stream", "{answer:?}");
        visited.await;
        return Ok(());
    }
    tokio::select! {
        answer = call => anyhow::bail!("unexpected response: {answer:?}"),
        () = visited => Ok(()),
    }
}

/// Checks that the grab was cancelled: it failed early, costs nothing, holds no slot, and its key is free.
async fn assert_cancelled(app: &TestApp) -> Result<()> {
    let began = std::time::Instant::now();
    let grab = end(app).await?;
    ensure!(began.elapsed() < Duration::from_secs(15), "the grab did not end early");
    assert_eq!(grab["status"], "failed", "{grab}");
    assert!(grab["error_message"].as_str().is_some_and(|text| text.contains("cancelled")), "{grab}");
    assert_eq!(credits(app).await?, (3, 0));
    // The slot is free again, so the capture was aborted. The key creates another grab.
    let agent = Agent::new(app, app.live(), MODERN);
    let again = timeout(Duration::from_secs(15), agent.ask("tools/call", create(app, "/tiny"))).await??;
    assert_eq!(again.structured()?["status"], "done");
    assert_ne!(again.structured()?["id"], grab["id"]);
    assert_eq!(credits(app).await?, (2, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn modern_client_disconnect_cancels_the_call() -> Result<()> {
    for progress in [false, true] {
        let app = start().await?;
        let agent = Agent::new(&app, app.live(), MODERN);
        let mut params = create(&app, "/hang");
        if progress {
            params["_meta"]["progressToken"] = json!("p");
        }
        let message = agent.message(json!(1), "tools/call", params);
        disconnect_during_call(&app, agent.send(agent.headers(&message), message.to_string()), progress, "/hang")
            .await?;
        assert_cancelled(&app).await?;
        app.finish().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn modern_client_disconnect_cancels_a_waiting_call() -> Result<()> {
    let app = start().await?;
    let body = json!({ "url": app.site.url("/slow/3000") });
    let first = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
    first.json(&body).send().await?.error_for_status()?;
    app.site.wait_for_hits("/slow/3000", 1).await;
    let agent = Agent::new(&app, app.live(), MODERN);
    let mut params = create(&app, "/never");
    params["_meta"]["progressToken"] = json!(1);
    let message = agent.message(json!(1), "tools/call", params);
    let waiting = agent.send(agent.headers(&message), message.to_string()).await?;
    assert_eq!(credits(&app).await?, (1, 2));
    drop(waiting);
    let grab = end(&app).await?;
    assert_eq!(grab["status"], "failed");
    assert_eq!(app.site.hits("/never"), 0);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_client_disconnect_does_not_cancel_the_call() -> Result<()> {
    for progress in [false, true] {
        let app = start().await?;
        let agent = Agent::new(&app, app.live(), LEGACY[0]);
        let mut params = create(&app, "/slow/1500");
        if progress {
            params["_meta"] = json!({ "progressToken": "p" });
        }
        let message = agent.message(json!(1), "tools/call", params.clone());
        disconnect_during_call(&app, agent.send(agent.headers(&message), message.to_string()), progress, "/slow/1500")
            .await?;
        let grab = end(&app).await?;
        assert_eq!(grab["status"], "done", "{grab}");
        assert_eq!(credits(&app).await?, (2, 0));
        // A repeated call with the same key returns the missed result and costs nothing.
        let again = agent.ask("tools/call", create(&app, "/slow/1500")).await?;
        assert_eq!((&again.structured()?["id"], credits(&app).await?), (&grab["id"], (2, 0)));
        app.finish().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_client_cancels_by_notification() -> Result<()> {
    let app = start().await?;
    let agent = Agent::new(&app, app.live(), LEGACY[0]);
    let message = agent.message(json!("c-1"), "tools/call", create(&app, "/hang"));
    let call = TaskTracker::new().spawn(agent.send(agent.headers(&message), message.to_string()));
    app.site.wait_for_hits("/hang", 1).await;
    // Another id, another credential or the notification of the modern era do not cancel this call.
    let note =
        |id: Value| json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    agent.post(&note(json!("c-2"))).await?;
    Agent::new(&app, app.test(), LEGACY[0]).post(&note(json!("c-1"))).await?;
    Agent::new(&app, app.live(), MODERN).post(&note(json!("c-1"))).await?;
    assert_eq!(credits(&app).await?, (2, 1));
    assert!(!call.is_finished());
    assert_eq!(agent.post(&note(json!("c-1"))).await?.status, 202);
    let answer: Value = timeout(WAIT_LIMIT, call).await???.json().await?;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    check_tool_error(&answer)?;
    assert_cancelled(&app).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_calls_and_rest_disconnects_are_not_cancelled() -> Result<()> {
    let app = start().await?;
    let agent = Agent::new(&app, app.live(), LEGACY[0]);
    let done = agent.ask("tools/call", create(&app, "/tiny")).await?;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(agent.post(&note).await?.status, 202);
    assert_eq!(end(&app).await?["id"], done.structured()?["id"]);
    assert_eq!(credits(&app).await?, (2, 0));

    let body = json!({ "url": app.site.url("/slow/900") });
    let rest = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.live()).json(&body).send();
    tokio::select! {
        answer = rest => anyhow::bail!("{answer:?}"),
        () = app.site.wait_for_hits("/slow/900", 1) => {}
    }
    assert_eq!(end(&app).await?["status"], "done");
    assert_eq!(credits(&app).await?, (1, 0));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_grpc_call_cancels_its_grab() -> Result<()> {
    let app = start().await?;
    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let capture = |path: &str| {
        let create = CreateGrabRequest {
            url: Some(app.site.url(path)),
            idempotency_key: Some(KEY.to_owned()),
            ..CreateGrabRequest::default()
        };
        let mut request = Request::new(CaptureGrabRequest { create: Some(create), with_stages: false });
        let key = format!("Bearer {}", app.live()).parse().expect("a key is ASCII");
        request.metadata_mut().insert("authorization", key);
        request
    };
    let mut grabs = GrabServiceClient::new(channel);
    let mut states = grabs.capture_grab(capture("/slow/500")).await?.into_inner();
    let mut seen = Vec::new();
    while let Some(state) = timeout(WAIT_LIMIT, states.message()).await?? {
        let grab = state.grab.context("a grab")?;
        seen.push((grab.revision, grab.status()));
    }
    assert!(seen.is_sorted_by(|(a, _), (b, _)| a < b), "{seen:?}");
    assert_eq!(seen.last().map(|(_, status)| *status), Some(GrabStatus::Done));
    assert_eq!(credits(&app).await?, (2, 0));
    // The same key returns the same result at once.
    let mut states = grabs.capture_grab(capture("/slow/500")).await?.into_inner();
    let replay = states.message().await?.context("a replay")?;
    assert!(replay.replayed && states.message().await?.is_none());
    assert_eq!(grabs.capture_grab(capture("/hang")).await.unwrap_err().code(), tonic::Code::InvalidArgument);
    app.finish().await?;

    let app = start().await?;
    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let create = CreateGrabRequest {
        url: Some(app.site.url("/hang")),
        idempotency_key: Some(KEY.to_owned()),
        ..CreateGrabRequest::default()
    };
    let mut request = Request::new(CaptureGrabRequest { create: Some(create), with_stages: false });
    request.metadata_mut().insert("authorization", format!("Bearer {}", app.live()).parse()?);
    let states = GrabServiceClient::new(channel).capture_grab(request).await?;
    app.site.wait_for_hits("/hang", 1).await;
    drop(states);
    assert_cancelled(&app).await?;
    app.finish().await
}
