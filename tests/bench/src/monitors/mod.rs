//! What monitors cost while nothing is due and while many are, and which changes of a page they find.

mod changing_site;
mod connection;
mod copies;
mod cost;
mod detection;
mod score;
mod watches;

/// What is measured.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Monitors whose due times are weeks away.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    monitors: u32,
    /// Monitors that are due within a minute.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    due: u32,
    /// Runs of each monitor after its first one, in the measurement of what is found.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=60))]
    rounds: u32,
    /// Leave out the measurement of what monitors cost.
    #[arg(long, conflicts_with = "without_detection")]
    without_cost: bool,
    /// Leave out the measurement of what they find.
    #[arg(long)]
    without_detection: bool,
}

/// Measures and prints both.
pub(crate) async fn measure(args: &Args) -> anyhow::Result<()> {
    if !args.without_cost {
        cost::measure(args.monitors, args.due).await?;
    }
    if !args.without_detection {
        detection::measure(args.rounds).await?;
    }
    Ok(())
}
