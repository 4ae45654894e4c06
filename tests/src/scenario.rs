//! A client that captures hostile pages, the results, and the resources that the browsers use.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};

use crate::pixels::{self, Colour, EXACT, LOSSY};
use crate::process_tree::ProcessTree;
use crate::site::Site;
use crate::site::behaviour::GREEN;
use crate::site::hostile::{ExpectedOutcome, Page};

/// A harmless page.
pub const PLAIN: &str = "/colour/40/70/160";

/// The colour of [`PLAIN`], which no hostile page has: an image of another page would be noticed.
pub const BLUE: Colour = [40, 70, 160];

/// Accepted memory growth of a browser in MiB: caches fill, and one more tab may be prepared.
const GAIN_MIB: f64 = 100.0;

/// Processes of a disposed context end within a second. Replacing a recycled browser takes several seconds.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// Consecutive equal measurements after which a browser counts as idle.
const EQUAL_MEASUREMENTS: u32 = 10;

/// Pause between two measurements.
const PAUSE: Duration = Duration::from_millis(100);

/// An API client with a live key.
pub struct Customer {
    /// The HTTP client.
    pub client: crate::client::Client,
    /// The API root, ending in `/v1`.
    pub base: String,
    /// The live key.
    pub key: String,
}

/// The outcome of a capture.
#[derive(Clone, Debug)]
pub struct CaptureOutcome {
    /// The HTTP status.
    pub status: u16,
    /// The error code.
    pub code: String,
    /// The error message, or `settled_by` of a done grab.
    pub detail: String,
    /// Width and height of the image.
    pub size: (u32, u32),
    /// The colour of the whole image, if it is the green of hostile pages or the blue of the plain page.
    pub colour: Option<Colour>,
    /// Time from the request to the complete image.
    pub took: Duration,
}

impl CaptureOutcome {
    /// Whether this is the expected outcome.
    pub fn matches(&self, expected: ExpectedOutcome) -> bool {
        let done = self.status == 200;
        let green = done && self.colour == Some(GREEN);
        let failed = |status, code, part| self.status == status && self.code == code && self.detail.contains(part);
        match expected {
            ExpectedOutcome::Green => green,
            ExpectedOutcome::Image => done,
            ExpectedOutcome::Failed(part) => failed(500, "render_failed", part),
            ExpectedOutcome::Blocked(part) => failed(422, "render_blocked", part),
            ExpectedOutcome::ImageOrFailed => done || failed(500, "render_failed", ""),
            ExpectedOutcome::GreenOrFailed => green || failed(500, "render_failed", ""),
        }
    }

    /// Whether this is an image of [`PLAIN`].
    pub fn is_plain(&self) -> bool {
        self.status == 200 && self.colour == Some(BLUE)
    }
}

impl fmt::Display for CaptureOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.size;
        let took = self.took.as_secs_f64();
        match self.status {
            200 => write!(f, "200 {width}x{height} of {:?}, by {} ({took:.1} s)", self.colour, self.detail),
            status => write!(f, "{status} {}: {} ({took:.1} s)", self.code, self.detail),
        }
    }
}

/// The browsers whose resources are measured.
pub struct Browsers<Pids> {
    /// Returns the process ids of the running browsers.
    pub pids: Pids,
    /// The directory with one directory per running browser.
    pub run_dir: PathBuf,
}

/// Resources that browsers use.
#[derive(Clone, Copy, Debug, Default)]
pub struct BrowserUsage {
    /// Number of processes.
    pub processes: usize,
    /// Number of directories.
    pub directories: usize,
    /// Memory of all processes in MiB.
    pub mib: f64,
}

impl<Pids: Fn() -> Vec<u32>> Browsers<Pids> {
    /// The current usage.
    pub fn measure(&self) -> BrowserUsage {
        let trees = self.trees();
        BrowserUsage { processes: processes(&trees), directories: self.directories(), mib: mib(&trees) }
    }

