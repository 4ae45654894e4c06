//! A customer who captures hostile pages, what came of each, and what it left behind.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};

use crate::pixels::{self, Colour, EXACT, LOSSY};
use crate::site::Site;
use crate::site::behaviour::GREEN;
use crate::site::hostile::{Answer, Page};
use crate::tree::Tree;

/// A page without any harm in it.
pub const PLAIN: &str = "/colour/40/70/160";

/// The colour that it has all over, which no hostile page has: a picture of another page would show.
pub const BLUE: Colour = [40, 70, 160];

/// Memory that a browser may gain without anybody minding, in MiB: caches fill, and one more tab may be ready.
const GAIN_MIB: f64 = 100.0;

/// A disposed context's processes end within a second; a worn browser's successor needs several.
const PATIENCE: Duration = Duration::from_secs(20);

/// Looks in a row that see the same before a browser counts as being at rest.
const LOOKS: u32 = 10;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Somebody with a live key.
pub struct Customer {
    /// Without any cleverness.
    pub client: reqwest::Client,
    /// The API root, ending in `/v1`.
    pub base: String,
    /// The live key.
    pub key: String,
}

/// What a create was answered with.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Of the answer.
    pub status: u16,
    /// The code of an error.
    pub code: String,
    /// The message of an error, or by what a picture's page came to rest.
    pub detail: String,
    /// Size of the picture.
    pub size: (u32, u32),
    /// The one colour that the picture has all over, when it is a hostile page's green or the plain page's blue.
    pub colour: Option<Colour>,
    /// From the request to the picture.
    pub took: Duration,
}

impl Seen {
    /// Was the page answered as it deserves?
    pub fn is(&self, answer: Answer) -> bool {
        let done = self.status == 200;
        let green = done && self.colour == Some(GREEN);
        let failed = |status, code, part| self.status == status && self.code == code && self.detail.contains(part);
        match answer {
            Answer::Green => green,
            Answer::Picture => done,
            Answer::Failed(part) => failed(500, "render_failed", part),
            Answer::Blocked(part) => failed(422, "render_blocked", part),
            Answer::PictureOrFailed => done || failed(500, "render_failed", ""),
            Answer::GreenOrFailed => green || failed(500, "render_failed", ""),
        }
    }

    /// Is it the picture of the plain page?
    pub fn is_plain(&self) -> bool {
        self.status == 200 && self.colour == Some(BLUE)
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.size;
        let took = self.took.as_secs_f64();
        match self.status {
            200 => write!(f, "200 {width}x{height} of {:?}, by {} ({took:.1} s)", self.colour, self.detail),
            status => write!(f, "{status} {}: {} ({took:.1} s)", self.code, self.detail),
        }
    }
}

/// Where to look for what captures leave behind.
pub struct Browsers<Pids> {
    /// The browsers that are known to run, at this moment.
    pub pids: Pids,
    /// Where each running browser has a directory.
    pub run_dir: PathBuf,
}

/// What browsers hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leftovers {
    /// Processes.
    pub processes: usize,
    /// Directories.
    pub directories: usize,
    /// Memory of all of them.
    pub mib: f64,
}

impl<Pids: Fn() -> Vec<u32>> Browsers<Pids> {
    /// What they hold now.
    pub fn look(&self) -> Leftovers {
        let pids = (self.pids)();
        let trees = || pids.iter().map(|pid| Tree(*pid));
        Leftovers {
            processes: trees().map(|tree| tree.pids().len()).sum(),
            directories: std::fs::read_dir(&self.run_dir).map_or(0, Iterator::count),
            mib: trees().map(Tree::pss_mib).sum(),
        }
    }

    /// What they hold once they have stopped making tabs ready.
    pub async fn at_rest(&self) -> Leftovers {
        let began = Instant::now();
        let (mut last, mut same) = (self.look(), 0);
        while same < LOOKS && began.elapsed() < PATIENCE {
            tokio::time::sleep(PAUSE).await;
            let now = self.look();
            same = if now.processes == last.processes { same + 1 } else { 0 };
            last = now;
        }
        last
    }

    /// Waits until they hold no more than they did, but for a little memory.
    ///
    /// # Errors
    /// When that does not come.
    pub async fn hold_no_more_than(&self, before: Leftovers) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let now = self.look();
            // A tab that is being made ready has a process of its own for a moment.
            let same = now.processes <= before.processes + 1 && now.directories <= before.directories;
            if same && now.mib <= before.mib + GAIN_MIB {
                return Ok(());
            }
            anyhow::ensure!(began.elapsed() < PATIENCE, "{now:?} is left, and there were {before:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Customer {
    /// Captures a hostile page.
    ///
    /// # Errors
    /// When the service does not answer as an API does.
    pub async fn visit(&self, site: &Site, page: &Page) -> anyhow::Result<Seen> {
        self.capture(&site.url(&page.path()), page.options()).await
    }

    /// Captures an address.
    ///
    /// # Errors
    /// When the service does not answer as an API does.
    pub async fn capture(&self, url: &str, mut options: Value) -> anyhow::Result<Seen> {
        let began = Instant::now();
        options["url"] = json!(url);
        let request = self.client.post(format!("{}/grabs", self.base)).bearer_auth(&self.key).json(&options);
        let response = request.send().await?;
        let status = response.status().as_u16();
        let body: Value = response.json().await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if status != 200 {
            let (code, detail) = (text(&body["error"]["code"]), text(&body["error"]["message"]));
            return Ok(Seen { status, code, detail, size: (0, 0), colour: None, took: began.elapsed() });
        }
        let image = body["image_url"].as_str().context("a done grab has an image_url")?;
        let image = self.client.get(image).send().await?.error_for_status()?.bytes().await?;
        let took = began.elapsed();
        let picture = pixels::decode(&image);
        let (width, height) = picture.dimensions();
        let tolerance = if options["format"] == "jpeg" { LOSSY } else { EXACT };
        let all_over = |colour: &Colour| {
            let all = pixels::Patch { x: 0, y: 0, width, height, colour: *colour };
            pixels::shows(&picture, all, tolerance)
        };
        let colour = [GREEN, BLUE].into_iter().find(all_over);
        Ok(Seen { status, code: String::new(), detail: text(&body["settled_by"]), size: (width, height), colour, took })
    }
}
