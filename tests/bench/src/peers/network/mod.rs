//! The time to an image of a page as on the internet: five origins, TLS, HTTP/2, and round trips of 40 ms.

mod relay;
mod shop;
mod tls_site;

use std::fs::Permissions;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use grabd_tests::dns::Dns;
use serde_json::json;

use super::contender::Contender;
use super::machine;
use super::node_tool::NodeTool;
use super::page::VIEWPORT;
use super::turns::in_turn;
use crate::baseline::Baseline;
use crate::markdown::table;
use crate::measure::Sample;
use crate::service::Service;
use tls_site::NetworkSite;

/// The address of all hosts, which the benchmark's service may reach.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const ROUND_TRIP: Duration = Duration::from_millis(40);
/// The tools from npm, by their names in `tests/peers/tools.mjs`: until the load event, and until the network is idle.
const TOOLS: [&str; 4] = ["puppeteer-load", "puppeteer-networkidle0", "playwright", "playwright-networkidle"];
/// The place of the bare browser among the contenders.
const BARE: usize = 1;
/// Captures whose stages are read.
const STAGED: u32 = 10;
/// Turns between two lines about the progress.
const PROGRESS: u32 = 5;

/// What was measured for one contender.
#[derive(Default)]
struct Row {
    all: Sample,
    /// Of those whose image shows the whole page.
    right: Sample,
    count: u32,
    right_count: u32,
    /// The first failure.
    error: Option<String>,
}

/// Captures the page with each contender, in turn, and prints the times.
pub(super) async fn measure(grabs: u32) -> anyhow::Result<()> {
    let load_before = machine::describe_load().await;
    let site = NetworkSite::start(ADDRESS.into(), ROUND_TRIP).await?;
    let dns = Dns::start(ADDRESS).await?;
    // The browser of the service runs as another user, who must be able to traverse the directory.
    let directory = tempfile::tempdir()?;
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
    let trust = format!("--ignore-certificate-errors-spki-list={}", site.key_hash);
    let browser = write_browser(directory.path(), &trust)?;
    let contenders = start_all(&browser, &dns, trust).await?;
    let (url, file) = (site.url(), directory.path().join("image.png"));

    let mut rows: Vec<Row> = contenders.iter().map(|_| Row::default()).collect();
    // The first capture of each contender warms caches and is not counted.
    for turn in 0..=grabs {
        for at in in_turn(turn, contenders.len()) {
            let captured = contenders[at].image(&url, &file).await;
            let row = &mut rows[at];
            match captured {
                Ok(_) if turn == 0 => {}
                Ok((took, png)) => row.add(took, &png),
                Err(error) => {
                    row.error.get_or_insert(format!("{error:#}"));
                }
            }
        }
        if turn % PROGRESS == 0 {
            eprintln!("network: {turn} of {grabs} captures of each contender");
        }
    }
    println!("Load: {load_before}.\n");
    println!("Milliseconds to an image, as `p50 / p90`, with round trips of {} ms:\n", ROUND_TRIP.as_millis());
    print_rows(&contenders, &mut rows);
    if let Some(Contender::Grabd(service)) = contenders.first() {
        print_stages(service, &url, grabs.min(STAGED)).await?;
    }
    for contender in contenders {
        contender.stop().await?;
    }
    Ok(())
}

impl Row {
    fn add(&mut self, took: Duration, png: &[u8]) {
        self.count += 1;
        self.all.add(took);
        if image::load_from_memory(png).is_ok_and(|image| shop::is_right(&image.to_rgb8())) {
            self.right_count += 1;
            self.right.add(took);
        }
    }
}

/// Writes a program that starts the browser with this flag. Returns its path.
fn write_browser(directory: &Path, flag: &str) -> anyhow::Result<PathBuf> {
    let found = Command::new("sh").args(["-c", "command -v chromium-headless-shell"]).output()?;
    let real = String::from_utf8(found.stdout)?;
    anyhow::ensure!(found.status.success(), "chromium-headless-shell is missing: run script/setup");
    let path = directory.join("browser");
    std::fs::write(&path, format!("#!/bin/sh\nexec '{}' '{flag}' \"$@\"\n", real.trim()))?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    Ok(path)
}

/// Starts all contenders: grabd, then the bare browser. The browsers of the others need no DNS server.
async fn start_all(browser: &Path, dns: &Dns, trust: String) -> anyhow::Result<Vec<Contender>> {
    let (browser, dns) = (browser.display().to_string(), dns.address.to_string());
    let settings = [("GRABD_BROWSER__EXECUTABLE", browser.as_str()), ("GRABD_EGRESS__DNS", dns.as_str())];
    let service = Service::start_with(&settings).await.context("the service")?;
    let flags = [trust, format!("--host-resolver-rules=MAP *.test {ADDRESS}")];
    let bare = Baseline::start_with(&flags).await.context("the bare browser")?;
    let mut all = vec![Contender::Grabd(Box::new(service)), Contender::Bare(Box::new(bare))];
    let flags = flags.join("\n");
    for name in TOOLS {
        let tool = NodeTool::start_with(name, &[("GRABD_PEERS_FLAGS", &flags)]).with_context(|| name.to_owned())?;
        all.push(Contender::Tool(Box::new(tool)));
    }
    Ok(all)
}

fn print_rows(contenders: &[Contender], rows: &mut [Row]) {
    let bare = rows.get_mut(BARE).map_or(f64::NAN, |row| row.all.quantile(0.5));
    let heads = ["Contender", "right images", "all images", "right images only", "ratio to bare DevTools"];
    let mut cells = vec![heads.map(str::to_owned).to_vec()];
    for (contender, row) in contenders.iter().zip(rows.iter_mut()) {
        let median = if row.right_count > 0 { row.right.quantile(0.5) } else { f64::NAN };
        cells.push(vec![
            contender.name().to_owned(),
            format!("{} of {}", row.right_count, row.count),
            times(&mut row.all),
            times(&mut row.right),
            if median.is_nan() { "never right".to_owned() } else { format!("{:.2}", median / bare) },
        ]);
    }
    print!("{}", table(&cells));
    for (contender, row) in contenders.iter().zip(rows.iter()) {
        if let Some(error) = &row.error {
            println!("- {}: {error}", contender.name());
        }
    }
}

/// The median and the 90th percentile.
fn times(sample: &mut Sample) -> String {
    let (median, tail) = (sample.quantile(0.5), sample.quantile(0.9));
    if median.is_nan() { "none".to_owned() } else { format!("{median:.0} / {tail:.0}") }
}

/// Prints when the stages of grabd's renders are reached.
async fn print_stages(service: &Service, url: &str, captures: u32) -> anyhow::Result<()> {
    let (width, height) = VIEWPORT;
    let body = json!({ "url": url, "width": width, "height": height, "format": "png" });
    let mut stages: Vec<(String, Sample)> = Vec::new();
    for _ in 0..captures {
        for (name, ms) in service.stages(&body).await? {
            let took = Duration::from_secs_f64(ms / 1000.0);
            match stages.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sample)) => sample.add(took),
                None => {
                    let mut sample = Sample::default();
                    sample.add(took);
                    stages.push((name, sample));
                }
            }
        }
    }
    println!("\nStages of grabd, in milliseconds since the start of the render, as `p50 / p90`:\n");
    let mut cells = vec![["Stage", "reached after"].map(str::to_owned).to_vec()];
    for (name, sample) in &mut stages {
        cells.push(vec![name.clone(), times(sample)]);
    }
    print!("{}", table(&cells));
    Ok(())
}
