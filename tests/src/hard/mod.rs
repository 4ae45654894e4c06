//! Pages that are hard to capture, and checks of their images. `tests/site/hard/README.md` describes how a page states
//! its criteria.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use image::RgbImage;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::pixels::Colour;

mod criteria;

pub use criteria::{Expectation, NamedColour, Range};

/// How much of a page is captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the README explains them")]
pub enum Mode {
    #[default]
    Viewport,
    FullPage,
    Element,
}

/// What grabd must report about a correct image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedReport {
    /// `settled_by: quiet`, without a warning.
    #[default]
    Quiet,
    /// Not checked.
    Any,
    /// The image may be incomplete.
    Warned,
}

/// The TOML comment at the start of a page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    about: String,
    #[serde(default)]
    mode: Mode,
    selector: Option<String>,
    #[serde(default = "default_width")]
    width: u32,
    #[serde(default = "default_height")]
    height: u32,
    expect: Vec<String>,
    fragment: Option<String>,
    #[serde(default)]
    request: serde_json::Map<String, Value>,
    #[serde(default)]
    plain: bool,
    #[serde(default)]
    verdict: ExpectedReport,
    #[serde(default)]
    warnings: Vec<String>,
}

fn default_width() -> u32 {
    1280
}

fn default_height() -> u32 {
    720
}

/// A page and its criteria.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the README explains them")]
pub struct Page {
    /// Folder and file without extension: `lazy/backgrounds`.
    pub name: String,
    /// Its path on the site.
    pub path: String,
    pub about: String,
    pub mode: Mode,
    pub selector: Option<String>,
    /// Further members of the request.
    pub options: serde_json::Map<String, Value>,
    pub width: u32,
    pub height: u32,
    pub expect: Vec<Expectation>,
    pub plain: bool,
    pub verdict: ExpectedReport,
    pub warnings: Vec<String>,
}

impl Page {
    /// All pages below a directory, sorted by name. `prefix` is the path at which the site serves the directory.
    ///
    /// # Errors
    /// If a page's TOML comment is invalid.
    pub fn all(directory: &Path, prefix: &str) -> anyhow::Result<Vec<Self>> {
        let mut files = Vec::new();
        collect(directory, &mut files)?;
        files.sort();
        let pages = files.iter().filter_map(|file| {
            let read = Self::read(directory, file, prefix).with_context(|| file.display().to_string());
            read.transpose()
        });
        pages.collect()
    }

    /// A file that starts with a TOML comment is a page. Other files are loaded by pages.
    fn read(directory: &Path, file: &Path, prefix: &str) -> anyhow::Result<Option<Self>> {
        let text = std::fs::read_to_string(file)?;
        let Some(head) = text.strip_prefix("<!--\n").and_then(|rest| rest.split_once("\n-->")) else {
            return Ok(None);
        };
        let head: Head = toml::from_str(head.0)?;
        ensure!(
            head.selector.is_some() == (head.mode == Mode::Element),
            "`selector` requires mode = \"element\", and vice versa"
        );
        ensure!(!head.expect.is_empty(), "`expect` is empty");
        let expect = head.expect.iter().map(|text| text.parse()).collect::<anyhow::Result<Vec<_>>>()?;
        let relative = file.strip_prefix(directory)?.to_str().context("file name is not UTF-8")?;
        Ok(Some(Self {
            name: relative.trim_end_matches(".html").trim_end_matches("/index").to_owned(),
            path: match head.fragment {
                Some(fragment) => format!("{prefix}{relative}#{fragment}"),
                None => format!("{prefix}{relative}"),
            },
            about: head.about,
            mode: head.mode,
            selector: head.selector,
            options: head.request,
            width: head.width,
            height: head.height,
            expect,
            plain: head.plain,
            verdict: head.verdict,
            warnings: head.warnings,
        }))
    }

    /// The body of a create request that captures the page at this URL.
    pub fn request(&self, url: &str) -> Value {
        let mut body = json!({ "url": url, "width": self.width, "height": self.height });
        match self.mode {
            Mode::Viewport => {}
            Mode::FullPage => body["full_page"] = json!(true),
            Mode::Element => body["selector"] = json!(self.selector),
        }
        for (name, value) in &self.options {
            body[name] = value.clone();
        }
        body
    }

    /// The criteria that an image of this page does not meet.
    pub fn check(&self, image: &RgbImage) -> Vec<String> {
        self.expect.iter().filter_map(|expectation| expectation.check(image).err()).collect()
    }
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "html") {
            files.push(path);
        }
    }
    Ok(())
}

/// A colour by one of the CSS names that the README lists, or `#rrggbb`.
pub fn colour(name: &str) -> Option<Colour> {
    Some(match name {
        "red" => [255, 0, 0],
        "lime" => [0, 255, 0],
        "blue" => [0, 0, 255],
        "yellow" => [255, 255, 0],
        "cyan" => [0, 255, 255],
        "magenta" => [255, 0, 255],
        "black" => [0, 0, 0],
        "white" => [255, 255, 255],
        _ => {
            let digits = name.strip_prefix('#').filter(|digits| digits.len() == 6)?;
            let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
            [red, green, blue]
        }
    })
}
