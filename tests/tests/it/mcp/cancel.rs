//! Taking a call back: a modern client closes its connection, a legacy one says so, and nobody pays for what nobody gets.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{CaptureGrabRequest, CreateGrabRequest, GrabStatus};
use grabd_tests::agent::{Agent, LEGACY, MODERN};
use grabd_tests::harness::Harness;
use reqwest::Response;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tonic::Request;
use tonic::transport::Endpoint;

/// How long an awaited event may take. It only bounds a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);
const KEY: &str = "once";

/// A service with one slot, and a page that never answers.
async fn start() -> Result<Harness> {
    Harness::start(3, &[("browser.slots", "1")]).await
}

fn create(harness: &Harness, path: &str) -> Value {
    json!({ "name": "create_grab", "arguments": { "url": harness.site.url(path), "idempotency_key": KEY } })
}

/// The newest grab, once it has ended.
async fn end(harness: &Harness) -> Result<Value> {
    let (_, list) = harness.get("/grabs?limit=1", harness.live()).await?;
    let id = list["data"][0]["id"].as_str().context("a grab")?.to_owned();
    let request = harness.client.get(format!("{}/grabs/{id}", harness.base())).bearer_auth(harness.live());
    Ok(request.header("prefer", "wait=25").send().await?.error_for_status()?.json().await?)
}

/// Credits that are left and not held, and those that are held.
async fn credits(harness: &Harness) -> Result<(i64, i64)> {
    let (_, usage) = harness.get("/usage", harness.live()).await?;
    let number = |name: &str| usage["credits"][name].as_i64().unwrap_or(-1);
    Ok((number("total"), number("held")))
}

/// Sends a call and goes away while the page is being rendered. With progress, the head of the answer is there at once.
async fn leaves(
    harness: &Harness,
    call: impl Future<Output = Result<Response>>,
    progress: bool,
    path: &str,
) -> Result<()> {
    let visited = harness.site.wait_for_hits(path, 1);
    if progress {
        let answer = call.await?;
        ensure!(answer.headers()["content-type"] == "text/event-stream", "{answer:?}");
        visited.await;
        return Ok(());
    }
    tokio::select! {
        answer = call => anyhow::bail!("it was answered: {answer:?}"),
        () = visited => Ok(()),
    }
}

