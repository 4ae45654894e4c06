//! Captures folders of built sites with grabd and Playwright, and compares the pictures with what a patient reader sees.

mod compare;
mod corpus;
mod folder_site;
mod references;
mod rows;
mod sheets;
mod table;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use compare::{Block, Comparison, Reference, compare};
use corpus::{Entry, Mode};
use folder_site::FolderSite;
use grabd_tests::dns::Dns;
use grabd_tests::harness::ALLOWED;
use image::RgbImage;
use references::{References, Visit};
use rows::{Capture, Correctness, Row, Rows};
use serde_json::{Value, json};
use sheets::Pair;

use crate::other_tools::{Peers, Task};
use crate::service::{Service, built_binary};

/// Times longer than this times Playwright's are listed.
const SLOW: f64 = 1.1;

/// Options of the comparison.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders of built sites: each is a site, or contains sites.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Only pages whose name, of folder and path, contains one of these texts.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Only these modes.
    #[arg(long, value_delimiter = ',', default_values_t = Mode::ALL.map(|mode| mode.name().to_owned()), value_name = "MODE")]
    modes: Vec<String>,
    /// Pages per site at most.
    #[arg(long, default_value_t = 3)]
    pages: usize,
    /// References, pictures, results and contact sheets are kept in this directory. References that are there are not
    /// made again.
    #[arg(long, value_name = "DIR", default_value = "target/sites")]
    keep: PathBuf,
    /// References that are made at a time.
    #[arg(long, default_value_t = 4)]
    at_a_time: usize,
    /// Make the references, and nothing else.
    #[arg(long)]
    references_only: bool,
    /// Leave Playwright out.
    #[arg(long)]
    alone: bool,
    /// Go on with an interrupted run: keep the results that are there.
    #[arg(long)]
    resume: bool,
    /// Compare the pictures of an earlier run again, with the references that are there now, in place of capturing.
    #[arg(long, conflicts_with = "resume")]
    compare_again: bool,
    /// What users found by looking: lines of page, mode, `right` or `wrong`, and a note, separated by tabs.
    #[arg(long, value_name = "FILE")]
    judged: Option<PathBuf>,
    /// Another binary of grabd to measure.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// Runs the comparison and prints it.
