//! Captures every hard page with grabd and with other tools on the same browser, and checks the images against the
//! criteria of the page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use grabd_tests::hard::{ExpectedReport, Mode, Page};
use grabd_tests::harness::ALLOWED;
use grabd_tests::programs;
use grabd_tests::site::Site;
use grabd_tests::site::hard::{built, directory};
use serde_json::{Value, json};

use crate::measure::Sample;
use crate::other_tools::{Peers, Task};
use crate::service::Service;
use crate::sheet;

/// A second address of the same site, which a browser treats as another site.
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 4));

/// The tools that `tests/peers/capture.mjs` drives.
const PEERS: [&str; 5] = ["puppeteer-load", "puppeteer-networkidle2", "playwright", "browserless", "capture-website"];

/// Pairs on the contact sheet, in total and per kind of page.
const PAIRS: usize = 14;
const PAIRS_OF_A_KIND: usize = 3;

/// Options of the comparison.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only pages whose name contains one of these texts.
    pages: Vec<String>,
    /// Leave the other tools out.
    #[arg(long)]
    alone: bool,
    /// Another build of grabd to compare with, as NAME=PATH.
    #[arg(long, value_name = "NAME=PATH")]
    against: Vec<String>,
    /// Images per page and tool. A page counts as correct if all its images are.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Keep the images in this directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Write docs/PICTURES.md from this run.
    #[arg(long)]
    write: bool,
}

/// The result of one tool for one page.
struct Outcome {
    /// Criteria that failed. Empty if the image is correct.
    wrong: Vec<String>,
    /// Whether the tool warned that something may be missing. `None` for tools that never warn.
    warned: Option<bool>,
    /// `settled_by` and the warnings.
    report: String,
    took: Duration,
}

/// A tool that captures pages.
enum Tool {
    Grabd { name: String, service: Service },
    Peer(&'static str),
}

/// Runs the comparison and prints it.
pub(crate) async fn measure(args: Args) -> anyhow::Result<()> {
    let site = Site::start_pair(ALLOWED, OTHER).await?;
    let mut pages = Page::all(&directory(), "/hard/")?;
    if built().is_dir() {
        pages.extend(Page::all(&built(), "/built/")?);
    }
    pages.retain(|page| args.pages.is_empty() || args.pages.iter().any(|part| page.name.contains(part)));
    anyhow::ensure!(!pages.is_empty(), "no such page");

    let keep = match &args.keep {
        Some(directory) => directory.clone(),
        None => std::env::temp_dir().join(format!("grabd-pictures-{}", std::process::id())),
    };
    std::fs::create_dir_all(&keep)?;
    let allowed = format!("{ALLOWED}/32,{OTHER}/32");
    let settings = [("GRABD_EGRESS__ALLOW_CIDRS", allowed.as_str())];
    let mut tools = vec![Tool::Grabd { name: "grabd".into(), service: Service::start_with(&settings).await? }];
    for other in &args.against {
        let (name, path) = other.split_once('=').context("--against takes NAME=PATH")?;
        let service = Service::start_binary(Path::new(path), &settings).await?;
        tools.push(Tool::Grabd { name: name.into(), service });
    }
    let mut peers = None;
    if !args.alone {
        peers = Some(Peers::start()?);
        tools.extend(PEERS.map(Tool::Peer));
    }

    let names: Vec<String> = tools.iter().map(Tool::name).collect();
    println!("{:<44}{}", "page", names.iter().map(|name| format!("{name:>24}")).collect::<String>());
    let mut table: Vec<(Page, Vec<Outcome>)> = Vec::new();
    for page in pages {
        let mut row = Vec::new();
        for tool in &tools {
            let mut outcome: Option<Outcome> = None;
            for run in 0..args.runs.max(1) {
                let file = picture(&keep, &page, &tool.name(), run);
                let next = tool.capture(&page, &site, &file, peers.as_mut()).await?;
                let worse = outcome.as_ref().is_none_or(|seen| seen.wrong.is_empty());
                outcome = if worse { Some(next) } else { outcome };
            }
            row.extend(outcome);
        }
        print_row(&page, &row);
        table.push((page, row));
    }
    print_sums(&names, &table);
    if args.write {
        let docs = programs::root().join("docs");
        std::fs::write(docs.join("PICTURES.md"), report(&names, &table, &args.pages))?;
        if let Some(Tool::Grabd { service, .. }) = tools.first() {
            sheet::write(service, &site, &contact_sheet_pairs(&names, &table, &keep), &docs.join("pictures.jpg"))
                .await?;
        }
    }
    for tool in tools {
        if let Tool::Grabd { service, .. } = tool {
            service.stop().await?;
        }
    }
    drop(peers);
    if args.keep.is_none() {
        std::fs::remove_dir_all(&keep)?;
    }
    Ok(())
}

impl Tool {
    fn name(&self) -> String {
        match self {
            Self::Grabd { name, .. } => name.clone(),
            Self::Peer(name) => (*name).to_owned(),
        }
    }

