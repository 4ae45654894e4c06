//! How soon the service captures after its start, and after a time without captures.

use std::time::{Duration, Instant};

use clap::Parser;
use grabd_tests::harness::ALLOWED;
use grabd_tests::site::Site;

use crate::measure::Sample;
use crate::service::Service;

/// How often the service is asked whether it is ready.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long a start may take.
const START_LIMIT: Duration = Duration::from_secs(60);

#[derive(Parser)]
pub(crate) struct Args {
    /// Starts of the service.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    starts: u32,
    /// Seconds without captures, after which one is measured.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle: u64,
    /// Pauses of that length.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pauses: u32,
}

/// Starts the service on an existing database, again and again, and measures from the start of its process. Then lets it
/// idle.
pub(crate) async fn measure(args: &Args) -> anyhow::Result<()> {
    let site = Site::start(ALLOWED).await?;
    let url = site.url("/tiny");
    // After a restart of the system, this writes the copy of the browser's program, which the other starts share.
    let service = Service::start().await?;
    wait_until_ready(&service).await?;
    service.grab(&url, false).await?;
    service.stop().await?;
    let [mut ready, mut first, mut second] = [Sample::default(), Sample::default(), Sample::default()];
    for _ in 0..args.starts {
        let service = Service::start().await?;
        wait_until_ready(&service).await?;
        ready.add(service.started().elapsed());
        service.grab(&url, false).await?;
        first.add(service.started().elapsed());
        let began = Instant::now();
        service.grab(&url, false).await?;
        second.add(began.elapsed());
        service.stop().await?;
    }
    println!("milliseconds over {} starts, on an existing database", args.starts);
    println!("{:<36}{:>10}{:>10}", "", "p50", "p90");
    print_row("start to ready", &mut ready);
    print_row("start to the first image of tiny", &mut first);
    print_row("second image", &mut second);

    let service = Service::start().await?;
    wait_until_ready(&service).await?;
    let [mut warm, mut after] = [Sample::default(), Sample::default()];
    for _ in 0..args.pauses {
        // The first captures after a start or a pause warm caches.
        for is_counted in [false, false, true, true, true] {
            let began = Instant::now();
            service.grab(&url, false).await?;
            if is_counted {
                warm.add(began.elapsed());
            }
        }
        // This pause is what is measured: nothing happens during it that could be awaited.
        tokio::time::sleep(Duration::from_secs(args.idle)).await;
        let began = Instant::now();
        service.grab(&url, false).await?;
        after.add(began.elapsed());
    }
    println!("\nmilliseconds over {} pauses of {} s", args.pauses, args.idle);
    println!("{:<36}{:>10}{:>10}", "", "p50", "p90");
    print_row("image without a pause", &mut warm);
    print_row("first image after a pause", &mut after);
    service.stop().await
}

fn print_row(name: &str, sample: &mut Sample) {
    println!("{name:<36}{:>10.0}{:>10.0}", sample.quantile(0.5), sample.quantile(0.9));
}

/// Polls, as a load balancer does: the service prints its addresses when it listens, and nothing when its renderer has joined
/// after that.
async fn wait_until_ready(service: &Service) -> anyhow::Result<()> {
    let until = service.started() + START_LIMIT;
    while !service.is_ready().await {
        anyhow::ensure!(Instant::now() < until, "the service is not ready within {} s", START_LIMIT.as_secs());
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
