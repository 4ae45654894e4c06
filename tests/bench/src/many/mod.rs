//! Creates and completes grabs in the store alone, without HTTP and without renders: how many each second, and whether that
//! depends on the number of grabs that are stored and that wait.
//!
//! There is a database for each of these numbers, and they are measured in turn. *Why:* one after the other, measurements
//! with the same numbers differed by a quarter within 30 seconds.

mod database;
mod history;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use grabd_domain::admission::Payer;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::grabs::{Class, ImageKey, RenderMetadata};
use grabd_domain::ids::{GrabId, LeaseToken, SessionId, TeamId};
use grabd_domain::storage::{Counted, StorageCeiling};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_engine::random;
use grabd_store::Store;
use grabd_store::grabs::{Completion, Created, LeaseRequest, NewGrab, NewLease};

use crate::measure::Sample;
use database::{DatabaseKind, OwnDatabase};

/// Teams that take turns.
const TEAMS: usize = 100;
/// More than are spent.
const CREDITS: u32 = 100_000_000;
/// No limit of the queue is the subject.
const UNLIMITED: u32 = 100_000_000;
/// Concurrent callers, which share commits.
const CALLERS: usize = 64;
/// How often a caller tries to lease a grab. Only reached if something is wrong.
const MAX_TRIES: u32 = 10_000;
/// Time that a grab has, and that a lease lasts. Neither is reached.
const HOUR: Duration = Duration::from_secs(3600);

/// What is measured.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Databases, each of which is created below the directory for temporary files.
    #[arg(long, value_delimiter = ',', default_values_t = [DatabaseKind::Sqlite, DatabaseKind::Postgres])]
    databases: Vec<DatabaseKind>,
    /// Numbers of stored grabs that have ended, each with its entry in the ledger.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1_000_000])]
    stored: Vec<u64>,
    /// Numbers of grabs that wait.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 10_000, 100_000])]
    queued: Vec<u64>,
    /// How often each is measured, in turn. The table shows the medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// Length of each measurement.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

/// When the render of a grab begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// A slot is free: the grab is created with its lease, and completed.
    Immediate,
    /// The grab is created and waits. The first grab of the queue is leased and completed.
    Queued,
}

impl std::fmt::Display for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Immediate => "immediate",
            Self::Queued => "queued",
        })
    }
}

/// Measures all combinations, and prints a table.
pub(crate) async fn measure(args: &Args) -> Result<()> {
    println!(
        "{CALLERS} callers, {TEAMS} teams, store only; {} rounds of {} s; medians; \
         ratio to the first row with the same start; ms from create to completed",
        args.rounds, args.seconds
    );
    println!(
        "{:<10}{:>10}{:>9}{:>11}{:>10}{:>7}{:>9}{:>9}",
        "database", "stored", "waiting", "start", "grabs/s", "ratio", "p50 ms", "p99 ms"
    );
    for &kind in &args.databases {
        let mut rows = Vec::new();
        for &stored in &args.stored {
            for &waiting in &args.queued {
                let bench = Bench::prepare(kind, stored, waiting).await;
                let bench = bench.with_context(|| format!("{kind}, {stored} stored, {waiting} waiting"))?;
                rows.push(Row { stored, waiting, bench, immediate: Vec::new(), queued: Vec::new() });
            }
        }
        for _ in 0..args.rounds {
            for row in &mut rows {
                let length = Duration::from_secs(args.seconds);
                // While grabs wait, there is no free slot.
                if row.waiting == 0 {
                    row.immediate.push(row.bench.run(Start::Immediate, length).await?);
                }
                row.queued.push(row.bench.run(Start::Queued, length).await?);
            }
        }
        for start in [Start::Immediate, Start::Queued] {
            let mut first = None;
            for row in &mut rows {
                row.print(kind, start, &mut first);
            }
        }
        for row in rows {
            row.bench.finish().await?;
        }
    }
    Ok(())
}

/// A database, and what was measured with it.
struct Row {
    stored: u64,
    waiting: u64,
    bench: Bench,
    immediate: Vec<(f64, Sample)>,
    queued: Vec<(f64, Sample)>,
}

impl Row {
    /// Prints the round with the median rate. `first` is the rate of the first row.
    fn print(&mut self, kind: DatabaseKind, start: Start, first: &mut Option<f64>) {
        let rounds = match start {
            Start::Immediate => &mut self.immediate,
            Start::Queued => &mut self.queued,
        };
        rounds.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let middle = rounds.len() / 2;
        let Some((rate, took)) = rounds.get_mut(middle) else { return };
        println!(
            "{:<10}{:>10}{:>9}{start:>11}{rate:>10.0}{:>7.2}{:>9.1}{:>9.1}",
            kind.to_string(),
            self.stored,
            self.waiting,
            *rate / *first.get_or_insert(*rate),
            took.quantile(0.5),
            took.quantile(0.99),
        );
    }
}