    async fn capture(
        &self,
        page: &Page,
        site: &Site,
        file: &Path,
        peers: Option<&mut Peers>,
    ) -> anyhow::Result<Outcome> {
        let url = site.url(&page.path);
        // Remove the image of an earlier run.
        let _ = std::fs::remove_file(file);
        match self {
            Self::Grabd { service, .. } => capture_with_grabd(service, page, &url, file).await,
            Self::Peer(contender) => {
                let peers = peers.context("the other tools are not running")?;
                let mode = match page.mode {
                    Mode::Viewport => "viewport",
                    Mode::FullPage => "full_page",
                    Mode::Element => "element",
                };
                let response = peers.capture(&Task {
                    contender,
                    url: &url,
                    mode,
                    selector: page.selector.as_deref(),
                    width: page.width,
                    height: page.height,
                    device: "desktop",
                    dark: false,
                    file,
                })?;
                let wrong = match response.error {
                    Some(error) => vec![error],
                    None => check(page, file)?,
                };
                let took = Duration::from_secs_f64(response.ms / 1000.0);
                Ok(Outcome { wrong, warned: None, report: String::new(), took })
            }
        }
    }
}

/// The path of an image.
fn picture(keep: &Path, page: &Page, contender: &str, run: usize) -> PathBuf {
    keep.join(format!("{}--{contender}-{run}.png", page.name.replace('/', "--")))
}

/// Pages that grabd captures correctly and most others do not, each with an incorrect image of another tool: the
/// hardest of each kind.
fn contact_sheet_pairs(names: &[String], table: &[(Page, Vec<Outcome>)], keep: &Path) -> Vec<sheet::Pair> {
    let wrong = |row: &[Outcome]| row.iter().skip(1).filter(|outcome| !outcome.wrong.is_empty()).count();
    let mut rows: Vec<_> = table.iter().filter(|(_, row)| row[0].wrong.is_empty()).collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(wrong(row)));
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    let mut pairs = Vec::new();
    for (page, row) in rows {
        let kind = page.name.split('/').next().unwrap_or_default();
        let theirs = PEERS.iter().find_map(|tool| {
            let at = names.iter().position(|name| name == tool)?;
            let file = picture(keep, page, tool, 0);
            (!row[at].wrong.is_empty() && file.is_file()).then_some((*tool, file))
        });
        let Some((tool, theirs)) = theirs.filter(|_| shown.get(kind).is_none_or(|count| *count < PAIRS_OF_A_KIND))
        else {
            continue;
        };
        *shown.entry(kind).or_default() += 1;
        let ours = picture(keep, page, &names[0], 0);
        pairs.push(sheet::Pair { page: page.name.clone(), about: page.about.clone(), ours, tool, theirs });
        if pairs.len() == PAIRS {
            break;
        }
    }
    pairs
}