    fn trees(&self) -> Vec<ProcessTree> {
        (self.pids)().into_iter().map(ProcessTree).collect()
    }

    fn directories(&self) -> usize {
        std::fs::read_dir(&self.run_dir).map_or(0, Iterator::count)
    }

    /// The usage once no more tabs are being prepared.
    pub async fn measure_idle(&self) -> BrowserUsage {
        let began = Instant::now();
        let (mut last, mut same) = (processes(&self.trees()), 0);
        while same < EQUAL_MEASUREMENTS && began.elapsed() < WAIT_LIMIT {
            tokio::time::sleep(PAUSE).await;
            let now = processes(&self.trees());
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
        self.measure()
    }

    /// Waits until each browser uses no more than one browser did before, apart from a little memory.
    ///
    /// # Errors
    /// If the usage stays higher.
    pub async fn wait_until_reduced_to(&self, before: BrowserUsage) -> anyhow::Result<()> {
        let began = Instant::now();
        while !self.is_reduced_to(before) {
            anyhow::ensure!(began.elapsed() < WAIT_LIMIT, "usage is {:?}, and was {before:?}", self.measure());
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    fn is_reduced_to(&self, before: BrowserUsage) -> bool {
        let trees = self.trees();
        let browsers = trees.len().max(1);
        // A tab in preparation briefly has a process of its own.
        let same = processes(&trees) <= browsers * (before.processes + 1)
            && self.directories() <= browsers * before.directories;
        #[expect(clippy::cast_precision_loss, reason = "a handful of browsers")]
        let allowed_mib = browsers as f64 * (before.mib + GAIN_MIB);
        same && mib(&trees) <= allowed_mib
    }
}

/// The number of processes.
fn processes(trees: &[ProcessTree]) -> usize {
    trees.iter().map(|tree| tree.pids().len()).sum()
}

/// The memory of all processes in MiB. Reading it takes some milliseconds for each of them.
fn mib(trees: &[ProcessTree]) -> f64 {
    trees.iter().map(|tree| tree.pss_mib()).sum()
}

impl Customer {
    /// Captures a hostile page.
    ///
    /// # Errors
    /// If the response is not one of the API.
    pub async fn capture_page(&self, site: &Site, page: &Page) -> anyhow::Result<CaptureOutcome> {
        self.capture(&site.url(&page.path()), page.options()).await
    }

    /// Captures a URL.
    ///
    /// # Errors
    /// If the response is not one of the API.
    pub async fn capture(&self, url: &str, mut options: Value) -> anyhow::Result<CaptureOutcome> {
        let began = Instant::now();
        options["url"] = json!(url);
        let request = self.client.post(format!("{}/grabs", self.base)).bearer_auth(&self.key).json(&options);
        let response = request.send().await?;
        let status = response.status().as_u16();
        let body: Value = response.json().await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if status != 200 {
            let (code, detail) = (text(&body["error"]["code"]), text(&body["error"]["message"]));
            return Ok(CaptureOutcome { status, code, detail, size: (0, 0), colour: None, took: began.elapsed() });
        }
        let image = body["image_url"].as_str().context("a done grab has an image_url")?;
        let image = self.client.get(image).send().await?.error_for_status()?.bytes().await?;
        let took = began.elapsed();
        let image = pixels::decode(&image);
        let (width, height) = image.dimensions();
        let tolerance = if options["format"] == "jpeg" { LOSSY } else { EXACT };
        let all_over = |colour: &Colour| {
            let all = pixels::Patch { x: 0, y: 0, width, height, colour: *colour };
            pixels::shows(&image, all, tolerance)
        };
        let colour = [GREEN, BLUE].into_iter().find(all_over);
        Ok(CaptureOutcome {
            status,
            code: String::new(),
            detail: text(&body["settled_by"]),
            size: (width, height),
            colour,
            took,
        })
    }
}
