//! Callers that create grabs at edges while something fails, and what must hold afterwards.
//!
//! Some callers are synchronous, others asynchronous, and others watch what they created. Each repeats a call that failed
//! with the same idempotency key, as a client does, until it is answered.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use futures::future::try_join_all;
use grabd_domain::grabs::{FailureReason, Grab, State, Status};
use grabd_domain::ids::GrabId;
use grabd_tests::harness::ALLOWED;
use grabd_tests::receiver::{ReceivedRequest, Receiver};
use reqwest::header::RETRY_AFTER;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::processes::{TestCluster, poll};

/// How long a create may take that fails while the database is away. The store's limits add up to three seconds
/// (`crates/store/src/database/server.rs`), and a busy machine takes longer: 4.001 s was seen.
pub(super) const FAILS_WITHIN: Duration = Duration::from_secs(8);
/// Pause of a caller after each call.
const PAUSE: Duration = Duration::from_millis(50);
const LONG_PAUSE: Duration = Duration::from_millis(200);
/// Time limit for one call with its repetitions, and for webhooks. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(150);

/// What a caller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sync,
    Async,
    Watch,
}

const KINDS: [Kind; 3] = [Kind::Sync, Kind::Async, Kind::Watch];

/// Callers at edges, and what they saw.
pub(super) struct Load<'a> {
    cluster: &'a TestCluster,
    /// The addresses of the edges.
    edges: Vec<String>,
    /// The page that is captured.
    url: String,
    pause: Duration,
    /// Whether a capture may fail for a reason of the browser, as on a machine that is too busy.
    has_browsers: bool,
    receiver: Receiver,
    seen: Mutex<Seen>,
}

/// What the callers saw.
#[derive(Default)]
struct Seen {
    /// The grab of each idempotency key.
    grabs: BTreeMap<String, GrabId>,
    /// The ends that watchers saw.
    watched: BTreeMap<GrabId, String>,
    /// Calls that failed and were repeated.
    failed: Vec<FailedCall>,
    /// Calls with their repetitions: when each ended, and how long it took.
    calls: Vec<(Kind, Instant, Duration)>,
}

/// A call that failed.
#[derive(Clone, Debug)]
pub(super) struct FailedCall {
    /// How long it took.
    pub(super) took: Duration,
    /// The body.
    pub(super) body: Value,
    /// The value of `Error-Cause`.
    pub(super) cause: Option<String>,
    /// The value of `Retry-After`.
    pub(super) retry_after: Option<String>,
    /// Whether a grab existed already, whose end was not known.
    pub(super) has_grab: bool,
}

impl FailedCall {
    /// Whether it says that the database does not respond, and when to try again.
    pub(super) fn is_outage(&self) -> bool {
        let error = &self.body["error"];
        let message = error["message"].as_str().unwrap_or_default();
        self.retry_after.is_some()
            && (&error["code"], self.cause.as_deref()) == (&json!("internal_error"), Some("service"))
            && message.contains("database")
    }
}

/// What happened to the grabs of all callers.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) done: Vec<GrabId>,
    /// Those that failed although their page did not.
    pub(super) failed: usize,
    pub(super) rendered_again: usize,
    pub(super) failed_calls: Vec<FailedCall>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, failed, rendered_again, failed_calls } = self;
        let slowest = failed_calls.iter().map(|call| call.took).max().unwrap_or_default();
        write!(
            f,
            "{} done, {failed} failed, {rendered_again} rendered again, {} calls repeated, the slowest after {slowest:?}",
            done.len(),
            failed_calls.len()
        )
    }
}

impl<'a> Load<'a> {
    /// Callers at edges with these addresses. Messages about asynchronous grabs are received.
    pub(super) async fn new(cluster: &'a TestCluster, edges: &[String]) -> Result<Self> {
        let receiver = Receiver::start(ALLOWED).await?;
        let edges = edges.to_vec();
        let request = cluster.client.post(format!("http://{}/v1/webhooks", edges[0]));
        let request = request.bearer_auth(cluster.team.live.expose()).json(&json!({ "url": receiver.url() }));
        request.send().await?.error_for_status()?;
        let (url, pause, has_browsers) = (format!("http://{ALLOWED}/page"), PAUSE, false);
        Ok(Self { cluster, edges, url, pause, has_browsers, receiver, seen: Mutex::default() })
    }