pub(crate) async fn measure(args: Args) -> anyhow::Result<()> {
    anyhow::ensure!(references::tools().is_dir(), "Playwright is missing: run script/bench sites");
    let modes = args.modes.iter().map(|name| Mode::parse(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut entries = corpus::entries(&args.directories, &modes, args.pages)?;
    entries.retain(|entry| args.only.is_empty() || args.only.iter().any(|part| entry.name().contains(part)));
    anyhow::ensure!(!entries.is_empty(), "no such page: a site has an index.html or a pages.txt");
    fs::create_dir_all(&args.keep)?;
    let keep = args.keep.canonicalize()?;

    let mut sites: HashMap<PathBuf, FolderSite> = HashMap::new();
    for entry in &entries {
        if !sites.contains_key(&entry.folder) {
            sites.insert(entry.folder.clone(), FolderSite::start(ALLOWED, entry.folder.clone()).await?);
        }
    }
    let pages: Vec<(Entry, String)> = entries
        .into_iter()
        .filter_map(|entry| Some((entry.clone(), sites.get(&entry.folder)?.url(&entry.path))))
        .collect();
    println!("{} pages of {} sites", pages.len(), sites.len());
    let references = References::new(keep.join("references"));
    references.complete(&pages, &ALLOWED.to_string(), args.at_a_time.max(1))?;
    if args.references_only {
        return Ok(());
    }

    // No other name exists, so that requests to other hosts fail for all in the same way.
    let dns = Dns::start_empty().await?;
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => built_binary()?,
    };
    let dns_address = dns.address.to_string();
    // The images are deleted with the service, so that it may use the last space of the disk.
    let settings = [("GRABD_EGRESS__DNS", dns_address.as_str()), ("GRABD_RETENTION__MIN_FREE_PERCENT", "0")];
    let service = Service::start_binary(&binary, &settings).await?;
    let others = if args.alone { None } else { Some(Peers::start_isolated(&ALLOWED.to_string())?) };
    let mut run = Run { service, others, references, pictures: keep.join("pictures") };
    fs::create_dir_all(&run.pictures)?;
    let results = keep.join("results.jsonl");
    if args.compare_again {
        let before = Rows::open(results.clone(), true)?;
        let mut rows = Rows::open(results.clone(), false)?;
        for row in before.all {
            let entry = pages.iter().find(|(entry, _)| entry.name() == row.page);
            rows.add(match entry {
                Some((entry, _)) => run.compared_again(entry, row)?,
                None => row,
            })?;
        }
    }
    let mut rows = Rows::open(results, args.resume || args.compare_again)?;
    for (entry, url) in &pages {
        for mode in &entry.modes {
            if args.compare_again || rows.contains(&entry.name(), *mode) {
                continue;
            }
            if let Some(row) = run.row(entry, *mode, url).await? {
                print(&row);
                rows.add(row)?;
            }
        }
    }
    rows.all.retain(|row| pages.iter().any(|(entry, _)| entry.name() == row.page));
    if let Some(file) = &args.judged {
        rows.judge(file)?;
    }
    fs::write(keep.join("results.tsv"), rows.tsv())?;
    fs::write(keep.join("results.json"), serde_json::to_vec_pretty(&rows.all)?)?;
    let table = table::table(&rows.all);
    fs::write(keep.join("table.md"), &table)?;
    fs::write(keep.join("slow.txt"), table::slow(&rows.all, SLOW))?;
    println!("\n{table}");
    let kept = FolderSite::start(ALLOWED, keep.clone()).await?;
    let pairs = run.pairs(&pages, &rows)?;
    let count = sheets::write(&run.service, &kept, "/sheets", &keep.join("sheets"), &pairs).await?;
    println!("{} pairs on {count} sheets in {}", pairs.len(), keep.join("sheets").display());
    run.service.stop().await
}

struct Run {
    service: Service,
    others: Option<Peers>,
    references: References,
    pictures: PathBuf,
}

/// What grabd answered.
struct Answer {
    error: Option<String>,
    settled_by: String,
    warnings: Vec<String>,
    ms: f64,
}

impl Run {
    /// Captures a page. `None` if it has no reference, or no element.
    async fn row(&mut self, entry: &Entry, mode: Mode, url: &str) -> anyhow::Result<Option<Row>> {
        let visited = self.references.answer(entry, Visit::of(mode), 1)?;
        let Some(reference) = self.references.image(entry, mode, 1) else { return Ok(None) };
        let again = self.references.image(entry, mode, 2);
        let selector = visited.selector.filter(|_| mode == Mode::Element);
        if mode == Mode::Element && (again.is_none() || selector.is_none()) {
            return Ok(None);
        }
        let targets = Targets { url, mode, selector: selector.as_deref() };
        let references = Pictures { first: &reference, again: again.as_ref() };
        let [file, difference] = ["grabd", "difference"].map(|what| self.picture(entry, mode, what));
        let answer = self.capture(&targets.request(), &file).await?;
        let mut grabd = Capture::failed(answer.ms, answer.error);
        if grabd.error.is_none() {
            let (capture, comparison) = self.compared(entry, mode, &file, references, answer.ms)?;
            comparison.draw(&reference).save(difference)?;
            grabd = capture;
        }
        let file = self.picture(entry, mode, "playwright");
        let response = self.others.as_mut().map(|others| others.capture(&targets.task(&file))).transpose()?;
        let playwright = match response {
            Some(response) if response.error.is_some() => Some(Capture::failed(response.ms, response.error)),
            Some(response) => Some(self.compared_other(entry, mode, &file, references, response.ms)),
            None => None,
        };
        Ok(Some(Row {
            page: entry.name(),
            mode,
            grabd,
            settled_by: answer.settled_by,
            warnings: answer.warnings,
            playwright,
            reference_height: reference.height(),
            scroller: visited.scroller,
            selector,
            judged: None,
        }))
    }

    /// The result of an earlier run, with its pictures compared once more.
    fn compared_again(&self, entry: &Entry, mut row: Row) -> anyhow::Result<Row> {
        let Some(reference) = self.references.image(entry, row.mode, 1) else { return Ok(row) };
        let again = self.references.image(entry, row.mode, 2);
        let references = Pictures { first: &reference, again: again.as_ref() };
        row.reference_height = reference.height();
        row.scroller = self.references.answer(entry, Visit::of(row.mode), 1)?.scroller;
        let [file, difference] = ["grabd", "difference"].map(|what| self.picture(entry, row.mode, what));
        if row.grabd.error.is_none() {
            let (capture, comparison) = self.compared(entry, row.mode, &file, references, row.grabd.ms)?;
            comparison.draw(&reference).save(difference)?;
            row.grabd = capture;
        }
        let file = self.picture(entry, row.mode, "playwright");
        if let Some(other) = row.playwright.as_mut().filter(|other| other.error.is_none()) {
            *other = self.compared_other(entry, row.mode, &file, references, other.ms);
        }
        Ok(row)
    }

    /// The result of another tool, whose picture of a very tall page may be too large to be read.
    fn compared_other(&self, entry: &Entry, mode: Mode, file: &Path, references: Pictures<'_>, ms: f64) -> Capture {
        match self.compared(entry, mode, file, references, ms) {
            Ok((capture, _)) => capture,
            Err(error) => Capture::failed(ms, Some(format!("{error:#}"))),
        }
    }

    fn compared(
        &self,
        entry: &Entry,
        mode: Mode,
        file: &Path,
        Pictures { first, again }: Pictures<'_>,
        ms: f64,
    ) -> anyhow::Result<(Capture, Comparison)> {
        let picture = image::open(file).with_context(|| file.display().to_string())?.to_rgb8();
        let others = self.references.others(entry, mode);
        let mut all = vec![Reference { image: first, from: 0 }];
        all.extend(others.iter().map(|(image, from)| Reference { image, from: *from }));
        let comparison = compare(&picture, &all, again, mode.scale());
        Ok((Capture::of(&comparison, &picture, ms), comparison))
    }

    async fn capture(&self, body: &Value, file: &Path) -> anyhow::Result<Answer> {
        // Remove the image of an earlier run.
        let _ = fs::remove_file(file);
        let began = Instant::now();
        let (status, grab) = self.service.capture(body).await?;
        let mut answer = Answer { error: None, settled_by: String::new(), warnings: Vec::new(), ms: 0.0 };
        if status == 200 {
            let image = self.service.image(grab["image_url"].as_str().context("a done grab has an image_url")?).await?;
            answer.ms = began.elapsed().as_secs_f64() * 1000.0;
            fs::write(file, image)?;
            let warnings = grab["warnings"].as_array().into_iter().flatten();
            answer.warnings = warnings.filter_map(Value::as_str).map(str::to_owned).collect();
            if grab["truncated"] == json!(true) {
                answer.warnings.push("truncated".into());
            }
            answer.settled_by = grab["settled_by"].as_str().unwrap_or_default().to_owned();
        } else {
            answer.ms = began.elapsed().as_secs_f64() * 1000.0;
            let message = grab["error"]["message"].as_str().unwrap_or_default();
            answer.error = Some(format!("{status} {message}"));
        }
        Ok(answer)
    }

    fn picture(&self, entry: &Entry, mode: Mode, what: &str) -> PathBuf {
        self.pictures.join(format!("{}--{}-{what}.png", entry.file_name(), mode.name()))
    }

    /// All pictures that differ, or that a user has found wrong.
    fn pairs(&self, pages: &[(Entry, String)], rows: &Rows) -> anyhow::Result<Vec<Pair>> {
        let mut pairs = Vec::new();
        for (entry, _) in pages {
            for row in rows.all.iter().filter(|row| row.page == entry.name() && row.grabd.verdict != Correctness::Right)
            {
                let (mode, grabd) = (row.mode, &row.grabd);
                let images = ["grabd", "difference"].map(|what| self.picture(entry, mode, what));
                let mut from = 0;
                let reference = self.references.image(entry, mode, 1);
                if let Some(first) = reference.as_ref().filter(|_| images[0].is_file()) {
                    let again = self.references.image(entry, mode, 2);
                    let references = Pictures { first, again: again.as_ref() };
                    let (_, comparison) = self.compared(entry, mode, &images[0], references, grabd.ms)?;
                    from = comparison.first_difference().unwrap_or_default();
                }
                let [picture, difference] = images;
                let path = self.picture(entry, mode, "reference");
                let saved = reference.is_some_and(|reference| reference.save(&path).is_ok());
                let about = format!(
                    "{} {} blocks ({:.1} %), restless {:.1} %, {} high, reference {}; {} {} {}{}",
                    row.verdict().name(),
                    grabd.differing,
                    grabd.ratio * 100.0,
                    grabd.restless * 100.0,
                    grabd.height,
                    row.reference_height,
                    row.settled_by,
                    row.warnings.join(" "),
                    grabd.error.as_deref().unwrap_or_default(),
                    row.judged.as_ref().map(|judged| format!("; judged: {}", judged.note)).unwrap_or_default(),
                );
                let name = format!("{} {}", row.page, mode.name());
                pairs.push(Pair {
                    name,
                    about,
                    images: [Some(picture), saved.then_some(path), Some(difference)],
                    from,
                });
            }
        }
        Ok(pairs)
    }
}

/// Both references of a page in a mode.
#[derive(Clone, Copy)]
struct Pictures<'a> {
    first: &'a RgbImage,
    again: Option<&'a RgbImage>,
}

