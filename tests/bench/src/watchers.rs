//! Many waiting streams: the cost of an idle stream, and the latency of its events.
//!
//! Each stream watches a grab of its own. First, the grabs at the head of the queue are rendered, and events are
//! compared with the end times in the database. Then another process cancels grabs. The service is not notified of
//! that, so those events depend on its poll of all watched grabs, once per second.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use grabd_domain::Timestamp;
use grabd_domain::grabs::{Failure, FailureReason, RenderMetadata, State};
use grabd_domain::ids::GrabId;
use grabd_engine::clock::Clock;
use grabd_proto::v1::WatchGrabRequest;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_store::Store;
use grabd_store::grabs::{FailGrab, FailureSource};
use grabd_tests::harness::ALLOWED;
use grabd_tests::site::Site;
use tokio::sync::mpsc;
use tokio::time::{interval, sleep, timeout};
use tokio_util::task::TaskTracker;
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

use crate::measure::Sample;
use crate::service::Service;

/// Connections that carry the streams.
const CONNECTIONS: usize = 4;
/// Concurrent creates and stream openings.
const AT_ONCE: usize = 64;
/// Grabs queued before the watched ones. They are rendered while the watched grabs are queued and their streams opened.
const AHEAD: usize = 400;
/// Grabs that another process cancels, and the pause between two.
const CANCELLED: usize = 1_000;
const CANCEL_EVERY: Duration = Duration::from_millis(5);
/// The latency after which an event counts as lost.
const LOST: Duration = Duration::from_secs(10);

/// A state that a stream received, and when.
struct StateEvent {
    grab: GrabId,
    revision: i64,
    at: Timestamp,
}

/// Measures and prints memory and latency.
pub(crate) async fn measure(streams: usize, seconds: Duration) -> anyhow::Result<()> {
    let site = Site::start(ALLOWED).await?;
    let limit = (streams + AHEAD).to_string();
    let service = Service::start_with(&[("GRABD_LIMITS__ASYNC_QUEUE", &limit)]).await?;
    let url = site.url("/tiny");
    let queued = stream::iter(0..streams + AHEAD).map(|_| service.queue(&service.live_key, &url));
    let mut ids: Vec<String> = queued.buffered(AT_ONCE).try_collect().await?;
    let ids = ids.split_off(AHEAD);

    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        channels.push(Endpoint::try_from(format!("http://{}", service.grpc))?.connect().await?);
    }
    let (sender, mut events) = mpsc::channel(streams);
    let readers = TaskTracker::new();
    let before = service.tree().own_rss_kib();
    let opened = stream::iter(ids.iter().zip(channels.iter().cycle()));
    opened
        .map(anyhow::Ok)
        .try_for_each_concurrent(AT_ONCE, |(id, channel)| follow(&service, channel, id, &sender, &readers))
        .await?;
    let (cpu, rest) = (service.tree().own_cpu(), Duration::from_secs(5));
    sleep(rest).await;
    let after = service.tree().own_rss_kib();
    let idle = (service.tree().own_cpu() - cpu).as_secs_f64() / rest.as_secs_f64();
    let each = (after.saturating_sub(before)) as f64 / streams as f64;
    println!("{streams} streams over {CONNECTIONS} connections: {before} -> {after} KiB, {each:.1} KiB a stream");
    println!("processor time of the service beside them, renders included: {:.0} % of a core", idle * 100.0);

    let store = service.store().await?;
    let mut all: HashMap<GrabId, Timestamp> = HashMap::new();
    let collect = async {
        while let Some(StateEvent { grab, revision, at }) = events.recv().await {
            // Revision 1 is the wait, 2 the render, 4 the end of a grab that needed one attempt.
            if revision > 2 {
                all.insert(grab, at);
            }
        }
    };
    // The readers keep senders open, so this ends only by the timeout.
    let _ = timeout(seconds, collect).await;
    report("rendered", &store, &all).await?;

    all.clear();
    let cancelled = cancel(&store, &ids).await?;
    let collect = async {
        while all.len() < cancelled.len() {
            let Some(StateEvent { grab, at, .. }) = events.recv().await else { return };
            if cancelled.contains_key(&grab) {
                all.insert(grab, at);
            }
        }
    };
    let lost = timeout(LOST, collect).await.is_err();
    report("cancelled by another process", &store, &all).await?;
    anyhow::ensure!(!lost, "{} of {} events were lost", cancelled.len() - all.len(), cancelled.len());
    store.close().await;
    drop(channels);
    service.stop().await
}

/// Opens a stream and reads it to its end.
async fn follow(
    service: &Service,
    channel: &Channel,
    id: &str,
    sender: &mpsc::Sender<StateEvent>,
    readers: &TaskTracker,
) -> anyhow::Result<()> {
    let mut request = Request::new(WatchGrabRequest { id: id.to_owned(), after_revision: 0, with_stages: false });
    request.metadata_mut().insert("authorization", format!("Bearer {}", service.live_key).parse()?);
    let mut states = GrabServiceClient::new(channel.clone()).watch_grab(request).await?.into_inner();
    let first = states.message().await?.and_then(|state| state.grab).context("a first state")?;
    anyhow::ensure!(first.revision == 1, "a grab was rendered before its stream was open: increase AHEAD");
    let (sender, grab) = (sender.clone(), id.parse().map_err(|_| anyhow::anyhow!("an id {id}"))?);
    readers.spawn(async move {
        while let Ok(Some(state)) = states.message().await {
            let (revision, at) = (state.grab.map_or(0, |grab| grab.revision), Clock::system().now());
            if sender.send(StateEvent { grab, revision, at }).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Cancels grabs one by one, from the end of the queue.
async fn cancel(store: &Store, ids: &[String]) -> anyhow::Result<HashMap<GrabId, Timestamp>> {
    let mut pace = interval(CANCEL_EVERY);
    let mut cancelled = HashMap::new();
    for id in ids.iter().rev().take(CANCELLED) {
        pace.tick().await;
        let grab = id.parse().map_err(|_| anyhow::anyhow!("an id {id}"))?;
        let failure = Failure::new(FailureReason::RenderFailed, "cancelled");
        let now = Clock::system().now();
        let failing =
            FailGrab { grab, source: FailureSource::Cancel, failure, metadata: RenderMetadata::default(), now };
        if store.grabs().fail(failing).await?.is_some() {
            cancelled.insert(grab, now);
        }
    }
    Ok(cancelled)
}

/// Prints the latency from the recorded end time, which is read just before the commit, to the time at which the reader
/// received it.
async fn report(what: &str, store: &Store, ends: &HashMap<GrabId, Timestamp>) -> anyhow::Result<()> {
    let ids: Vec<GrabId> = ends.keys().copied().collect();
    let mut latency = Sample::default();
    for grab in store.grabs().find_grabs(&ids).await? {
        if let (State::Done { finished_at, .. } | State::Failed { finished_at, .. }, Some(at)) =
            (&grab.state, ends.get(&grab.id))
        {
            latency.add(at.since(*finished_at));
        }
    }
    let [p50, p99, worst] = [0.5, 0.99, 1.0].map(|quantile| latency.quantile(quantile));
    println!("{what}: {} ends received, p50 {p50:.0} ms, p99 {p99:.0} ms, worst {worst:.0} ms", ids.len());
    Ok(())
}
