//! Watching a grab over WatchGrab, Server-Sent Events and `Prefer: wait`, which read the same stream.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{Grab, GrabStatus, RenderStage, StageReached, WatchGrabRequest, WatchGrabResponse};
use grabd_tests::harness::TestApp;
use reqwest::Response;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

/// Time limit for a state. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(30);
const UNKNOWN_ID: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

/// Starts a service with one slot and two grabs. The first occupies the slot, so the second waits.
async fn two_grabs(credits: u32) -> Result<(TestApp, String, String)> {
    let app = TestApp::start(credits, &[("browser.slots", "1")]).await?;
    let first = queue(&app, "/slow/1500").await?;
    app.site.wait_for_hits("/slow/1500", 1).await;
    let second = queue(&app, "/slow/700").await?;
    Ok((app, first, second))
}

async fn queue(app: &TestApp, path: &str) -> Result<String> {
    let body = json!({ "url": app.site.url(path) });
    let create = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
    let grab: Value = create.json(&body).send().await?.error_for_status()?.json().await?;
    Ok(grab["id"].as_str().context("an id")?.to_owned())
}

async fn channel(app: &TestApp) -> Result<Channel> {
    Ok(Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?)
}

async fn watch(
    channel: &Channel,
    key: &str,
    id: &str,
    after_revision: i64,
) -> Result<Streaming<WatchGrabResponse>, Status> {
    open(channel, key, WatchGrabRequest { id: id.to_owned(), after_revision, with_stages: false }).await
}

async fn open(channel: &Channel, key: &str, watch: WatchGrabRequest) -> Result<Streaming<WatchGrabResponse>, Status> {
    let mut request = Request::new(watch);
    request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().expect("a key is ASCII"));
    GrabServiceClient::new(channel.clone()).watch_grab(request).await.map(tonic::Response::into_inner)
}