/// What is to be captured.
struct Targets<'a> {
    url: &'a str,
    mode: Mode,
    selector: Option<&'a str>,
}

impl Targets<'_> {
    /// The request to grabd.
    fn request(&self) -> Value {
        let mut body = json!({ "url": self.url });
        match self.mode {
            Mode::View => {}
            Mode::Full => body["full_page"] = json!(true),
            Mode::Phone => body["device"] = json!("phone"),
            Mode::Dark => body["color_scheme"] = json!("dark"),
            Mode::Element => body["selector"] = json!(self.selector),
        }
        body
    }

    /// The same for Playwright.
    fn task<'a>(&'a self, file: &'a Path) -> Task<'a> {
        let is_phone = self.mode == Mode::Phone;
        Task {
            contender: "playwright",
            url: self.url,
            mode: match self.mode {
                Mode::View | Mode::Phone | Mode::Dark => "viewport",
                Mode::Full => "full_page",
                Mode::Element => "element",
            },
            selector: self.selector,
            width: if is_phone { 390 } else { 1280 },
            height: if is_phone { 844 } else { 720 },
            device: if is_phone { "phone" } else { "desktop" },
            dark: self.mode == Mode::Dark,
            file,
        }
    }
}

impl Capture {
    fn of(comparison: &Comparison, picture: &RgbImage, ms: f64) -> Self {
        let verdict = match comparison.is_right() {
            false => Correctness::Wrong,
            true if comparison.is_restless() => Correctness::Restless,
            true => Correctness::Right,
        };
        let blocks = comparison.blocks.len().max(1) as f64;
        Self {
            verdict,
            differing: comparison.count(Block::Differs),
            ratio: comparison.ratio(),
            restless: comparison.count(Block::Restless) as f64 / blocks,
            width: picture.width(),
            height: picture.height(),
            ms,
            error: None,
        }
    }

    fn failed(ms: f64, error: Option<String>) -> Self {
        let verdict = Correctness::Failed;
        Self { verdict, differing: 0, ratio: 0.0, restless: 0.0, width: 0, height: 0, ms, error }
    }
}

fn print(row: &Row) {
    let shown = |capture: &Capture| {
        format!("{:<8} {:>7.2} % {:>6.0} ms", capture.verdict.name(), capture.ratio * 100.0, capture.ms)
    };
    let other = row.playwright.as_ref().map(&shown).unwrap_or_default();
    let report =
        format!("{} {} {}", row.settled_by, row.warnings.join(" "), row.grabd.error.as_deref().unwrap_or_default());
    println!("{:<60} {:<8} {}   {other}   {report}", row.page, row.mode.name(), shown(&row.grabd));
}
