//! The state of a run: teams, the site, and the current service process.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_store::Store;
use grabd_tests::client::{Client, RequestBuilder};
use grabd_tests::harness::ALLOWED;
use grabd_tests::leftovers::processes_in;
use grabd_tests::receiver::Receiver;
use grabd_tests::site::Site;
use reqwest::Response;
use tokio::sync::watch;
use tokio::time::timeout;

use super::service::{ServiceDirs, ServiceProcess, StartResult};

/// Time limit for waits. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct CrashTest {
    pub(crate) dirs: ServiceDirs,
    pub(crate) site: Site,
    /// Receives the webhooks of every team, at a path that is the team's index.
    pub(crate) receiver: Receiver,
    pub(crate) teams: Vec<Team>,
    pub(crate) client: Client,
    /// The API root of the current service, if one is running.
    base: watch::Sender<Option<String>>,
    /// Grab ids by idempotency key, of creates that were acknowledged.
    acknowledged: Mutex<HashMap<String, String>>,
    /// Grabs whose image a customer has deleted.
    deleted: Mutex<HashSet<String>>,
    /// The number of grabs whose end a customer has seen.
    pub(crate) ended: watch::Sender<usize>,
    pub(crate) keys: AtomicUsize,
    /// Whether some pages refuse to be captured.
    pub(crate) pages_refuse: AtomicBool,
    /// Whether browsers are killed, which may be blamed on the page that was open.
    pub(crate) browsers_die: AtomicBool,
    /// The log of each service process.
    logs: Mutex<Vec<watch::Receiver<Vec<String>>>>,
    began: Instant,
}

pub(crate) struct Team {
    pub(crate) key: String,
    pub(crate) granted: u32,
    /// Done grabs that a customer has seen. Each has cost a credit.
    pub(crate) seen_done: AtomicU32,
}

impl CrashTest {
    /// Creates one team per number of credits, and starts the service once to register their webhooks. Each service has this
    /// number of slots.
    pub(crate) async fn new(credits: &[u32], slots: u32) -> Result<Self> {
        let dirs = ServiceDirs::new(slots)?;
        let store = Store::open(&dirs.database_url()).await?;
        store.migrate().await?;
        let mut teams = Vec::new();
        for (number, &granted) in credits.iter().enumerate() {
            let made = accounts::create_team(&store, &format!("team {number}"), granted, Clock::system().now()).await?;
            teams.push(Team { key: made.live.expose().to_owned(), granted, seen_done: AtomicU32::new(0) });
        }
        store.close().await;
        let test = Self {
            dirs,
            site: Site::start(ALLOWED).await?,
            receiver: Receiver::start(ALLOWED).await?,
            teams,
            client: grabd_tests::client::client().timeout(WAIT_LIMIT).build()?,
            base: watch::Sender::new(None),
            acknowledged: Mutex::default(),
            deleted: Mutex::default(),
            ended: watch::Sender::new(0),
            keys: AtomicUsize::new(0),
            pages_refuse: AtomicBool::new(true),
            browsers_die: AtomicBool::new(false),
            logs: Mutex::default(),
            began: Instant::now(),
        };
        let service = test.start("").await?;
        test.register_endpoints().await?;
        test.kill(service).await?;
        Ok(test)
    }

    /// The time since the start of the run.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Prints the logs of all service processes.
    pub(crate) fn print_logs(&self) {
        for (number, log) in self.logs.lock().unwrap_or_else(PoisonError::into_inner).iter().enumerate() {
            log.borrow().iter().for_each(|line| println!("service {number}: {line}"));
        }
    }

    /// Counts the log lines with this text.
    pub(crate) fn count_log_lines(&self, what: &str) -> usize {
        let logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.iter().map(|log| log.borrow().iter().filter(|line| line.contains(what)).count()).sum()
    }

    /// The time since the start of the run, as a prefix for output.
    pub(crate) fn clock(&self) -> String {
        format!("{:>5.1} s:", self.began.elapsed().as_secs_f64())
    }

    /// Starts the service, which must succeed.
    pub(crate) async fn start(&self, failpoints: &str) -> Result<ServiceProcess> {
        match self.try_start(failpoints).await? {
            StartResult::Running(service) => Ok(*service),
            StartResult::Exited(log) => bail!("the service did not start: {log:?}"),
        }
    }