async fn capture_with_grabd(service: &Service, page: &Page, url: &str, file: &Path) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let (status, grab) = service.capture(&page.request(url)).await?;
    if status != 200 {
        let message = grab["error"]["message"].as_str().unwrap_or_default().to_owned();
        return Ok(Outcome { wrong: vec![message], warned: Some(true), report: String::new(), took: began.elapsed() });
    }
    let image = service.image(grab["image_url"].as_str().context("a done grab has an image_url")?).await?;
    let took = began.elapsed();
    std::fs::write(file, image)?;
    let warnings: Vec<&str> = grab["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let settled_by = grab["settled_by"].as_str().unwrap_or_default();
    let truncated = grab["truncated"] == json!(true);
    let warned = settled_by == "deadline" || truncated || !warnings.is_empty();
    let mut wrong = check(page, file)?;
    for expected in &page.warnings {
        if !warnings.iter().any(|warning| warning.split(':').next() == Some(expected)) {
            wrong.push(format!("expected the warning {expected}"));
        }
    }
    let mut report = settled_by.to_owned();
    if truncated {
        report.push_str(" truncated");
    }
    for warning in warnings {
        write!(report, " {warning}")?;
    }
    Ok(Outcome { wrong, warned: Some(warned), report, took })
}

fn check(page: &Page, file: &Path) -> anyhow::Result<Vec<String>> {
    let picture = image::open(file).with_context(|| file.display().to_string())?.to_rgb8();
    Ok(page.check(&picture))
}

fn warned_correctly(page: &Page, outcome: &Outcome) -> bool {
    match (outcome.warned, outcome.wrong.is_empty(), page.verdict) {
        (None, _, _) | (Some(true), false, _) => true,
        (Some(false), false, _) => false,
        (Some(warned), true, ExpectedReport::Quiet) => !warned,
        (Some(_), true, ExpectedReport::Any) => true,
        (Some(warned), true, ExpectedReport::Warned) => warned,
    }
}

fn print_row(page: &Page, row: &[Outcome]) {
    let cell = |outcome: &Outcome| {
        let mark = if outcome.wrong.is_empty() { "right" } else { "WRONG" };
        let mark_wrong_warning = if warned_correctly(page, outcome) { "" } else { " !" };
        format!("{:>24}", format!("{mark}{mark_wrong_warning} {:>6.0}", outcome.took.as_secs_f64() * 1000.0))
    };
    println!("{:<44}{}", page.name, row.iter().map(cell).collect::<String>());
    if let Some(first) = row.first() {
        for reason in &first.wrong {
            println!("      {reason}");
        }
        if !warned_correctly(page, first) || !first.wrong.is_empty() {
            println!("      reported: {}", first.report);
        }
    }
}

/// Prints the totals by mode, and the time ratio of each tool to the first where both are correct.
fn print_sums(names: &[String], table: &[(Page, Vec<Outcome>)]) {
    println!();
    for (what, values) in sums(names, table) {
        println!("{what:<44}{}", values.iter().map(|value| format!("{value:>24}")).collect::<String>());
    }
}

