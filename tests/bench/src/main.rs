//! Measures the cost of grabd over the baseline in one interleaved run. `script/bench` builds and starts it.
//!
//! Absolute figures depend on the machine. Compare the ratios.

mod abuse_week;
mod baseline;
mod cold;
mod fairness;
mod fleet;
mod hostile;
mod hostile_tenants;
mod lists;
mod many;
mod markdown;
mod measure;
mod monitors;
mod other_tools;
mod peers;
mod pictures;
mod reading;
mod resources;
mod rest_api;
mod service;
mod sheet;
mod sites;
mod soak;
mod tables;
mod watchers;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use baseline::Baseline;
use clap::{Parser, Subcommand};
use grabd_tests::harness::ALLOWED;
use grabd_tests::process_tree::ProcessTree;
use grabd_tests::site::Site;
use measure::{Sample, seconds_of_others};
use service::Service;

#[derive(Parser)]
#[command(about = "Measures grabd against the bare browser")]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Images per page and side at concurrency 1.
    #[arg(long, default_value_t = 40)]
    grabs: usize,
    /// Seconds per page and side at concurrency 4.
    #[arg(long, default_value_t = 12)]
    seconds: u64,
    /// The binary of another version of grabd, which is measured in the same run.
    #[arg(long)]
    before: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Queues a flood of one team and measures how long another team's single grab waits.
    Fairness {
        /// Grabs in the flood.
        #[arg(long, default_value_t = 10_000)]
        queued: u32,
    },
    /// Watches many waiting grabs over a few connections: memory per stream, and latency of events.
    Watchers {
        /// Number of streams, one per grab.
        #[arg(long, default_value_t = 10_000)]
        streams: usize,
        /// Seconds to wait for rendered grabs.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
    },
    /// Measures how soon the service captures after its start, and after a time without captures.
    Cold(cold::Args),
    /// Compares list pages of a long history with those of a short one.
    Lists {
        /// Grabs in the long history.
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
        grabs: u64,
    },
    /// Captures hostile pages for a long time and measures what remains.
    Hostile {
        /// Total number of grabs.
        #[arg(long, default_value_t = 500)]
        grabs: usize,
        /// Concurrent grabs.
        #[arg(long, default_value_t = 2)]
        at_a_time: usize,
        /// Only these pages.
        pages: Vec<String>,
    },
    /// Measures a paying team's captures while hostile accounts do what costs the service most, for free.
    HostileTenants(hostile_tenants::Options),
    /// Does everything that strangers can do, for simulated days, and shows what it leaves in each table.
    AbuseWeek {
        /// Simulated days.
        #[arg(long, default_value_t = 14, value_parser = clap::value_parser!(u32).range(1..=60))]
        days: u32,
        /// Rounds of abuse in each day.
        #[arg(long, default_value_t = 100)]
        rounds: u32,
    },
    /// Creates grabs of all kinds while simulated days pass, and shows whether memory grows.
    Soak {
        /// Length in minutes.
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(30..=10_080))]
        minutes: u64,
        /// Concurrent captures.
        #[arg(long, default_value_t = 4)]
        at_a_time: usize,
        /// Writes a chart of the memory to this file, as SVG.
        #[arg(long)]
        chart: Option<PathBuf>,
    },
    /// Compares how many images of hard pages are correct for grabd and other tools.
    Pictures(pictures::Args),
    /// Compares pictures of folders of built sites with what a patient reader sees.
    Sites(sites::Args),
    /// Measures a cluster without browsers: grabs per second, and processor time for each grab.
    Fleet(fleet::Args),
    /// Creates and completes grabs in the store alone, with many grabs stored and many waiting.
    Many(many::Args),
    /// Measures what many monitors cost, and which changes of pages monitors find.
    Monitors(monitors::Args),
    /// Compares the speed of grabd with that of other tools.
    Peers(peers::Args),
    /// Compares the text and the Markdown of public sets of pages with what should be read of them.
    Reading(reading::Args),
    /// Serves a bare axum handler for comparison. Started by the measurement itself.
    BareAxum,
}

