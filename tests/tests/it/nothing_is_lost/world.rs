//! What is there during a run: teams, the site, and whichever life of the service is on.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_store::Store;
use grabd_tests::harness::ALLOWED;
use grabd_tests::receiver::Receiver;
use grabd_tests::remains::processes_in;
use grabd_tests::site::Site;
use reqwest::{RequestBuilder, Response};
use tokio::sync::watch;
use tokio::time::timeout;

use super::life::{Began, Home, Life};

/// How long there may be no life. It only bounds a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) home: Home,
    pub(crate) site: Site,
    /// Where every team is told of its ends, at a path that is its number.
    pub(crate) receiver: Receiver,
    pub(crate) teams: Vec<Team>,
    pub(crate) client: reqwest::Client,
    /// Where the present life is reached, if there is one.
    base: watch::Sender<Option<String>>,
    /// Creates that were answered with a grab: its id by the key that it was created with.
    acknowledged: Mutex<HashMap<String, String>>,
    /// Grabs whose picture a customer has asked to be deleted.
    deleted: Mutex<HashSet<String>>,
    /// Grabs whose end a customer has seen.
    pub(crate) ended: watch::Sender<usize>,
    pub(crate) keys: AtomicUsize,
    /// Some pages refuse to be captured.
    pub(crate) pages_refuse: AtomicBool,
    /// A browser was killed, which may be laid at the door of the page that it was alone with.
    pub(crate) browsers_die: AtomicBool,
    /// What each life says.
    said: Mutex<Vec<watch::Receiver<Vec<String>>>>,
    began: Instant,
}

pub(crate) struct Team {
    pub(crate) key: String,
    pub(crate) granted: u32,
    /// Done grabs that a customer has seen: each of them has cost a credit.
    pub(crate) seen_done: AtomicU32,
}

impl World {
    /// One team for each number of credits. A first life lets them say where they want to be told of their ends.
    pub(crate) async fn new(credits: &[u32]) -> Result<Self> {
        let home = Home::new()?;
        let store = Store::open(&home.database_url()).await?;
        store.migrate().await?;
        let mut teams = Vec::new();
        for (number, &granted) in credits.iter().enumerate() {
            let made = accounts::create_team(&store, &format!("team {number}"), granted, Clock::system().now()).await?;
            teams.push(Team { key: made.live.expose().to_owned(), granted, seen_done: AtomicU32::new(0) });
        }
        store.close().await;
        let world = Self {
            home,
            site: Site::start(ALLOWED).await?,
            receiver: Receiver::start(ALLOWED).await?,
            teams,
            client: grabd_tests::client::client().timeout(PATIENCE).build()?,
            base: watch::Sender::new(None),
            acknowledged: Mutex::default(),
            deleted: Mutex::default(),
            ended: watch::Sender::new(0),
            keys: AtomicUsize::new(0),
            pages_refuse: AtomicBool::new(true),
            browsers_die: AtomicBool::new(false),
            said: Mutex::default(),
            began: Instant::now(),
        };
        let life = world.begin("").await?;
        world.register_endpoints().await?;
        world.kill(life).await?;
        Ok(world)
    }

    /// How long the run has lasted.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Prints what every life had to say, for whoever wants to know why a run failed.
    pub(crate) fn print_what_was_said(&self) {
        for (number, said) in self.said.lock().unwrap_or_else(PoisonError::into_inner).iter().enumerate() {
            said.borrow().iter().for_each(|line| println!("life {number}: {line}"));
        }
    }

    /// In how many lines all lives have said this.
    pub(crate) fn times_said(&self, what: &str) -> usize {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().map(|said| said.borrow().iter().filter(|line| line.contains(what)).count()).sum()
    }

    /// How long the run has lasted, for whoever reads what it printed.
    pub(crate) fn clock(&self) -> String {
        format!("{:>5.1} s:", self.began.elapsed().as_secs_f64())
    }

