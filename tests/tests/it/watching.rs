//! Following a grab: WatchGrab, Server-Sent Events and `Prefer: wait`, which are three readers of one stream.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{Grab, GrabStatus, WatchGrabRequest, WatchGrabResponse};
use grabd_tests::harness::Harness;
use reqwest::Response;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

/// How long an awaited state may take. It only bounds a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);
const NOBODY: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

/// One slot, which the first grab holds for a while: the second is seen waiting.
async fn two_grabs(credits: u32) -> Result<(Harness, String, String)> {
    let harness = Harness::start(credits, &[("browser.slots", "1")]).await?;
    let first = queue(&harness, "/slow/1500").await?;
    harness.site.wait_for_hits("/slow/1500", 1).await;
    let second = queue(&harness, "/slow/700").await?;
    Ok((harness, first, second))
}

async fn queue(harness: &Harness, path: &str) -> Result<String> {
    let body = json!({ "url": harness.site.url(path) });
    let create = harness.client.post(format!("{}/grabs?async=true", harness.base())).bearer_auth(harness.live());
    let grab: Value = create.json(&body).send().await?.error_for_status()?.json().await?;
    Ok(grab["id"].as_str().context("an id")?.to_owned())
}

async fn channel(harness: &Harness) -> Result<Channel> {
    Ok(Endpoint::try_from(format!("http://{}", harness.service.grpc()))?.connect().await?)
}

async fn watch(
    channel: &Channel,
    key: &str,
    id: &str,
    after_revision: i64,
) -> Result<Streaming<WatchGrabResponse>, Status> {
    let mut request = Request::new(WatchGrabRequest { id: id.to_owned(), after_revision });
    request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().expect("a key is ASCII"));
    GrabServiceClient::new(channel.clone()).watch_grab(request).await.map(tonic::Response::into_inner)
}