/// A page and whether it is captured as a full page.
#[derive(Clone, Copy)]
struct Page {
    name: &'static str,
    path: &'static str,
    full_page: bool,
}

const PAGES: [Page; 3] = [
    Page { name: "tiny", path: "/tiny", full_page: false },
    Page { name: "article", path: "/article", full_page: false },
    Page { name: "tall", path: "/tall", full_page: true },
];

/// Rounds at concurrency 4, alternating between baseline and service.
const ROUNDS: u64 = 3;
/// Concurrent grabs in a throughput round.
const CONCURRENCY: usize = 4;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    match args.command {
        Some(Command::BareAxum) => return rest_api::serve_bare().await,
        Some(Command::Fairness { queued }) => return fairness::measure(queued).await,
        Some(Command::Watchers { streams, seconds }) => {
            return watchers::measure(streams, Duration::from_secs(seconds)).await;
        }
        Some(Command::Hostile { grabs, at_a_time, pages }) => return hostile::measure(grabs, at_a_time, &pages).await,
        Some(Command::HostileTenants(options)) => return hostile_tenants::measure(&options).await,
        Some(Command::AbuseWeek { days, rounds }) => return abuse_week::measure(days, rounds).await,
        Some(Command::Soak { minutes, at_a_time, chart }) => {
            return soak::measure(soak::Plan { length: Duration::from_secs(minutes * 60), at_a_time, chart }).await;
        }
        Some(Command::Pictures(args)) => return pictures::measure(args).await,
        Some(Command::Sites(args)) => return sites::measure(args).await,
        Some(Command::Fleet(args)) => return fleet::measure(&args).await,
        Some(Command::Many(args)) => return many::measure(&args).await,
        Some(Command::Monitors(args)) => return monitors::measure(&args).await,
        Some(Command::Peers(args)) => return peers::measure(args).await,
        Some(Command::Reading(args)) => return reading::measure(&args).await,
        Some(Command::Cold(args)) => return cold::measure(&args).await,
        Some(Command::Lists { grabs }) => return lists::measure(grabs).await,
        None => {}
    }
    let sides = Sides {
        site: Site::start(ALLOWED).await?,
        bare: Baseline::start().await.context("the bare browser")?,
        service: Service::start().await.context("the service")?,
        before: match &args.before {
            Some(binary) => Some(Service::start_binary(binary, &[]).await.context("the version before")?),
            None => None,
        },
    };
    sides.latency(args.grabs).await?;
    sides.throughput(Duration::from_secs(args.seconds) / u32::try_from(ROUNDS)?).await?;
    rest_api::measure(&sides.service, sides.before.as_ref()).await?;
    sides.stop().await
}

/// What is compared.
struct Sides {
    site: Site,
    bare: Baseline,
    service: Service,
    /// Another version of the service.
    before: Option<Service>,
}

impl Sides {
    async fn latency(&self, grabs: usize) -> anyhow::Result<()> {
        println!("latency at concurrency 1, ms ({grabs} grabs each, interleaved)");
        print!("{:<10}{:>10}{:>10}{:>10}{:>10}{:>9}", "page", "bare p50", "p95", "REST p50", "p95", "ratio");
        println!("{}", if self.before.is_some() { "  before p50       p95  to before" } else { "" });
        for page in PAGES {
            let [mut bare, mut rest, mut before] = [Sample::default(), Sample::default(), Sample::default()];
            let url = self.site.url(page.path);
            // The first capture of each side warms caches and is not counted.
            for turn in 0..=grabs {
                let prepared = self.bare.prepare().await?;
                let began = Instant::now();
                let bytes = self.bare.grab(&prepared, &url, page.full_page).await?;
                let bare_took = began.elapsed();
                self.bare.dispose(prepared).await?;
                anyhow::ensure!(!bytes.is_empty(), "the baseline image is empty");
                let began = Instant::now();
                self.service.grab(&url, page.full_page).await?;
                let rest_took = began.elapsed();
                let began = Instant::now();
                if let Some(before) = &self.before {
                    before.grab(&url, page.full_page).await?;
                }
                let before_took = began.elapsed();
                if turn > 0 {
                    bare.add(bare_took);
                    rest.add(rest_took);
                    before.add(before_took);
                }
            }
            let (name, bare_p50, rest_p50) = (page.name, bare.quantile(0.5), rest.quantile(0.5));
            let (bare_p95, rest_p95) = (bare.quantile(0.95), rest.quantile(0.95));
            let ratio = rest_p50 / bare_p50;
            print!("{name:<10}{bare_p50:>10.1}{bare_p95:>10.1}{rest_p50:>10.1}{rest_p95:>10.1}{ratio:>9.2}");
            if self.before.is_some() {
                let (p50, p95) = (before.quantile(0.5), before.quantile(0.95));
                print!("{p50:>12.1}{p95:>10.1}{:>11.3}", rest_p50 / p50);
            }
            println!();
        }
        Ok(())
    }