    /// The same for captures of this page by browsers, at a slower pace.
    pub(super) async fn new_with_browsers(cluster: &'a TestCluster, edges: &[String], url: String) -> Result<Self> {
        Ok(Self { url, has_browsers: true, ..Self::new_slow(cluster, edges).await? })
    }

    /// The same at a slower pace, so that half of the slots are enough and no queue grows.
    pub(super) async fn new_slow(cluster: &'a TestCluster, edges: &[String]) -> Result<Self> {
        Ok(Self { pause: LONG_PAUSE, ..Self::new(cluster, edges).await? })
    }

    /// Creates grabs with this number of callers of each kind while something is done.
    pub(super) async fn during<T>(&self, callers: usize, something: impl Future<Output = Result<T>>) -> Result<T> {
        let over = CancellationToken::new();
        let callers = (0..callers * KINDS.len()).map(|number| self.call(number, &over));
        let something = async {
            let done = something.await;
            over.cancel();
            done
        };
        let (_, done) = tokio::try_join!(try_join_all(callers), something)?;
        Ok(done)
    }

    /// Waits until this number of further calls was answered.
    pub(super) async fn answers(&self, count: usize) -> Result<()> {
        let until = self.seen().grabs.len() + count;
        poll("answers", async || Ok((self.seen().grabs.len() >= until).then_some(()))).await
    }

    /// Waits until a call fails because of an outage.
    pub(super) async fn outage(&self) -> Result<()> {
        let before = self.seen().failed.len();
        let is_seen = || self.seen().failed.iter().skip(before).any(FailedCall::is_outage);
        poll("a call that fails because of the outage", async || Ok(is_seen().then_some(()))).await
    }

    /// The longest calls that ended after a time: synchronous and asynchronous creates, and watches.
    pub(super) fn longest_since(&self, time: Instant) -> [Duration; 3] {
        let seen = self.seen();
        KINDS.map(|kind| {
            let calls = seen.calls.iter().filter(|(of, ended, _)| *of == kind && *ended > time);
            calls.map(|(_, _, took)| *took).max().unwrap_or_default()
        })
    }