    /// The next life, which must come up.
    pub(crate) async fn begin(&self, failpoints: &str) -> Result<Life> {
        match self.try_begin(failpoints).await? {
            Began::Up(life) => Ok(*life),
            Began::Died(said) => bail!("the service did not start: {said:?}"),
        }
    }

    /// The next life. Nothing of an earlier one is left when it is up.
    pub(crate) async fn try_begin(&self, failpoints: &str) -> Result<Began> {
        let dead = processes_in(&self.home.run_dir());
        let began = self.home.begin(failpoints).await?;
        if let Began::Up(life) = &began {
            let present = processes_in(&self.home.run_dir());
            ensure!(!dead.iter().any(|pid| present.contains(pid)), "browsers of a dead life: {dead:?} in {present:?}");
            self.said.lock().unwrap_or_else(PoisonError::into_inner).push(life.said());
            self.base.send_replace(Some(life.base.clone()));
            println!("{} a life, {failpoints:?}; {} grabs have ended", self.clock(), *self.ended.borrow());
        }
        Ok(began)
    }

    pub(crate) async fn kill(&self, life: Life) -> Result<()> {
        self.base.send_replace(None);
        life.kill().await
    }

    pub(crate) async fn stop(&self, life: Life) -> Result<()> {
        life.stop().await?;
        self.base.send_replace(None);
        Ok(())
    }

    /// The life has ended by itself, by the signal of an abort.
    pub(crate) async fn died(&self, life: Life) -> Result<()> {
        let status = life.dies().await?;
        self.base.send_replace(None);
        ensure!(!status.success(), "it should have died, and left with {status}");
        Ok(())
    }

    /// Where the present life, or else the next one, is reached.
    pub(crate) async fn base(&self) -> Result<String> {
        let mut base = self.base.subscribe();
        let there = timeout(PATIENCE, base.wait_for(Option::is_some)).await.context("no life for a minute")??;
        there.clone().context("waited for")
    }

    /// Sends a request until a life answers it: a broken connection says nothing, so the same is asked again.
    pub(crate) async fn answer(&self, request: impl Fn(&reqwest::Client, &str) -> RequestBuilder) -> Result<Response> {
        loop {
            let base = self.base().await?;
            if let Ok(response) = request(&self.client, &base).send().await {
                return Ok(response);
            }
            let mut lives = self.base.subscribe();
            // A connection may break in a life that goes on: then it is simply tried again.
            let _ = timeout(Duration::from_millis(50), lives.wait_for(|now| now.as_ref() != Some(&base))).await;
        }
    }

    /// An answer as JSON with its status and the grab it names. A body that breaks off is asked for again.
    pub(crate) async fn json(
        &self,
        request: impl Fn(&reqwest::Client, &str) -> RequestBuilder,
    ) -> Result<(u16, Option<String>, serde_json::Value)> {
        loop {
            let response = self.answer(&request).await?;
            let status = response.status().as_u16();
            let location = response.headers().get("location").and_then(|value| value.to_str().ok());
            let named = location.and_then(|location| location.rsplit('/').next()).map(str::to_owned);
            if let Ok(body) = response.json().await {
                return Ok((status, named, body));
            }
        }
    }

    /// The present life's address, and every change of it.
    pub(crate) fn life(&self) -> watch::Receiver<Option<String>> {
        self.base.subscribe()
    }

    pub(crate) fn deleted(&self) -> MutexGuard<'_, HashSet<String>> {
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn acknowledged(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until customers have seen the end of this many more grabs.
    pub(crate) async fn grabs_end(&self, more: usize) -> Result<()> {
        let mut ended = self.ended.subscribe();
        let enough = *ended.borrow() + more;
        timeout(PATIENCE, ended.wait_for(|ended| *ended >= enough)).await.context("grabs do not end")??;
        Ok(())
    }

    /// Waits until the site is asked for another page, so that something is being rendered.
    pub(crate) async fn site_is_asked_again(&self) -> Result<()> {
        let asked = self.site.hits_in_all() + 1;
        self.site.wait_for_hits_in_all(asked).await;
        Ok(())
    }
}
