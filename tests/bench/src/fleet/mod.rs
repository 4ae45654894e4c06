//! A cluster without browsers: three cores, two edges and scripted renderers on PostgreSQL. Shows what a grab costs the
//! service itself, and whether that depends on the number of slots and on the length of the queue.

mod backlog;
mod callers;
mod processes;
mod renderers;

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;
use grabd_store::Store;
use grabd_tests::postgres_server::PostgresServer;
use grabd_tests::process_tree::ProcessTree;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use callers::{Begun, Callers};
use processes::Processes;
use renderers::Renderers;

/// Most slots of one renderer.
const SLOTS_EACH: usize = 8;
/// Time before the measurement, for renders that take some time: until most slots have had a grab.
const WARM_UP: Duration = Duration::from_secs(6);
/// Callers for renders that take no time. More would only wait for each other.
const CALLERS: usize = 64;

/// What is measured.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Numbers of slots.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 400, 1600])]
    slots: Vec<usize>,
    /// Numbers of asynchronous grabs that wait in the queue.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 10_000, 100_000])]
    queued: Vec<u32>,
    /// How long renders take.
    #[arg(long, value_delimiter = ',', default_values_t = [Renders::Realistic, Renders::Instant])]
    renders: Vec<Renders>,
    /// Length of each measurement.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(5..=600))]
    seconds: u64,
}

/// How long renders take.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Renders {
    /// 0.5 to 8 seconds.
    Realistic,
    /// No time.
    Instant,
}

impl std::fmt::Display for Renders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Realistic => "realistic",
            Self::Instant => "instant",
        })
    }
}

impl Renders {
    const fn milliseconds(self) -> Range<u64> {
        match self {
            Self::Realistic => 500..8000,
            Self::Instant => 0..1,
        }
    }

    /// Callers that keep all slots busy.
    fn callers(self, slots: usize) -> usize {
        match self {
            Self::Realistic => slots,
            Self::Instant => slots.min(CALLERS),
        }
    }

    const fn warm_up(self) -> Duration {
        match self {
            Self::Realistic => WARM_UP,
            Self::Instant => Duration::from_secs(2),
        }
    }
}

/// Processor time of the parts of the service.
#[derive(Clone, Copy)]
struct Cpu {
    cores: Duration,
    edges: Duration,
    postgres: Duration,
    /// The callers and the scripted renderers.
    bench: Duration,
}

/// The results of one measurement.
struct Row {
    grabs: u64,
    took: Duration,
    cpu: Cpu,
    wait: [f64; 2],
    failed: u64,
}

impl Row {
    fn per_second(&self) -> f64 {
        self.grabs as f64 / self.took.as_secs_f64()
    }

    /// Milliseconds for each grab.
    fn each(&self, cpu: Duration) -> f64 {
        cpu.as_secs_f64() * 1000.0 / self.grabs.max(1) as f64
    }

    fn service_each(&self) -> f64 {
        self.each(self.cpu.cores + self.cpu.edges + self.cpu.postgres)
    }
}

/// Measures all combinations, and prints a table.
pub(crate) async fn measure(args: &Args) -> Result<()> {
    println!(
        "3 cores, 2 edges, PostgreSQL in memory without fsync; CPU in ms for each grab; wait in ms until a render begins"
    );
    println!(
        "{:<10}{:>7}{:>9}{:>10}{:>9}{:>9}{:>10}{:>9}{:>7}{:>10}{:>10}{:>8}{:>8}",
        "renders",
        "slots",
        "queued",
        "grabs/s",
        "cores",
        "edges",
        "postgres",
        "service",
        "ratio",
        "wait p50",
        "p99",
        "failed",
        "bench"
    );
    for &renders in &args.renders {
        let mut first = None;
        for &queued in &args.queued {
            for &slots in &args.slots {
                let row = measure_one(renders, slots, queued, Duration::from_secs(args.seconds)).await;
                let row = row.with_context(|| format!("{renders}, {slots} slots, {queued} queued"))?;
                let base = *first.get_or_insert(row.service_each());
                let Cpu { cores, edges, postgres, bench } = row.cpu;
                println!(
                    "{:<10}{:>7}{:>9}{:>10.1}{:>9.2}{:>9.2}{:>10.2}{:>9.2}{:>7.2}{:>10.0}{:>10.0}{:>8}{:>8.2}",
                    renders.to_string(),
                    slots,
                    queued,
                    row.per_second(),
                    row.each(cores),
                    row.each(edges),
                    row.each(postgres),
                    row.service_each(),
                    row.service_each() / base,
                    row.wait[0],
                    row.wait[1],
                    row.failed,
                    row.each(bench),
                );
            }
        }
    }
    Ok(())
}

async fn measure_one(renders: Renders, slots: usize, queued: u32, length: Duration) -> Result<Row> {
    let postgres = PostgresServer::start().await?;
    let store = Store::open(&postgres.url()).await?;
    store.migrate().await?;
    let teams = callers::create_teams(&store).await?;
    if queued > 0 {
        backlog::insert(&postgres.url(), queued).await?;
    }
    let processes = Processes::start(&postgres.url()).await?;
    let (stop, begun) = (CancellationToken::new(), Begun::default());
    let renderers = Renderers::attach(&processes.cores(), slots, SLOTS_EACH, renders.milliseconds(), &begun, &stop);
    processes.wait_until_ready().await?;
    let callers = Callers::start(&processes.edges(), &teams, renders.callers(slots), &begun, &stop);
    sleep(renders.warm_up()).await;

    let postgres_pid = postgres.pid()?;
    let cpu = || {
        let [cores, edges] = processes.cpu();
        Cpu {
            cores,
            edges,
            postgres: ProcessTree(postgres_pid).cpu(),
            bench: ProcessTree(std::process::id()).own_cpu(),
        }
    };
    callers.reset();
    let (began, before, rendered) = (Instant::now(), cpu(), renderers.count());
    sleep(length).await;
    let (took, after, grabs) = (began.elapsed(), cpu(), renderers.count() - rendered);
    let (wait, failed) = callers.results();
    stop.cancel();
    callers.finish().await;
    renderers.finish().await;
    store.close().await;
    let drift = Store::open(&postgres.url()).await?;
    let found = drift.credits().verify_ledger().await?;
    anyhow::ensure!(found.is_empty(), "the ledger does not balance: {found:?}");
    drift.close().await;
    processes.kill().await?;
    let cpu = Cpu {
        cores: after.cores - before.cores,
        edges: after.edges - before.edges,
        postgres: after.postgres.saturating_sub(before.postgres),
        bench: after.bench - before.bench,
    };
    Ok(Row { grabs, took, cpu, wait, failed })
}