    fn note(&self, kind: Kind, began: Instant) {
        self.seen().calls.push((kind, Instant::now(), began.elapsed()));
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call(&self, number: usize, over: &CancellationToken) -> Result<()> {
        let kind = KINDS[number % KINDS.len()];
        let mut turn = 0;
        while !over.is_cancelled() {
            let key = format!("{kind:?}-{number}-{}-{turn}", self.seen().grabs.len());
            let one = async {
                let began = Instant::now();
                let grab = self.create(kind, &key, number + turn).await?;
                self.note(if kind == Kind::Sync { Kind::Sync } else { Kind::Async }, began);
                if kind == Kind::Watch {
                    let began = Instant::now();
                    self.watch(grab, number + turn).await?;
                    self.note(Kind::Watch, began);
                }
                anyhow::Ok(())
            };
            match timeout(WAIT_LIMIT, one).await {
                Ok(answered) => answered?,
                Err(_) => {
                    let all = self.cluster.grabs().await?;
                    let waiting = all.iter().filter(|grab| grab.status() == Status::Pending).count();
                    anyhow::bail!("{key} was not answered, {waiting} grabs wait: {:?}", self.grab_of(&key).await?);
                }
            }
            turn += 1;
            // Paced, since the rate is not the subject.
            sleep(self.pause).await;
        }
        Ok(())
    }

    /// The grab of an idempotency key, if its create was answered.
    async fn grab_of(&self, key: &str) -> Result<Option<Grab>> {
        let id = self.seen().grabs.get(key).copied();
        Ok(self.cluster.store.grabs().find_grabs(id.as_slice()).await?.pop())
    }

    /// Creates a grab, with one edge or the other, until that is answered.
    async fn create(&self, kind: Kind, key: &str, turn: usize) -> Result<GrabId> {
        let is_async = kind != Kind::Sync;
        let mut attempt = turn;
        loop {
            attempt += 1;
            let edge = &self.edges[attempt % self.edges.len()];
            let request = self.cluster.client.post(format!("http://{edge}/v1/grabs?async={is_async}"));
            let request = request.bearer_auth(self.cluster.team.live.expose()).header("idempotency-key", key);
            let began = Instant::now();
            let response = request.json(&json!({ "url": self.url })).send().await;
            // An edge that is away refuses connections. The next attempt goes to the other one.
            let Ok(response) = response else {
                sleep(PAUSE).await;
                continue;
            };
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let Ok(body) = response.json::<Value>().await else { continue };
            let location =
                headers.get("location").and_then(|path| path.to_str().ok()?.rsplit('/').next()?.parse().ok());
            let created = body["id"].as_str().and_then(|id| id.parse().ok()).or(location);
            match (status, body["error"]["code"].as_str(), created) {
                (200 | 202, _, Some(grab)) => {
                    let before = self.seen().grabs.insert(key.to_owned(), grab);
                    ensure!(before.is_none_or(|before| before == grab), "{key} made two grabs");
                    return Ok(grab);
                }
                // The grab was given up, or its time was over: that is its end.
                (500, Some("internal_error" | "render_failed"), Some(grab)) if location.is_some() => {
                    self.seen().grabs.insert(key.to_owned(), grab);
                    return Ok(grab);
                }
                // The first request is still being answered, the queue is too long, or the edge is stopping.
                (409, Some("idempotency_conflict"), _) | (429 | 503, _, _) => {}
                (500, Some("internal_error"), None) => {
                    let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
                    let (retry_after, cause) = (header(RETRY_AFTER.as_str()), header("error-cause"));
                    let took = began.elapsed();
                    // A synchronous caller may have waited for its grab when the database went away.
                    let has_grab = !is_async;
                    self.seen().failed.push(FailedCall { took, body, cause, retry_after, has_grab });
                }
                _ => anyhow::bail!("{key}: {status} {body}"),
            }
            sleep(PAUSE).await;
        }
    }

    /// Watches a grab to its end, with another stream when one breaks.
    async fn watch(&self, grab: GrabId, turn: usize) -> Result<()> {
        let mut attempt = turn;
        loop {
            attempt += 1;
            let edge = &self.edges[attempt % self.edges.len()];
            let request = self.cluster.client.get(format!("http://{edge}/v1/grabs/{grab}/events"));
            let opened = request.bearer_auth(self.cluster.team.live.expose()).send().await;
            if let Ok(response) = opened
                && response.status().is_success()
                && let Some(end) = last_status(response).await
            {
                self.seen().watched.insert(grab, end);
                return Ok(());
            }
            sleep(PAUSE).await;
        }
    }

    /// Waits until all grabs have ended, and checks what must hold: each answered call made one grab, each grab has ended,
    /// a credit was spent for each done grab and no other, every image is returned by every edge, watchers saw the end of
    /// their grabs, and the end of each asynchronous grab was sent to the webhook.
    pub(super) async fn finish(self) -> Result<Outcome> {
        let grabs = self.cluster.ended_grabs().await?;
        let is_done = |grab: &&Grab| grab.status() == Status::Done;
        let done: Vec<&Grab> = grabs.iter().filter(is_done).collect();
        let spent = self.cluster.credits_granted() - self.cluster.credits_left().await?;
        ensure!(usize::try_from(spent)? == done.len(), "{spent} credits spent for {} done grabs", done.len());
        for grab in &grabs {
            let is_excused = match &grab.state {
                State::Failed { failure, .. } => match failure.reason {
                    FailureReason::InternalError => true,
                    FailureReason::RenderFailed => self.has_browsers || failure.message.contains("within"),
                    FailureReason::RenderBlocked | FailureReason::SsrfDetected => false,
                },
                State::Done { .. } | State::Pending | State::Processing => true,
            };
            ensure!(is_excused, "{grab:?}");
        }
        let seen = std::mem::take(&mut *self.seen());
        let known: BTreeSet<GrabId> = seen.grabs.values().copied().collect();
        ensure!(known.len() == seen.grabs.len(), "two calls have the same grab");
        let all: BTreeSet<GrabId> = grabs.iter().map(|grab| grab.id).collect();
        // The key of a grab that was given up may be used again, which makes another one.
        let is_given_up = |grab: &&Grab| matches!(&grab.state, State::Failed { failure, .. } if failure.reason == FailureReason::InternalError);
        let given_up: BTreeSet<GrabId> = grabs.iter().filter(is_given_up).map(|grab| grab.id).collect();
        let lost: Vec<_> = known.difference(&all).collect();
        ensure!(lost.is_empty(), "answered grabs are missing: {lost:?}");
        let unknown: Vec<_> = all.difference(&known).filter(|grab| !given_up.contains(grab)).collect();
        ensure!(unknown.is_empty(), "grabs of no answered call: {unknown:?}");
        for (grab, end) in &seen.watched {
            let ended = grabs.iter().find(|ended| ended.id == *grab).context("a watched grab is missing")?;
            ensure!(ended.status().as_str() == end, "a watcher saw {end}: {ended:?}");
        }
        for grab in done.iter().step_by(10) {
            for edge in &self.edges {
                self.check_image(edge, grab.id).await?;
            }
        }
        self.check_messages(&grabs).await?;
        Ok(Outcome {
            failed: grabs.len() - done.len(),
            done: done.iter().map(|grab| grab.id).collect(),
            rendered_again: grabs.iter().filter(|grab| grab.attempts > 1).count(),
            failed_calls: seen.failed,
        })
    }

    async fn check_image(&self, edge: &str, grab: GrabId) -> Result<()> {
        let request = self.cluster.client.get(format!("http://{edge}/v1/grabs/{grab}"));
        let body: Value =
            request.bearer_auth(self.cluster.team.live.expose()).send().await?.error_for_status()?.json().await?;
        let url = body["image_url"].as_str().with_context(|| format!("no image: {body}"))?;
        let image = self.cluster.image_at(edge, url).await?;
        ensure!(image.starts_with(b"\x89PNG"), "{grab}: no image");
        Ok(())
    }

    async fn check_messages(&self, grabs: &[Grab]) -> Result<()> {
        let is_owed = |grab: &&Grab| grab.class == grabd_domain::grabs::Class::Async;
        let owed: BTreeSet<String> = grabs.iter().filter(is_owed).map(|grab| grab.id.to_string()).collect();
        let all_received = async {
            loop {
                let received = self.receiver.received();
                let grab = |message: &ReceivedRequest| {
                    anyhow::Ok(message.json()?["data"]["id"].as_str().context("a grab")?.to_owned())
                };
                let received: BTreeSet<String> = received.iter().map(grab).collect::<Result<_>>()?;
                if owed.is_subset(&received) {
                    return anyhow::Ok(());
                }
                sleep(PAUSE).await;
            }
        };
        // The delivery of a core that was killed is due again after its lease.
        timeout(WAIT_LIMIT, all_received).await.context("a webhook is missing")?
    }
}

/// The last status that a stream of events tells, if it is the end of the grab.
async fn last_status(response: reqwest::Response) -> Option<String> {
    let mut parts = response.bytes_stream();
    let mut text = String::new();
    while let Some(Ok(part)) = parts.next().await {
        text.push_str(&String::from_utf8_lossy(&part));
    }
    let last = text.lines().rev().find_map(|line| line.strip_prefix("data:"))?;
    let status = serde_json::from_str::<Value>(last).ok()?["status"].as_str()?.to_owned();
    matches!(status.as_str(), "done" | "failed").then_some(status)
}
