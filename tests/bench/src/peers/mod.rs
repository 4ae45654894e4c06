//! Compares the speed of grabd with that of other screenshot tools on the same browser and pages.

mod contender;
mod load;
mod machine;
mod network;
mod node_tool;
mod page;
mod report;
mod turns;

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context;
use contender::Contender;
use grabd_tests::harness::ALLOWED;
use grabd_tests::programs;
use grabd_tests::site::Site;
use load::Load;
use page::PAGES;
use report::{Cell, Row};
use turns::in_turn;

/// Concurrent captures in the rounds for the throughput.
const CONCURRENCY: [usize; 3] = [1, 4, 8];
/// Rounds per page, contender and concurrency, in turn with the other contenders.
const ROUNDS: u32 = 3;
/// The first heading in docs/BENCHMARKS.md after this comparison.
const NEXT_HEADING: &str = "\n## Start and idleness\n";

/// Options of the comparison.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these pages: tiny, article, dashboard, tall.
    pages: Vec<String>,
    /// Captures per page and contender for the latency.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    grabs: u32,
    /// Seconds per page, contender and concurrency for the throughput.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(3..=3600))]
    seconds: u64,
    /// Replace the tables of this comparison in docs/BENCHMARKS.md.
    #[arg(long)]
    write: bool,
    /// Measure a page as on the internet instead: five origins, TLS, HTTP/2, round trips of 40 ms.
    #[arg(long, conflicts_with_all = ["write", "pages", "seconds"])]
    network: bool,
}

/// Runs the comparison and prints it.
pub(crate) async fn measure(args: Args) -> anyhow::Result<()> {
    if args.network {
        return network::measure(args.grabs).await;
    }
    for name in &args.pages {
        let known = PAGES.map(|page| page.name);
        anyhow::ensure!(known.contains(&name.as_str()), "unknown page `{name}`; known are {}", known.join(", "));
    }
    let pages =
        PAGES.into_iter().filter(|page| args.pages.is_empty() || args.pages.iter().any(|name| name == page.name));
    let load_before = machine::describe_load().await;
    let site = Site::start(ALLOWED).await?;
    let contenders = Contender::start_all().await?;
    let names: Vec<&str> = contenders.iter().map(Contender::name).collect();

    let mut rows = Vec::new();
    for page in pages {
        let url = site.url(page.path);
        let mut cells: Vec<Cell> = contenders.iter().map(|_| Cell::default()).collect();
        // The first capture of each contender warms caches and is not counted.
        for turn in 0..=args.grabs {
            for at in in_turn(turn, contenders.len()) {
                match contenders[at].capture(&url, page).await {
                    Ok((took, image)) => {
                        cells[at].image = Some(image);
                        if turn > 0 {
                            cells[at].latency.add(took);
                        }
                    }
                    Err(error) => {
                        cells[at].error.get_or_insert(format!("{error:#}"));
                    }
                }
            }
        }
        eprintln!("{}: latency measured", page.name);
        for concurrency in CONCURRENCY {
            let mut loads: Vec<Load> = contenders.iter().map(|_| Load::default()).collect();
            for round in 0..ROUNDS {
                for at in in_turn(round, contenders.len()) {
                    let length = Duration::from_secs(args.seconds) / ROUNDS;
                    loads[at].add(&contenders[at], page, &url, concurrency, length).await?;
                }
            }
            for (cell, load) in cells.iter_mut().zip(loads) {
                cell.loads.push(load);
            }
            eprintln!("{}: concurrency {concurrency} measured", page.name);
        }
        rows.push(Row { page, cells });
    }

    let mut text = about_this_run(&args, &load_before, &rows);
    text.push_str(&report::tables(&names, &CONCURRENCY, &mut rows));
    println!("{text}");
    if args.write {
        write_page(&text)?;
    }
    for contender in contenders {
        contender.stop().await?;
    }
    Ok(())
}

/// Replaces the part of docs/BENCHMARKS.md that is about this comparison. The sections after it have other figures.
fn write_page(text: &str) -> anyhow::Result<()> {
    let file = programs::root().join("docs/BENCHMARKS.md");
    let former = std::fs::read_to_string(&file)?;
    let rest = former.find(NEXT_HEADING).and_then(|at| former.get(at..));
    let rest = rest.with_context(|| format!("{} has no section `{}`", file.display(), NEXT_HEADING.trim()))?;
    std::fs::write(&file, format!("{}{text}{rest}", include_str!("benchmarks.md")))?;
    Ok(())
}

fn about_this_run(args: &Args, load_before: &str, rows: &[Row]) -> String {
    let mut text = String::from("## This run\n\n");
    for (what, value) in machine::describe() {
        let _ = writeln!(text, "- {what}: {value}.");
    }
    let _ = writeln!(text, "- Load: {load_before}.");
    let _ = writeln!(
        text,
        "- {} captures per page and contender for the latency; {} rounds of {:.0} s for the throughput.",
        args.grabs,
        ROUNDS,
        (Duration::from_secs(args.seconds) / ROUNDS).as_secs_f64()
    );
    text.push_str("- Pages:\n");
    for row in rows {
        let _ = writeln!(text, "  - {}: {}.", row.page.name, row.page.about);
    }
    text.push('\n');
    text
}