struct Bench {
    database: OwnDatabase,
    store: Store,
    teams: Vec<TeamId>,
    spec: CaptureSpec,
}

impl Bench {
    async fn prepare(kind: DatabaseKind, stored: u64, waiting: u64) -> Result<Self> {
        let database = OwnDatabase::create(kind).await?;
        let store = Store::open(&database.url()).await?;
        store.migrate().await?;
        let mut teams = Vec::new();
        for number in 0..TEAMS {
            let made = accounts::create_team(&store, &format!("team {number}"), CREDITS, Clock::system().now()).await?;
            teams.push(made.team);
        }
        let request = CaptureRequest { url: Some("https://example.com/".to_owned()), ..CaptureRequest::default() };
        let bench = Self { database, store, teams, spec: CaptureSpec::parse(&request)? };
        // History is made of copies of this grab.
        bench.grab(bench.teams[0], Start::Immediate).await?;
        history::add_ended(&bench.database, stored).await?;
        history::add_waiting(&bench.database, waiting).await?;
        Ok(bench)
    }

    /// Lets all callers create grabs for some time. Returns the grabs per second, and how long each took.
    async fn run(&self, start: Start, length: Duration) -> Result<(f64, Sample)> {
        let began = Instant::now();
        let callers = (0..CALLERS).map(async |number| {
            let mut took = Vec::new();
            for team in self.teams.iter().cycle().skip(number) {
                let created = Instant::now();
                if began.elapsed() >= length {
                    break;
                }
                self.grab(*team, start).await?;
                took.push(created.elapsed());
            }
            Ok::<_, anyhow::Error>(took)
        });
        let took = try_join_all(callers).await?.concat();
        let rate = took.len() as f64 / began.elapsed().as_secs_f64();
        let mut sample = Sample::default();
        took.into_iter().for_each(|took| sample.add(took));
        Ok((rate, sample))
    }

    /// Creates a grab, and completes it or the first one that waits.
    async fn grab(&self, team: TeamId, start: Start) -> Result<()> {
        let now = Clock::system().now();
        let (id, token, session) = (random::grab_id(now), random::lease_token(), random::session_id());
        let lease = NewLease { token, until: now + HOUR, session, random: random::random() };
        let new = NewGrab {
            id,
            team,
            payer: Payer::of_team(team),
            creator: None,
            class: Class::Async,
            spec: self.spec.clone(),
            secrets: None,
            now,
            deadline_at: now + HOUR,
            async_limit: UNLIMITED,
            lease: (start == Start::Immediate).then_some(lease),
            wait: None,
            idempotency: None,
            fingerprint: None,
            // As usual, and never reached.
            ceiling: Some(StorageCeiling { counted: Counted::Uncharged, bytes: i64::MAX }),
        };
        let created = self.store.grabs().create(new).await?;
        let (grab, token, upload_key) = match created {
            Created::Leased { upload_key } => (id, token, upload_key),
            Created::Pending => self.lease(session).await?,
            Created::Repeated(_)
            | Created::QueueLimit { .. }
            | Created::WaitTooLong { .. }
            | Created::CreditsExhausted
            | Created::StorageFull
            | Created::TeamInactive => bail!("no grab was created: {created:?}"),
        };
        let metadata = RenderMetadata {
            final_url: Some("https://example.com/".to_owned()),
            http_status: Some(200),
            image_width: Some(1280),
            image_height: Some(720),
            ..RenderMetadata::default()
        };
        let completion = Completion { grab, token, upload_key, size_bytes: 48_213, execution_ms: 1830, metadata, now };
        self.store.grabs().complete(completion).await?.context("the lease was lost")?;
        Ok(())
    }

    /// Leases the first grab that waits. Other callers may be leasing it at this moment; then another one is tried.
    async fn lease(&self, session: SessionId) -> Result<(GrabId, LeaseToken, ImageKey)> {
        for _ in 0..MAX_TRIES {
            let slots = vec![(random::lease_token(), random::random())];
            let now = Clock::system().now();
            let request = LeaseRequest { class: Class::Async, session, now, slots, only_paid: false };
            if let Some(job) = self.store.grabs().lease(request).await?.pop() {
                return Ok((job.grab, job.token, job.upload_key));
            }
        }
        bail!("no grab could be leased")
    }

    async fn finish(self) -> Result<()> {
        let found = self.store.credits().verify_ledger().await?;
        anyhow::ensure!(found.is_empty(), "the ledger does not balance: {found:?}");
        self.store.close().await;
        Ok(())
    }
}