/// The grab was taken back: it failed before its time, costs nothing, holds no slot, and its key is free.
async fn was_taken_back(harness: &Harness) -> Result<()> {
    let began = std::time::Instant::now();
    let grab = end(harness).await?;
    ensure!(began.elapsed() < Duration::from_secs(15), "it did not end before its time");
    assert_eq!(grab["status"], "failed", "{grab}");
    assert!(grab["error_message"].as_str().is_some_and(|text| text.contains("cancelled")), "{grab}");
    assert_eq!(credits(harness).await?, (3, 0));
    // The one slot is free again, so the render was broken off; and the key makes another grab.
    let agent = Agent::new(harness, harness.live(), MODERN);
    let again = timeout(Duration::from_secs(15), agent.ask("tools/call", create(harness, "/tiny"))).await??;
    assert_eq!(again.structured()?["status"], "done");
    assert_ne!(again.structured()?["id"], grab["id"]);
    assert_eq!(credits(harness).await?, (2, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_client_that_goes_away_takes_its_call_back() -> Result<()> {
    for progress in [false, true] {
        let harness = start().await?;
        let agent = Agent::new(&harness, harness.live(), MODERN);
        let mut params = create(&harness, "/hang");
        if progress {
            params["_meta"]["progressToken"] = json!("p");
        }
        let message = agent.message(json!(1), "tools/call", params);
        leaves(&harness, agent.send(agent.headers(&message), message.to_string()), progress, "/hang").await?;
        was_taken_back(&harness).await?;
        harness.finish().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_client_may_leave_while_it_waits_for_a_slot() -> Result<()> {
    let harness = start().await?;
    let body = json!({ "url": harness.site.url("/slow/3000") });
    let first = harness.client.post(format!("{}/grabs?async=true", harness.base())).bearer_auth(harness.live());
    first.json(&body).send().await?.error_for_status()?;
    harness.site.wait_for_hits("/slow/3000", 1).await;
    let agent = Agent::new(&harness, harness.live(), MODERN);
    let mut params = create(&harness, "/never");
    params["_meta"]["progressToken"] = json!(1);
    let message = agent.message(json!(1), "tools/call", params);
    let waiting = agent.send(agent.headers(&message), message.to_string()).await?;
    assert_eq!(credits(&harness).await?, (1, 2));
    drop(waiting);
    let grab = end(&harness).await?;
    assert_eq!(grab["status"], "failed");
    assert_eq!(harness.site.hits("/never"), 0);
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_client_that_goes_away_gets_its_grab_all_the_same() -> Result<()> {
    for progress in [false, true] {
        let harness = start().await?;
        let agent = Agent::new(&harness, harness.live(), LEGACY[0]);
        let mut params = create(&harness, "/slow/1500");
        if progress {
            params["_meta"] = json!({ "progressToken": "p" });
        }
        let message = agent.message(json!(1), "tools/call", params.clone());
        leaves(&harness, agent.send(agent.headers(&message), message.to_string()), progress, "/slow/1500").await?;
        let grab = end(&harness).await?;
        assert_eq!(grab["status"], "done", "{grab}");
        assert_eq!(credits(&harness).await?, (2, 0));
        // Asked again with the same key, it gets what it missed and pays nothing.
        let again = agent.ask("tools/call", create(&harness, "/slow/1500")).await?;
        assert_eq!((&again.structured()?["id"], credits(&harness).await?), (&grab["id"], (2, 0)));
        harness.finish().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_client_takes_its_call_back_by_saying_so() -> Result<()> {
    let harness = start().await?;
    let agent = Agent::new(&harness, harness.live(), LEGACY[0]);
    let message = agent.message(json!("c-1"), "tools/call", create(&harness, "/hang"));
    let call = TaskTracker::new().spawn(agent.send(agent.headers(&message), message.to_string()));
    harness.site.wait_for_hits("/hang", 1).await;
    // Neither another id, nor another's credential, nor the modern era's notification mean this call.
    let note =
        |id: Value| json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    agent.post(&note(json!("c-2"))).await?;
    Agent::new(&harness, harness.test(), LEGACY[0]).post(&note(json!("c-1"))).await?;
    Agent::new(&harness, harness.live(), MODERN).post(&note(json!("c-1"))).await?;
    assert_eq!(credits(&harness).await?, (2, 1));
    assert!(!call.is_finished());
    assert_eq!(agent.post(&note(json!("c-1"))).await?.status, 202);
    let answer: Value = timeout(PATIENCE, call).await???.json().await?;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    was_taken_back(&harness).await?;
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_stays_done_and_rest_callers_cancel_nothing() -> Result<()> {
    let harness = start().await?;
    let agent = Agent::new(&harness, harness.live(), LEGACY[0]);
    let done = agent.ask("tools/call", create(&harness, "/tiny")).await?;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(agent.post(&note).await?.status, 202);
    assert_eq!(end(&harness).await?["id"], done.structured()?["id"]);
    assert_eq!(credits(&harness).await?, (2, 0));

    let body = json!({ "url": harness.site.url("/slow/900") });
    let rest = harness.client.post(format!("{}/grabs", harness.base())).bearer_auth(harness.live()).json(&body).send();
    tokio::select! {
        answer = rest => anyhow::bail!("{answer:?}"),
        () = harness.site.wait_for_hits("/slow/900", 1) => {}
    }
    assert_eq!(end(&harness).await?["status"], "done");
    assert_eq!(credits(&harness).await?, (1, 0));
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_call_that_is_cancelled_takes_its_grab_back() -> Result<()> {
    let harness = start().await?;
    let channel = Endpoint::try_from(format!("http://{}", harness.service.grpc()))?.connect().await?;
    let capture = |path: &str| {
        let create = CreateGrabRequest {
            url: Some(harness.site.url(path)),
            idempotency_key: Some(KEY.to_owned()),
            ..CreateGrabRequest::default()
        };
        let mut request = Request::new(CaptureGrabRequest { create: Some(create) });
        let key = format!("Bearer {}", harness.live()).parse().expect("a key is ASCII");
        request.metadata_mut().insert("authorization", key);
        request
    };
    let mut grabs = GrabServiceClient::new(channel);
    let mut states = grabs.capture_grab(capture("/slow/500")).await?.into_inner();
    let mut seen = Vec::new();
    while let Some(state) = timeout(PATIENCE, states.message()).await?? {
        let grab = state.grab.context("a grab")?;
        seen.push((grab.revision, grab.status()));
    }
    assert!(seen.is_sorted_by(|(a, _), (b, _)| a < b), "{seen:?}");
    assert_eq!(seen.last().map(|(_, status)| *status), Some(GrabStatus::Done));
    assert_eq!(credits(&harness).await?, (2, 0));
    // The same key: the one answer, at once.
    let mut states = grabs.capture_grab(capture("/slow/500")).await?.into_inner();
    let replay = states.message().await?.context("a replay")?;
    assert!(replay.replayed && states.message().await?.is_none());
    assert_eq!(grabs.capture_grab(capture("/hang")).await.unwrap_err().code(), tonic::Code::InvalidArgument);
    harness.finish().await?;

    let harness = start().await?;
    let channel = Endpoint::try_from(format!("http://{}", harness.service.grpc()))?.connect().await?;
    let create = CreateGrabRequest {
        url: Some(harness.site.url("/hang")),
        idempotency_key: Some(KEY.to_owned()),
        ..CreateGrabRequest::default()
    };
    let mut request = Request::new(CaptureGrabRequest { create: Some(create) });
    request.metadata_mut().insert("authorization", format!("Bearer {}", harness.live()).parse()?);
    let states = GrabServiceClient::new(channel).capture_grab(request).await?;
    harness.site.wait_for_hits("/hang", 1).await;
    drop(states);
    was_taken_back(&harness).await?;
    harness.finish().await
}
