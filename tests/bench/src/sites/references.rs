//! The references: what a patient reader sees of each page, made by `tests/peers/patient.mjs` and kept for later runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context;
use grabd_tests::programs;
use image::{RgbImage, imageops};
use serde::{Deserialize, Serialize};

use super::corpus::{Entry, Mode};

/// Where what is pinned to the window may be elsewhere: below the middle of the first screen, in pixels.
const BELOW_HEADERS: u32 = 360;
/// Written to the directory of a visit when it has ended.
const ANSWER_FILE: &str = "visit.json";

/// The window in which some modes are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Visit {
    Desktop,
    Phone,
    Dark,
}

impl Visit {
    const ALL: [Self; 3] = [Self::Desktop, Self::Phone, Self::Dark];

    pub(super) const fn of(mode: Mode) -> Self {
        match mode {
            Mode::View | Mode::Full | Mode::Element => Self::Desktop,
            Mode::Phone => Self::Phone,
            Mode::Dark => Self::Dark,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Phone => "phone",
            Self::Dark => "dark",
        }
    }
}

/// What `tests/peers/patient.mjs` is to do.
#[derive(Serialize)]
struct Task {
    id: usize,
    url: String,
    directory: PathBuf,
    device: &'static str,
    dark: bool,
    modes: Vec<&'static str>,
    selector: Option<String>,
    /// Whether this is the second visit.
    again: bool,
}

/// What a visit found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Answer {
    #[serde(default, skip_serializing)]
    id: usize,
    pub(super) error: Option<String>,
    /// Of the large element.
    pub(super) selector: Option<String>,
    /// The height of the content of the box that scrolls in place of the document, in CSS pixels, or 0.
    #[serde(default)]
    pub(super) scroller: u32,
}

/// The directory of all references.
pub(super) struct References {
    directory: PathBuf,
}

impl References {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Visits twice whatever has not been visited, this many pages at a time.
    pub(super) fn complete(&self, pages: &[(Entry, String)], host: &str, at_a_time: usize) -> anyhow::Result<()> {
        for turn in [1, 2] {
            let mut tasks = Vec::new();
            for (entry, url) in pages {
                for visit in Visit::ALL {
                    let modes: Vec<Mode> =
                        entry.modes.iter().copied().filter(|mode| Visit::of(*mode) == visit).collect();
                    let directory = self.visit_directory(entry, visit, turn);
                    if modes.is_empty() || directory.join(ANSWER_FILE).is_file() {
                        continue;
                    }
                    let selector = if turn == 1 { None } else { self.answer(entry, visit, 1)?.selector };
                    let names = modes.iter().map(|mode| match mode {
                        Mode::Full => "full",
                        Mode::Element => "element",
                        Mode::View | Mode::Phone | Mode::Dark => "view",
                    });
                    tasks.push(Task {
                        id: tasks.len(),
                        url: url.clone(),
                        directory,
                        device: if visit == Visit::Phone { "phone" } else { "desktop" },
                        dark: visit == Visit::Dark,
                        modes: names.collect(),
                        selector,
                        again: turn == 2,
                    });
                }
            }
            self.run(&tasks, host, at_a_time)?;
        }
        Ok(())
    }

    /// The first or the second reference of a page in a mode.
    pub(super) fn image(&self, entry: &Entry, mode: Mode, turn: u8) -> Option<RgbImage> {
        let name = match mode {
            Mode::View | Mode::Phone | Mode::Dark => "view",
            Mode::Full => "full",
            Mode::Element => "element",
        };
        self.named(entry, mode, turn, name)
    }

