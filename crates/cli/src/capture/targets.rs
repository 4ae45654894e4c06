//! What is to be captured and where each picture goes.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::names;
use crate::args::{Capture, Format};
use crate::failure::Failure;

/// The longest list that is read, in bytes.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// One page to capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) url: String,
    pub(super) format: Option<Format>,
    pub(super) destination: Destination,
}

/// Where a picture goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    Nowhere,
    Stdout,
    File(PathBuf),
}

/// Everything that is to be captured.
#[derive(Debug)]
pub(super) struct Targets {
    pub(super) all: Vec<Target>,
    /// How many have their file already.
    pub(super) passed_over: usize,
}

/// What was asked for, page by page.
pub(super) fn of(asked: &Capture) -> Result<Targets, Failure> {
    let mut urls = asked.urls.clone();
    if let Some(path) = &asked.from {
        urls.extend(listed(&read(path)?));
    }
    if urls.is_empty() {
        return Err(Failure::Usage(
            "name a page to capture, as in `grab https://example.com`; `grab --help` says more".to_owned(),
        ));
    }
    let output = Output::of(asked, urls.len())?;
    let (mut all, mut passed_over, mut taken) = (Vec::new(), 0, HashSet::new());
    for url in urls {
        let target = output.target(asked, url, &mut taken);
        match &target.destination {
            Destination::File(path) if asked.skip_existing && path.exists() => passed_over += 1,
            Destination::File(_) | Destination::Stdout | Destination::Nowhere => all.push(target),
        }
    }
    Ok(Targets { all, passed_over })
}

/// What `--output` means.
#[derive(Debug)]
enum Output {
    Nowhere,
    Stdout,
    File(PathBuf),
    Directory(PathBuf),
}

impl Output {
    fn of(asked: &Capture, pages: usize) -> Result<Self, Failure> {
        let only_queued = asked.queued && asked.wait.is_none();
        let Some(path) = &asked.output else {
            let nowhere = asked.no_download || only_queued;
            return Ok(if nowhere { Self::Nowhere } else { Self::Directory(PathBuf::new()) });
        };
        let fails = |why: &str| Err(Failure::Usage(format!("--output {} {why}", path.display())));
        if only_queued {
            return fails("wants the picture, and --async does not wait for it; add --wait SECONDS");
        }
        let is_directory = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
        match (path.as_os_str() == "-", is_directory, pages) {
            (true, _, 1) => Ok(Self::Stdout),
            (true, ..) => fails("takes one picture, and there are several pages"),
            (false, true, _) => {
                fs::create_dir_all(path).map_err(Failure::file(path))?;
                Ok(Self::Directory(path.clone()))
            }
            (false, false, 1) => Ok(Self::File(path.clone())),
            (false, false, _) => fails("is one file, and there are several pages; end it in / to name a directory"),
        }
    }

    fn target(&self, asked: &Capture, url: String, taken: &mut HashSet<PathBuf>) -> Target {
        let (format, destination) = match self {
            Self::Nowhere => (asked.format, Destination::Nowhere),
            Self::Stdout => (asked.format, Destination::Stdout),
            Self::File(path) => (asked.format.or_else(|| meant(path)), Destination::File(path.clone())),
            Self::Directory(directory) => {
                let format = asked.format.unwrap_or(Format::Png);
                let path = names::unused(directory, &url, format, taken);
                (asked.format, Destination::File(path))
            }
        };
        Target { url, format, destination }
    }
}

/// The format that a file's name means.
fn meant(path: &Path) -> Option<Format> {
    Format::of_ending(path.extension()?.to_str()?)
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(fs::File::open(path).map_err(Failure::file(path))?),
    };
    source.take(MAX_LIST_BYTES).read_to_string(&mut text).map_err(Failure::file(path))?;
    Ok(text)
}

/// The addresses in a list.
fn listed(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Args;

    fn asked(args: &[&str]) -> Capture {
        Args::try_parse_from([&["grab"], args].concat()).unwrap().capture
    }

    fn files(args: &[&str]) -> Vec<String> {
        let targets = of(&asked(args)).unwrap();
        let file = |target: Target| match target.destination {
            Destination::File(path) => path.display().to_string(),
            Destination::Stdout => "stdout".to_owned(),
            Destination::Nowhere => "nowhere".to_owned(),
        };
        targets.all.into_iter().map(file).collect()
    }

    #[test]
    fn pictures_go_where_output_says() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().to_str().unwrap();
        assert_eq!(files(&["https://a.example/x"]), ["a.example_x.png"]);
        assert_eq!(files(&["https://a.example", "-o", "-"]), ["stdout"]);
        assert_eq!(files(&["https://a.example", "-o", "p.jpg"]), ["p.jpg"]);
        assert_eq!(files(&["https://a.example", "--no-download"]), ["nowhere"]);
        assert_eq!(files(&["https://a.example", "--async"]), ["nowhere"]);
        assert_eq!(files(&["https://a.example", "--wait", "9"]), ["a.example.png"]);
        let (one, two) = (format!("{dir}/a.example.webp"), format!("{dir}/a.example-2.webp"));
        assert_eq!(files(&["https://a.example", "https://a.example", "--format", "webp", "-o", dir]), [one, two]);
    }

    #[test]
    fn the_name_of_a_file_means_its_format() {
        let format = |args: &[&str]| of(&asked(args)).unwrap().all[0].format;
        assert_eq!(format(&["https://a.example", "-o", "p.JPG"]), Some(Format::Jpeg));
        assert_eq!(format(&["https://a.example", "-o", "p.jpg", "--format", "webp"]), Some(Format::Webp));
        assert_eq!(format(&["https://a.example", "-o", "p"]), None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for args in [
            &[] as &[&str],
            &["https://a.example", "https://b.example", "-o", "p.png"],
            &["https://a.example", "https://b.example", "-o", "-"],
            &["https://a.example", "--async", "-o", "p.png"],
            &["--from", "/nonexistent/list"],
        ] {
            assert!(of(&asked(args)).is_err(), "{args:?}");
        }
    }

    #[test]
    fn lists_have_one_address_a_line() {
        let text = "# pages\nhttps://a.example\n\n  https://b.example  \r\n#https://c.example\n";
        assert_eq!(listed(text).collect::<Vec<_>>(), ["https://a.example", "https://b.example"]);
    }

    #[test]
    fn what_is_there_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.example.png"), "x").unwrap();
        let path = dir.path().to_str().unwrap();
        let targets = of(&asked(&["https://a.example", "https://b.example", "--skip-existing", "-o", path])).unwrap();
        assert_eq!((targets.all.len(), targets.passed_over), (1, 1));
    }
}