fn sums(names: &[String], table: &[(Page, Vec<Outcome>)]) -> Vec<(String, Vec<String>)> {
    let right = |at: usize, mode: Option<Mode>| {
        let of_mode = |page: &Page| mode.is_none_or(|mode| page.mode == mode);
        table.iter().filter(|(page, row)| of_mode(page) && row[at].wrong.is_empty()).count()
    };
    let count = |mode: Option<Mode>| table.iter().filter(|(page, _)| mode.is_none_or(|mode| page.mode == mode)).count();
    let columns = || 0..names.len();
    let mut rows = Vec::new();
    for (what, mode) in [
        ("right", None),
        ("viewport", Some(Mode::Viewport)),
        ("full page", Some(Mode::FullPage)),
        ("element", Some(Mode::Element)),
    ] {
        let of = count(mode);
        rows.push((format!("{what} (of {of})"), columns().map(|at| right(at, mode).to_string()).collect()));
    }
    let ratio = |at: usize| {
        let mut ratios = Sample::default();
        for (_, row) in table.iter().filter(|(_, row)| row[0].wrong.is_empty() && row[at].wrong.is_empty()) {
            ratios.add(Duration::from_secs_f64(row[at].took.as_secs_f64() / row[0].took.as_secs_f64()));
        }
        format!("{:.2}", ratios.quantile(0.5) / 1000.0)
    };
    rows.push(("time where both are right (median ratio)".into(), columns().map(ratio).collect()));
    let unwarned = |at: usize| {
        let unwarned = table.iter().filter(|(_, row)| !row[at].wrong.is_empty() && row[at].warned != Some(true));
        unwarned.count().to_string()
    };
    rows.push(("wrong without a warning".into(), columns().map(unwarned).collect()));
    let alarm = |at: usize| {
        let alarms = table.iter().filter(|(page, row)| row[at].wrong.is_empty() && !warned_correctly(page, &row[at]));
        alarms.count().to_string()
    };
    rows.push(("right with a false alarm, or without a due one".into(), columns().map(alarm).collect()));
    rows
}

/// The comparison as Markdown.
fn report(names: &[String], table: &[(Page, Vec<Outcome>)], parts: &[String]) -> String {
    let mut text = String::from(include_str!("pictures.md"));
    if !parts.is_empty() {
        let _ = writeln!(text, "This run: only pages whose name contains `{}`.\n", parts.join("` or `"));
    }
    let line = |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    text.push_str(&line(&mut std::iter::once("Result".to_owned()).chain(names.iter().cloned())));
    text.push_str(&line(&mut (0..=names.len()).map(|_| "---".to_owned())));
    for (what, values) in sums(names, table) {
        text.push_str(&line(&mut std::iter::once(what).chain(values)));
    }
    text.push_str("\n![Pairs of pictures of the same page](pictures.jpg)\n\n## What grabd gets wrong\n\n");
    for (page, row) in table.iter().filter(|(_, row)| !row[0].wrong.is_empty()) {
        let _ =
            writeln!(text, "- {}: {}. {} It said: {}.", page.name, page.about, row[0].wrong.join("; "), row[0].report);
    }
    text.push_str("\n## Every page\n\nMilliseconds; a cross marks a wrong picture.\n");
    let mut by_folder: BTreeMap<&str, Vec<&(Page, Vec<Outcome>)>> = BTreeMap::new();
    for entry in table {
        by_folder.entry(entry.0.name.split('/').next().unwrap_or_default()).or_default().push(entry);
    }
    for (folder, entries) in by_folder {
        let _ = write!(text, "\n### {folder}\n\n");
        let heads = ["Page".to_owned(), "What is hard".to_owned(), "Mode".to_owned()];
        text.push_str(&line(&mut heads.into_iter().chain(names.iter().cloned())));
        text.push_str(&line(&mut (0..names.len() + 3).map(|_| "---".to_owned())));
        for (page, row) in entries {
            let name = page.name.split_once('/').map_or(page.name.as_str(), |(_, name)| name).to_owned();
            let mode = match page.mode {
                Mode::Viewport => "viewport",
                Mode::FullPage => "full page",
                Mode::Element => "element",
            };
            let cell = |outcome: &Outcome| {
                let mark = if outcome.wrong.is_empty() { "" } else { "✗ " };
                format!("{mark}{:.0}", outcome.took.as_secs_f64() * 1000.0)
            };
            let heads = [name, page.about.clone(), mode.to_owned()];
            text.push_str(&line(&mut heads.into_iter().chain(row.iter().map(cell))));
        }
    }
    text.push('\n');
    text.push_str(include_str!("sites/real_sites.md"));
    text
}
