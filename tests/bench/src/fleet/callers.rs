//! Callers that create synchronous grabs one after the other.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use grabd_domain::ids::GrabId;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_store::Store;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::measure::Sample;

/// Teams that take turns.
const TEAMS: usize = 100;
/// More than are spent.
const CREDITS: u32 = 10_000_000;
/// Pause after a call that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// When the renders of grabs began.
#[derive(Clone, Default)]
pub(super) struct Begun(Arc<Mutex<HashMap<GrabId, Instant>>>);

impl Begun {
    pub(super) fn note(&self, grab: GrabId) {
        self.lock().insert(grab, Instant::now());
    }

    fn take(&self, grab: GrabId) -> Option<Instant> {
        self.lock().remove(&grab)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GrabId, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates the teams, and returns their keys.
pub(super) async fn create_teams(store: &Store) -> Result<Vec<String>> {
    let mut keys = Vec::new();
    for number in 0..TEAMS {
        let team = accounts::create_team(store, &format!("team {number}"), CREDITS, Clock::system().now()).await?;
        keys.push(team.live.expose().to_owned());
    }
    Ok(keys)
}

#[derive(Default)]
struct Results {
    wait: Sample,
    failed: u64,
}

/// Running callers.
pub(super) struct Callers {
    results: Arc<Mutex<Results>>,
    tasks: TaskTracker,
}

impl Callers {
    pub(super) fn start(
        edges: &[SocketAddr],
        keys: &[String],
        count: usize,
        begun: &Begun,
        stop: &CancellationToken,
    ) -> Self {
        let (results, tasks) = (Arc::<Mutex<Results>>::default(), TaskTracker::new());
        let client = grabd_tests::client::client().build().expect("a client without TLS settings");
        for number in 0..count {
            let url = format!("http://{}/v1/grabs", edges[number % edges.len()]);
            let caller = Caller {
                client: client.clone(),
                url,
                key: keys[number % keys.len()].clone(),
                begun: begun.clone(),
                results: Arc::clone(&results),
            };
            let stop = stop.clone();
            tasks.spawn(async move { stop.run_until_cancelled(caller.call()).await });
        }
        tasks.close();
        Self { results, tasks }
    }

    /// Forgets the results so far.
    pub(super) fn reset(&self) {
        *self.lock() = Results::default();
    }

    /// The median and the 99th percentile of the wait, and the number of calls that failed.
    pub(super) fn results(&self) -> ([f64; 2], u64) {
        let mut results = self.lock();
        ([0.5, 0.99].map(|quantile| results.wait.quantile(quantile)), results.failed)
    }

    pub(super) async fn finish(self) {
        self.tasks.wait().await;
    }

    fn lock(&self) -> MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Caller {
    client: grabd_tests::client::Client,
    url: String,
    key: String,
    begun: Begun,
    results: Arc<Mutex<Results>>,
}

impl Caller {
    /// Creates grabs until it is dropped.
    async fn call(self) {
        loop {
            let created = Instant::now();
            let grab = self.create().await;
            let begun = grab.and_then(|grab| self.begun.take(grab));
            self.record(begun.map(|begun| begun.saturating_duration_since(created)));
            if begun.is_none() {
                sleep(PAUSE).await;
            }
        }
    }

    /// Records how long a grab waited, or that a call failed.
    fn record(&self, wait: Option<Duration>) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        match wait {
            Some(wait) => results.wait.add(wait),
            None => results.failed += 1,
        }
    }

    /// Creates a grab and waits for its image. `None` when that fails.
    async fn create(&self) -> Option<GrabId> {
        let request = self.client.post(&self.url).bearer_auth(&self.key);
        let response = request.json(&json!({ "url": "http://127.0.0.2/page" })).send().await.ok()?;
        let body: Value = response.error_for_status().ok()?.json().await.ok()?;
        body["id"].as_str()?.parse().ok()
    }
}