    async fn throughput(&self, round: Duration) -> anyhow::Result<()> {
        println!("\nthroughput at concurrency {CONCURRENCY} ({ROUNDS} rounds of {round:?} each, in turn)");
        println!(
            "{:<10}{:<8}{:>10}{:>9}{:>10}{:>9}{:>10}",
            "page", "side", "grabs/s", "ratio", "CPU-s", "ratio", "MiB"
        );
        for page in PAGES {
            let url = self.site.url(page.path);
            let [mut bare, mut rest, mut before] = [Run::default(), Run::default(), Run::default()];
            for _ in 0..ROUNDS {
                let captured = || async {
                    let prepared = self.bare.prepare().await?;
                    self.bare.grab(&prepared, &url, page.full_page).await?;
                    self.bare.dispose(prepared).await
                };
                bare.add(self.bare.tree(), round, captured).await?;
                let services = [(Some(&self.service), &mut rest), (self.before.as_ref(), &mut before)];
                for (service, run) in services.into_iter().filter_map(|(service, run)| Some((service?, run))) {
                    run.add(service.tree(), round, || async { service.grab(&url, page.full_page).await }).await?;
                }
            }
            let before = self.before.as_ref().map(|_| ("before", &before));
            for (side, run) in [("bare", &bare), ("REST", &rest)].into_iter().chain(before) {
                let (rate, cpu, mib) = (run.per_second(), run.cpu_each(), run.peak_mib);
                let (rate_ratio, cpu_ratio) = (rate / bare.per_second(), cpu / bare.cpu_each());
                let page = page.name;
                println!("{page:<10}{side:<8}{rate:>10.2}{rate_ratio:>9.2}{cpu:>10.3}{cpu_ratio:>9.2}{mib:>10.0}");
            }
        }
        Ok(())
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.service.stop().await?;
        if let Some(before) = self.before {
            before.stop().await?;
        }
        self.bare.stop().await
    }
}

/// Totals of one side.
#[derive(Default)]
struct Run {
    grabs: u32,
    wall: Duration,
    /// Processor seconds.
    cpu: f64,
    peak_mib: f64,
}

impl Run {
    async fn add<W, F>(&mut self, tree: ProcessTree, length: Duration, work: W) -> anyhow::Result<()>
    where
        W: Fn() -> F,
        F: Future<Output = anyhow::Result<()>>,
    {
        let cpu = seconds_of_others();
        let began = Instant::now();
        let workers = (0..CONCURRENCY).map(|_| async {
            let mut done = 0;
            while began.elapsed() < length {
                work().await?;
                done += 1;
            }
            Ok::<u32, anyhow::Error>(done)
        });
        let memory = async {
            tokio::time::sleep(length / 2).await;
            tree.pss_mib()
        };
        let (counts, mib) = tokio::join!(futures::future::try_join_all(workers), memory);
        self.grabs += counts?.iter().sum::<u32>();
        self.wall += began.elapsed();
        self.cpu += seconds_of_others() - cpu;
        self.peak_mib = self.peak_mib.max(mib);
        Ok(())
    }

    fn per_second(&self) -> f64 {
        f64::from(self.grabs) / self.wall.as_secs_f64()
    }

    fn cpu_each(&self) -> f64 {
        self.cpu / f64::from(self.grabs.max(1))
    }
}