    /// Starts the service. No browser of an earlier process may remain once it is up.
    pub(crate) async fn try_start(&self, failpoints: &str) -> Result<StartResult> {
        let dead = processes_in(&self.dirs.run_dir());
        let began = self.dirs.start(failpoints).await?;
        if let StartResult::Running(service) = &began {
            let present = processes_in(&self.dirs.run_dir());
            ensure!(
                !dead.iter().any(|pid| present.contains(pid)),
                "browsers of an earlier process remain: {dead:?} in {present:?}"
            );
            self.logs.lock().unwrap_or_else(PoisonError::into_inner).push(service.log());
            self.base.send_replace(Some(service.base.clone()));
            println!("{} started with {failpoints:?}; {} grabs have ended", self.clock(), *self.ended.borrow());
        }
        Ok(began)
    }

    pub(crate) async fn kill(&self, service: ServiceProcess) -> Result<()> {
        self.base.send_replace(None);
        service.kill().await
    }

    pub(crate) async fn stop(&self, service: ServiceProcess) -> Result<()> {
        service.stop().await?;
        self.base.send_replace(None);
        Ok(())
    }

    /// Waits for the service to exit because of an abort.
    pub(crate) async fn wait_for_abort(&self, service: ServiceProcess) -> Result<()> {
        let status = service.wait_for_exit().await?;
        self.base.send_replace(None);
        ensure!(!status.success(), "the service exited with {status} instead of aborting");
        Ok(())
    }

    /// The API root of the current or the next service.
    pub(crate) async fn base(&self) -> Result<String> {
        let mut base = self.base.subscribe();
        let there = timeout(WAIT_LIMIT, base.wait_for(Option::is_some)).await.context("no service for a minute")??;
        there.clone().context("the base URL is set")
    }

    /// Sends a request until it is answered. A broken connection leaves the outcome open, so the request is repeated.
    pub(crate) async fn send_until_answered(
        &self,
        request: impl Fn(&Client, &str) -> RequestBuilder,
    ) -> Result<Response> {
        loop {
            let base = self.base().await?;
            if let Ok(response) = request(&self.client, &base).send().await {
                return Ok(response);
            }
            let mut restarts = self.base.subscribe();
            // The connection may break while the service keeps running. Then the request is simply repeated.
            let _ = timeout(Duration::from_millis(50), restarts.wait_for(|now| now.as_ref() != Some(&base))).await;
        }
    }

    /// The status of a response, the id of the grab it names, and its JSON. Repeats the request if the body breaks off.
    pub(crate) async fn json(
        &self,
        request: impl Fn(&Client, &str) -> RequestBuilder,
    ) -> Result<(u16, Option<String>, serde_json::Value)> {
        loop {
            let response = self.send_until_answered(&request).await?;
            let status = response.status().as_u16();
            let location = response.headers().get("location").and_then(|value| value.to_str().ok());
            let named = location.and_then(|location| location.rsplit('/').next()).map(str::to_owned);
            if let Ok(body) = response.json().await {
                return Ok((status, named, body));
            }
        }
    }

    /// The API root of the current service, and every change of it.
    pub(crate) fn base_changes(&self) -> watch::Receiver<Option<String>> {
        self.base.subscribe()
    }

    pub(crate) fn deleted(&self) -> MutexGuard<'_, HashSet<String>> {
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn acknowledged(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until customers have seen the end of this many more grabs.
    pub(crate) async fn wait_for_ended_grabs(&self, more: usize) -> Result<()> {
        let mut ended = self.ended.subscribe();
        let enough = *ended.borrow() + more;
        timeout(WAIT_LIMIT, ended.wait_for(|ended| *ended >= enough)).await.context("too few grabs ended")??;
        Ok(())
    }

    /// Waits until the site has another request, which means that a page is being rendered.
    pub(crate) async fn wait_for_next_request(&self) -> Result<()> {
        let requests = self.site.total_hits() + 1;
        self.site.wait_for_total_hits(requests).await;
        Ok(())
    }
}