async fn next(stream: &mut Streaming<WatchGrabResponse>) -> Result<Option<Grab>> {
    let message = timeout(PATIENCE, stream.message()).await.context("nothing is told")??;
    Ok(message.and_then(|message| message.grab))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_what_is_and_ends_with_the_end() -> Result<()> {
    let (harness, _, id) = two_grabs(5).await?;
    let channel = channel(&harness).await?;
    let mut stream = watch(&channel, harness.live(), &id, 0).await?;
    let mut seen = Vec::new();
    while let Some(grab) = next(&mut stream).await? {
        seen.push((grab.status(), grab.revision));
    }
    let statuses: Vec<_> = seen.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [GrabStatus::Pending, GrabStatus::Processing, GrabStatus::Done]);
    assert!(seen.is_sorted_by(|(_, a), (_, b)| a < b), "{seen:?}");

    // Who comes back with a revision is told what came after it; after the end, that is nothing.
    let (_, processing) = seen[1];
    let mut resumed = watch(&channel, harness.live(), &id, processing).await?;
    assert_eq!(next(&mut resumed).await?.map(|grab| grab.status()), Some(GrabStatus::Done));
    assert_eq!(next(&mut resumed).await?, None);
    let mut over = watch(&channel, harness.live(), &id, seen[2].1).await?;
    assert_eq!(next(&mut over).await?, None);

    // An id that is nobody's, another team's or none is told before anything else.
    for (key, id) in [(harness.live(), NOBODY), (harness.test(), id.as_str()), (harness.live(), "no-id")] {
        assert_eq!(watch(&channel, key, id, 0).await.unwrap_err().code(), Code::NotFound, "{id}");
    }
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_is_told_the_latest() -> Result<()> {
    let (harness, _, id) = two_grabs(5).await?;
    // A reader whose window holds less than a message: what it does not take stays with the service.
    let slow = Endpoint::try_from(format!("http://{}", harness.service.grpc()))?.initial_stream_window_size(16);
    let slow = slow.connect().await?;
    let mut stream = watch(&slow, harness.live(), &id, 0).await?;
    let first = next(&mut stream).await?.context("a first state")?;
    assert_eq!(first.revision, 1);
    // Meanwhile: processing, pending again because the browser died, processing, done.
    harness.site.wait_for_hits("/slow/700", 1).await;
    let browser = *harness.service.health().pids.first().context("a browser")?;
    kill_process(i32::try_from(browser).ok().and_then(Pid::from_raw).context("a pid")?, Signal::KILL)?;
    let fast = channel(&harness).await?;
    let mut attentive = watch(&fast, harness.live(), &id, 0).await?;
    while next(&mut attentive).await?.is_some() {}
    let mut seen = Vec::new();
    while let Some(grab) = next(&mut stream).await? {
        seen.push(grab.revision);
    }
    assert_eq!(seen.last(), Some(&6), "done after two attempts");
    // One is under way and one behind it when the window is full; 2, 3, 4 and 6 have been.
    assert!(seen.len() <= 3, "{seen:?} were kept for a reader who did not read");
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_every_way_of_waiting() -> Result<()> {
    let (harness, _, id) = two_grabs(5).await?;
    let mut stream = watch(&channel(&harness).await?, harness.live(), &id, 0).await?;
    assert_eq!(next(&mut stream).await?.map(|grab| grab.status()), Some(GrabStatus::Pending));
    let mut events = events(&harness, &id, None).await?.bytes_stream();
    events.next().await.context("a first event")??;
    let wait = wait(&harness, &id, "wait=25", Some("W/\"1\"")).await;

    let told = async {
        let status = timeout(PATIENCE, stream.message()).await.context("the stream goes on")?.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status}");
        while let Some(event) = timeout(PATIENCE, events.next()).await.context("the events go on")? {
            event?;
        }
        // Nothing that its caller does not know yet.
        assert_eq!(wait.await??.status(), 304);
        Ok::<_, anyhow::Error>(())
    };
    let (told, finished) = tokio::join!(told, harness.finish());
    told?;
    finished
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_the_same_revisions() -> Result<()> {
    let (harness, _, id) = two_grabs(5).await?;
    let response = events(&harness, &id, None).await?;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let told = parse(&response.text().await?)?;
    let statuses: Vec<_> = told.iter().map(|(_, grab)| grab["status"].as_str().unwrap_or_default()).collect();
    assert_eq!(statuses, ["pending", "processing", "done"]);
    assert!(told.is_sorted_by(|(a, _), (b, _)| a < b), "{told:?}");
    let (_, shown) = harness.get(&format!("/grabs/{id}"), harness.live()).await?;
    assert_eq!(told[2].1, shown);

    let resumed = parse(&events(&harness, &id, Some(&told[1].0.to_string())).await?.text().await?)?;
    assert_eq!(resumed, told[2..]);
    // A reader that has seen the end is told to stay away.
    assert_eq!(events(&harness, &id, Some(&told[2].0.to_string())).await?.status(), 204);
    let nobody = events(&harness, NOBODY, None).await?;
    assert_eq!(nobody.status(), 404);
    assert!(nobody.text().await?.contains("not_found"));
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_news_or_in_time() -> Result<()> {
    let (harness, _, id) = two_grabs(5).await?;
    // Too short a wait: as it is then.
    let (short, body) = told(wait(&harness, &id, "wait=1", None).await.await??).await?;
    assert_eq!((short.as_str(), &body["status"]), ("wait=1", &json!("pending")));
    // Who knows a revision is told of the next one, others of the end.
    let (news, end) =
        tokio::join!(wait(&harness, &id, "wait=25", Some("W/\"1\"")), wait(&harness, &id, "wait=25", None));
    let (_, news) = told(news.await??).await?;
    assert_eq!(news["status"], json!("processing"));
    let (long, end) = told(end.await??).await?;
    assert_eq!((long.as_str(), &end["status"]), ("wait=25", &json!("done")));
    assert_eq!(wait(&harness, NOBODY, "wait=5", None).await.await??.status(), 404);
    harness.finish().await
}

async fn events(harness: &Harness, id: &str, last: Option<&str>) -> Result<Response> {
    let mut request = harness.client.get(format!("{}/grabs/{id}/events", harness.base())).bearer_auth(harness.live());
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    Ok(request.send().await?)
}

/// Ids and data of every event.
fn parse(text: &str) -> Result<Vec<(u64, Value)>> {
    let field = |event: &str, name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned());
        line.with_context(|| format!("{name} in {event:?}"))
    };
    let events = text.split("\n\n").filter(|event| event.contains("data:"));
    events.map(|event| Ok((field(event, "id:")?.parse()?, serde_json::from_str(&field(event, "data:")?)?))).collect()
}

/// A wait that has been sent off.
async fn wait(
    harness: &Harness,
    id: &str,
    prefer: &str,
    seen: Option<&str>,
) -> tokio::task::JoinHandle<reqwest::Result<Response>> {
    let mut request = harness.client.get(format!("{}/grabs/{id}", harness.base())).bearer_auth(harness.live());
    request = request.header("prefer", prefer);
    if let Some(seen) = seen {
        request = request.header("if-none-match", seen);
    }
    tokio_util::task::TaskTracker::new().spawn(request.send())
}

/// What was applied, and the grab.
async fn told(response: Response) -> Result<(String, Value)> {
    let applied = response.headers().get("preference-applied").context("Preference-Applied")?.to_str()?.to_owned();
    Ok((applied, response.json().await?))
}