async fn next(stream: &mut Streaming<WatchGrabResponse>) -> Result<Option<Grab>> {
    let message = timeout(WAIT_LIMIT, stream.message()).await.context("no state arrived")??;
    Ok(message.and_then(|message| message.grab))
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_starts_with_the_current_state_and_ends_with_the_grab() -> Result<()> {
    let (app, _, id) = two_grabs(5).await?;
    let channel = channel(&app).await?;
    let mut stream = watch(&channel, app.live(), &id, 0).await?;
    let mut seen = Vec::new();
    while let Some(grab) = next(&mut stream).await? {
        seen.push((grab.status(), grab.revision));
    }
    let statuses: Vec<_> = seen.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [GrabStatus::Pending, GrabStatus::Processing, GrabStatus::Done]);
    assert!(seen.is_sorted_by(|(_, a), (_, b)| a < b), "{seen:?}");

    // With a revision, the stream starts with the next one. After the last one it is empty.
    let (_, processing) = seen[1];
    let mut resumed = watch(&channel, app.live(), &id, processing).await?;
    assert_eq!(next(&mut resumed).await?.map(|grab| grab.status()), Some(GrabStatus::Done));
    assert_eq!(next(&mut resumed).await?, None);
    let mut over = watch(&channel, app.live(), &id, seen[2].1).await?;
    assert_eq!(next(&mut over).await?, None);

    // Unknown ids, ids of other environments and malformed ids are reported as not found at once.
    for (key, id) in [(app.live(), UNKNOWN_ID), (app.test(), id.as_str()), (app.live(), "no-id")] {
        assert_eq!(watch(&channel, key, id, 0).await.unwrap_err().code(), Code::NotFound, "{id}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn stages_are_sent_to_those_who_ask_also_if_they_come_late() -> Result<()> {
    let app = TestApp::start(5, &[("browser.slots", "1")]).await?;
    let id = queue(&app, "/held/tiny").await?;
    let channel = channel(&app).await?;
    let follow = |after_revision, with_stages| {
        let request = WatchGrabRequest { id: id.clone(), after_revision, with_stages };
        open(&channel, app.live(), request)
    };
    let mut early = follow(0, true).await?;
    let mut plain = follow(0, false).await?;
    // The page is held back, so that the attempt stays at its first stage.
    let first = loop {
        let grab = next(&mut early).await?.context("a stage")?;
        if let [stage] = grab.stages[..] {
            break (grab.status(), grab.revision, stage);
        }
        assert!(grab.stages.is_empty(), "{grab:?}");
    };
    let (status, revision, StageReached { stage, ms }) = first;
    assert_eq!((status, revision, stage), (GrabStatus::Processing, 2, RenderStage::Navigating.into()));
    assert!(ms < 10_000, "{ms} ms since the start of the attempt");
    // A reader that comes late gets the current stage at once, also one that has seen the revision.
    for after_revision in [0, 2] {
        let late = next(&mut follow(after_revision, true).await?).await?.context("a state")?;
        assert_eq!((late.revision, late.stages), (2, vec![first.2]));
    }
    // Without them, there is only one message for each revision.
    let mut revisions = Vec::new();
    while let Some(grab) = next(&mut plain).await? {
        assert!(grab.stages.is_empty(), "{grab:?}");
        revisions.push(grab.revision);
        if revisions.last() == Some(&2) {
            break;
        }
    }
    assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
    // Later stages are at the same revision, and none is left at the end.
    app.client.post(app.site.url("/held/tiny")).send().await?.error_for_status()?;
    let mut last = Grab::default();
    while let Some(grab) = next(&mut early).await? {
        assert_eq!((grab.revision > 2, grab.stages.is_empty()), (grab.status() == GrabStatus::Done, grab.revision > 2));
        last = grab;
    }
    assert_eq!(last.status(), GrabStatus::Done);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_reader_skips_to_the_latest_state() -> Result<()> {
    let (app, _, id) = two_grabs(5).await?;
    // The flow-control window is smaller than a message, so unread states stay in the service.
    let slow = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.initial_stream_window_size(16);
    let slow = slow.connect().await?;
    let mut stream = watch(&slow, app.live(), &id, 0).await?;
    let first = next(&mut stream).await?.context("a first state")?;
    assert_eq!(first.revision, 1);
    // Meanwhile: processing, pending again because the browser was killed, processing, done.
    app.site.wait_for_hits("/slow/700", 1).await;
    let browser = *app.service.health().pids.first().context("a browser")?;
    kill_process(i32::try_from(browser).ok().and_then(Pid::from_raw).context("a pid")?, Signal::KILL)?;
    let fast = channel(&app).await?;
    let mut fast_stream = watch(&fast, app.live(), &id, 0).await?;
    while next(&mut fast_stream).await?.is_some() {}
    let mut seen = Vec::new();
    while let Some(grab) = next(&mut stream).await? {
        seen.push(grab.revision);
    }
    assert_eq!(seen.last(), Some(&6), "done after two attempts");
    // At most one message is in transit and one is buffered. Revisions 2, 3, 4 and 6 have occurred.
    assert!(seen.len() <= 3, "{seen:?} were buffered for a reader that did not read");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_ends_streams_events_and_waits() -> Result<()> {
    let (app, _, id) = two_grabs(5).await?;
    let wait = wait(&app, &id, "wait=25", Some("W/\"1\"")).await;
    // It must have arrived, since new connections are refused from the drain on.
    timeout(WAIT_LIMIT, first_watcher(&app)).await.context("the wait did not begin")??;
    let mut stream = watch(&channel(&app).await?, app.live(), &id, 0).await?;
    assert_eq!(next(&mut stream).await?.map(|grab| grab.status()), Some(GrabStatus::Pending));
    let mut events = events(&app, &id, None).await?.bytes_stream();
    events.next().await.context("a first event")??;

    let received = async {
        let status = timeout(WAIT_LIMIT, stream.message()).await.context("the stream did not end")?.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status}");
        while let Some(event) = timeout(WAIT_LIMIT, events.next()).await.context("the events did not end")? {
            event?;
        }
        // The caller already knows the current revision.
        assert_eq!(wait.await??.status(), 304);
        Ok::<_, anyhow::Error>(())
    };
    let (received, finished) = tokio::join!(received, app.finish());
    received?;
    finished
}

#[tokio::test(flavor = "multi_thread")]
async fn server_sent_events_carry_the_same_revisions() -> Result<()> {
    let (app, _, id) = two_grabs(5).await?;
    let response = events(&app, &id, None).await?;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await?;
    let received = parse(&text)?;
    let statuses: Vec<_> = received.iter().map(|(_, grab)| grab["status"].as_str().unwrap_or_default()).collect();
    assert_eq!(statuses, ["pending", "processing", "done"]);
    assert!(received.is_sorted_by(|(a, _), (b, _)| a < b), "{received:?}");
    let (_, shown) = app.get(&format!("/grabs/{id}"), app.live()).await?;
    assert_eq!(received[2].1, shown);
    assert!(shown.get("stages").is_none());
    // Between them come the stages, with the id of their revision. The site answers late, so that the first is seen.
    let stages = parse_named(&text, "stage")?;
    let (id_of_first, first) = stages.first().context("a stage")?;
    assert_eq!((*id_of_first, &first["status"]), (received[1].0, &json!("processing")));
    for (id, stage) in &stages {
        assert_eq!((*id, stage["stages"][0]["stage"].as_str()), (received[1].0, Some("navigating")), "{stage}");
    }

    let resumed = parse(&events(&app, &id, Some(&received[1].0.to_string())).await?.text().await?)?;
    assert_eq!(resumed, received[2..]);
    // A reader that has seen the end gets 204, so that it does not reconnect.
    assert_eq!(events(&app, &id, Some(&received[2].0.to_string())).await?.status(), 204);
    let unknown = events(&app, UNKNOWN_ID, None).await?;
    assert_eq!(unknown.status(), 404);
    assert!(unknown.text().await?.contains("not_found"));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn prefer_wait_ends_with_a_new_revision_or_the_timeout() -> Result<()> {
    let (app, _, id) = two_grabs(5).await?;
    // A wait that is too short returns the current state.
    let (short, body) = applied_preference(wait(&app, &id, "wait=1", None).await.await??).await?;
    assert_eq!((short.as_str(), &body["status"]), ("wait=1", &json!("pending")));
    // With a known revision, the wait ends with the next one. Otherwise it ends with the grab.
    let (news, end) = tokio::join!(wait(&app, &id, "wait=25", Some("W/\"1\"")), wait(&app, &id, "wait=25", None));
    let (_, news) = applied_preference(news.await??).await?;
    assert_eq!(news["status"], json!("processing"));
    let (long, end) = applied_preference(end.await??).await?;
    assert_eq!((long.as_str(), &end["status"]), ("wait=25", &json!("done")));
    assert_eq!(wait(&app, UNKNOWN_ID, "wait=5", None).await.await??.status(), 404);
    app.finish().await
}

/// Waits until a caller waits for a grab.
async fn first_watcher(app: &TestApp) -> Result<()> {
    let url = format!("http://{}/metrics", app.service.metrics());
    loop {
        let metrics = app.client.get(&url).send().await?.text().await?;
        if metrics.lines().any(|line| line == "grabd_grabs_watched 1") {
            return Ok(());
        }
    }
}

async fn events(app: &TestApp, id: &str, last: Option<&str>) -> Result<Response> {
    let mut request = app.client.get(format!("{}/grabs/{id}/events", app.base())).bearer_auth(app.live());
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    Ok(request.send().await?)
}

/// Parses id and data of every revision.
fn parse(text: &str) -> Result<Vec<(u64, Value)>> {
    parse_named(text, "grab")
}

/// Parses id and data of the events with this name.
fn parse_named(text: &str, name: &str) -> Result<Vec<(u64, Value)>> {
    let field = |event: &str, name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned());
        line.with_context(|| format!("{name} in {event:?}"))
    };
    let is_named = |event: &&str| event.lines().any(|line| line == format!("event: {name}"));
    let events = text.split("\n\n").filter(is_named);
    events.map(|event| Ok((field(event, "id:")?.parse()?, serde_json::from_str(&field(event, "data:")?)?))).collect()
}

/// Sends a request with `Prefer: wait` in the background.
async fn wait(
    app: &TestApp,
    id: &str,
    prefer: &str,
    seen: Option<&str>,
) -> tokio::task::JoinHandle<reqwest::Result<Response>> {
    let mut request = app.client.get(format!("{}/grabs/{id}", app.base())).bearer_auth(app.live());
    request = request.header("prefer", prefer);
    if let Some(seen) = seen {
        request = request.header("if-none-match", seen);
    }
    tokio_util::task::TaskTracker::new().spawn(request.send())
}

/// The applied preference and the grab.
async fn applied_preference(response: Response) -> Result<(String, Value)> {
    let applied = response.headers().get("preference-applied").context("Preference-Applied")?.to_str()?.to_owned();
    Ok((applied, response.json().await?))
}