    /// Further images that a picture may look like: for each, the first row of pixels for which it counts.
    pub(super) fn others(&self, entry: &Entry, mode: Mode) -> Vec<(RgbImage, u32)> {
        let named = |name: &str| self.named(entry, mode, 1, name);
        match mode {
            Mode::View | Mode::Phone | Mode::Dark => named("view-other").map(|image| (image, 0)).into_iter().collect(),
            Mode::Element => named("element-other").map(|image| (image, 0)).into_iter().collect(),
            Mode::Full => {
                let pinned = ["full-bare", "full-end"].into_iter().filter_map(named);
                let tiles = self.tiles(entry).map(|image| (image, 0));
                pinned.map(|image| (image, BELOW_HEADERS)).chain(tiles).collect()
            }
        }
    }

    /// The screens of the page, one below the other.
    fn tiles(&self, entry: &Entry) -> Option<RgbImage> {
        let whole = self.image(entry, Mode::Full, 1)?;
        let mut tiles = RgbImage::new(whole.width(), whole.height());
        let mut top = 0;
        while top < whole.height() {
            let tile = self.named(entry, Mode::Full, 1, &format!("full-tile-{top:05}"))?;
            // The last one cannot be scrolled to the top of the window.
            let place = i64::from(top).min(i64::from(whole.height()) - i64::from(tile.height()));
            imageops::replace(&mut tiles, &tile, 0, place);
            top += tile.height();
        }
        Some(tiles)
    }

    fn named(&self, entry: &Entry, mode: Mode, turn: u8, name: &str) -> Option<RgbImage> {
        let path = self.visit_directory(entry, Visit::of(mode), turn).join(format!("{name}.png"));
        Some(image::open(path).ok()?.to_rgb8())
    }

    pub(super) fn answer(&self, entry: &Entry, visit: Visit, turn: u8) -> anyhow::Result<Answer> {
        let path = self.visit_directory(entry, visit, turn).join(ANSWER_FILE);
        match fs::read(&path) {
            Ok(file) => serde_json::from_slice(&file).with_context(|| path.display().to_string()),
            Err(_) => Ok(Answer { error: Some("the reference is missing".into()), ..Answer::default() }),
        }
    }

    fn visit_directory(&self, entry: &Entry, visit: Visit, turn: u8) -> PathBuf {
        self.directory.join(entry.file_name()).join(format!("{}-{turn}", visit.name()))
    }

    fn run(&self, tasks: &[Task], host: &str, at_a_time: usize) -> anyhow::Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        let root = programs::root();
        let mut process = Command::new(programs::node())
            .arg(root.join("tests/peers/patient.mjs").canonicalize()?)
            .arg(at_a_time.to_string())
            .current_dir(root.join("target/peers"))
            .env("GRABD_PEERS_ONLY_HOST", host)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("Node.js is missing: run script/setup --tests")?;
        // The process reads all tasks before it begins.
        let mut stdin = process.stdin.take().context("stdin")?;
        for task in tasks {
            writeln!(stdin, "{}", serde_json::to_string(task)?)?;
        }
        drop(stdin);
        let began = Instant::now();
        let mut errors: BTreeMap<String, usize> = BTreeMap::new();
        let lines = BufReader::new(process.stdout.take().context("stdout")?).lines();
        for (count, line) in lines.enumerate() {
            let answer: Answer = serde_json::from_str(&line?)?;
            let task = tasks.get(answer.id).context("an unknown visit")?;
            if let Some(error) = &answer.error {
                *errors.entry(error.clone()).or_default() += 1;
            }
            fs::create_dir_all(&task.directory)?;
            fs::write(task.directory.join(ANSWER_FILE), serde_json::to_vec(&answer)?)?;
            eprint!("\r{} of {} references, {:.0} s ", count + 1, tasks.len(), began.elapsed().as_secs_f64());
        }
        eprintln!();
        for (error, count) in errors {
            eprintln!("{count} references failed: {error}");
        }
        anyhow::ensure!(process.wait()?.success(), "tests/peers/patient.mjs failed");
        Ok(())
    }
}

/// The directory in which the tools from npm are installed.
pub(super) fn tools() -> PathBuf {
    Path::new(&programs::root()).join("target/peers/node_modules")
}
