//! The pages to capture and the destination of each image.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use grabd_options::{Object, Value};

use super::names;
use crate::args::{Args, CaptureArgs, Format};
use crate::failure::Failure;

/// The maximum size of a `--from` list, in bytes.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// The maximum size of a `--html` document, in bytes.
const MAX_HTML_BYTES: u64 = 1 << 20;

/// The URL of a document that has none, as in the API.
const DEFAULT_HTML_URL: &str = "https://html.example/";

/// The most slices of an image.
const MAX_SLICES: usize = 64;

/// The similarity, from 0 to 1, from which a word is taken for a mistyped command.
const SIMILAR: f64 = 0.8;

/// One page to capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) url: String,
    /// The document to capture instead of one at the URL.
    pub(super) html: Option<String>,
    pub(super) format: Option<Format>,
    pub(super) destination: Destination,
}

/// The destination of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    Nowhere,
    Stdout,
    File(PathBuf),
}

/// All pages to capture.
#[derive(Debug)]
pub(super) struct Targets {
    pub(super) all: Vec<Target>,
    /// The number of pages skipped because their file exists.
    pub(super) skipped: usize,
}

/// The URLs of the pages, completed.
pub(crate) fn page_urls(args: &CaptureArgs) -> Result<Vec<String>, Failure> {
    let mut urls = args.urls.clone();
    if let Some(path) = &args.from {
        urls.extend(parse_list(&read_list(path)?));
    }
    if urls.is_empty() {
        return Err(Failure::Usage("no page to capture; try `grab https://example.com`, or `grab --help`".to_owned()));
    }
    urls.into_iter().map(complete_url).collect()
}

/// Determines the pages and their destinations.
pub(super) fn resolve(args: &CaptureArgs) -> Result<Targets, Failure> {
    if let Some(path) = &args.html {
        let html = read_html(path)?;
        let url = args.html_url.clone().unwrap_or_else(|| DEFAULT_HTML_URL.to_owned());
        let output = Output::resolve(args, 1)?;
        output.check_writable()?;
        let target = Target { html: Some(html), ..output.target(args, url, &mut HashSet::new()) };
        check_beside(args, std::slice::from_ref(&target))?;
        let exists = matches!(&target.destination, Destination::File(path) if args.skip_existing && path.exists());
        return Ok(match exists {
            true => Targets { all: Vec::new(), skipped: 1 },
            false => Targets { all: vec![target], skipped: 0 },
        });
    }
    let urls = page_urls(args)?;
    let output = Output::resolve(args, urls.len())?;
    output.check_writable()?;
    let (mut all, mut skipped, mut taken) = (Vec::new(), 0, HashSet::new());
    for url in urls {
        let target = output.target(args, url, &mut taken);
        match &target.destination {
            Destination::File(path) if args.skip_existing && path.exists() => skipped += 1,
            Destination::File(_) | Destination::Stdout | Destination::Nowhere => all.push(target),
        }
    }
    check_beside(args, &all)?;
    Ok(Targets { all, skipped })
}

/// Checks that what is made beside the images can be saved there, before any is captured and charged: images are files,
/// and no directory has the name of a slice, of an image in a further viewport or of one that a step takes, and no other image.
fn check_beside(args: &CaptureArgs, targets: &[Target]) -> Result<(), Failure> {
    let option = |name: &str| args.options.0.iter().find(|(of, _)| *of == name).map(|(_, value)| value);
    if targets.iter().any(|target| matches!(target.destination, Destination::Stdout)) {
        for name in ["also", "evidence", "slice_height", "thumbnail", "viewports"] {
            if option(name).is_some() {
                let flag = name.replace('_', "-");
                let reason = format!("--output - writes the image only, and nothing that --{flag} makes; name a file");
                return Err(Failure::Usage(reason));
            }
        }
        if !step_images(args).is_empty() {
            let reason = "--output - writes the image only, and none that a step takes; name a file";
            return Err(Failure::Usage(reason.to_owned()));
        }
    }
    let slices = option("slice_height").into_iter().flat_map(|_| 1..=MAX_SLICES);
    let slices = slices.map(|number| ("a slice", format!("{number:02}")));
    let sizes = option("viewports").zip(grabd_options::find("viewports"));
    let sizes = sizes.map_or(String::new(), |(value, option)| option.kind.to_text(value));
    let viewports = sizes.split(", ").filter(|size| !size.is_empty());
    let viewports = viewports.map(|size| ("the image in a further viewport", size.to_owned()));
    let step_images = step_images(args).into_iter().map(|name| ("the image that a step takes", name));
    let endings: Vec<(&str, String)> = slices.chain(viewports).chain(step_images).collect();
    let image = |target: &Target| match &target.destination {
        Destination::File(path) => Some(path.clone()),
        Destination::Stdout | Destination::Nowhere => None,
    };
    let images: HashSet<PathBuf> = targets.iter().filter_map(image).collect();
    for (image, (what, ending)) in images.iter().flat_map(|image| endings.iter().map(move |ending| (image, ending))) {
        let path = names::beside_path(image, ending);
        let path_in_use = |reason| Err(Failure::Usage(format!("{} cannot be {what}: it is {reason}", path.display())));
        if images.contains(&path) {
            return path_in_use("another image; choose other names with --output");
        }
        if path.is_dir() {
            return path_in_use("a directory");
        }
    }
    Ok(())
}

/// The names of the images that steps take.
fn step_images(args: &CaptureArgs) -> Vec<String> {
    let steps = args.options.0.iter().find(|(name, _)| *name == "steps").map(|(_, value)| value);
    let Some(Value::Objects(steps)) = steps else { return Vec::new() };
    let name = |step: &Object| match step.get("capture") {
        Some(Value::Text(name)) if names::is_image_name(name) => Some(name.clone()),
        _ => None,
    };
    steps.iter().filter_map(name).collect()
}

/// Adds the scheme to a URL without one, as browsers do. A single word is rejected, because it is more often a mistyped
/// command than the name of a host.
pub(crate) fn complete_url(text: String) -> Result<String, Failure> {
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    let is_local = host.split(':').next().is_some_and(|name| name == "localhost" || name.parse::<IpAddr>().is_ok());
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    match () {
        () if text.contains("://") || text.contains(char::is_whitespace) => Ok(text),
        () if is_local => Ok(format!("http://{text}")),
        () if is_word => {
            let commands = Args::command();
            let names =
                commands.get_subcommands().map(|command| (strsim::jaro_winkler(command.get_name(), &text), command));
            let nearest = names.filter(|(similarity, _)| *similarity >= SIMILAR).max_by(|a, b| a.0.total_cmp(&b.0));
            let advice = match nearest {
                Some((_, command)) => format!("did you mean `grab {}`?", command.get_name()),
                None => "it looks like https://example.com".to_owned(),
            };
            Err(Failure::Usage(format!("{text:?} is neither a command nor a URL; {advice}")))
        }
        () if host.contains('.') => Ok(format!("https://{text}")),
        () => Ok(text),
    }
}

/// The meaning of `--output`.
#[derive(Debug)]
enum Output {
    Nowhere,
    Stdout,
    File(PathBuf),
    Directory(PathBuf),
}

impl Output {
    fn resolve(args: &CaptureArgs, pages: usize) -> Result<Self, Failure> {
        let only_queued = args.queued && args.wait.is_none();
        let Some(path) = &args.output else {
            let nowhere = args.no_download || only_queued;
            return Ok(if nowhere { Self::Nowhere } else { Self::Directory(PathBuf::new()) });
        };
        let fails = |reason: &str| Err(Failure::Usage(format!("--output {} {reason}", path.display())));
        if only_queued {
            return fails("needs the image, but --async does not wait for it; add --wait SECONDS");
        }
        let is_directory = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
        match (path.as_os_str() == "-", is_directory, pages) {
            (true, _, 1) => Ok(Self::Stdout),
            (true, ..) => fails("can only be used with a single page"),
            (false, true, _) => {
                fs::create_dir_all(path).map_err(Failure::file(path))?;
                Ok(Self::Directory(path.clone()))
            }
            (false, false, 1) => {
                Format::check_extension(path, args.format)?;
                if let Some(directory) = path.parent() {
                    fs::create_dir_all(directory).map_err(Failure::file(directory))?;
                }
                Ok(Self::File(path.clone()))
            }
            (false, false, _) => fails("is a file, but there are several pages; append / to name a directory"),
        }
    }

    /// Checks that images can be saved, before any is captured and charged.
    fn check_writable(&self) -> Result<(), Failure> {
        let directory = match self {
            Self::Nowhere | Self::Stdout => return Ok(()),
            Self::File(path) => path.parent().unwrap_or(Path::new("")),
            Self::Directory(directory) => directory,
        };
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        tempfile::tempfile_in(directory).map_err(Failure::file(directory)).map(drop)
    }

    fn target(&self, args: &CaptureArgs, url: String, taken: &mut HashSet<PathBuf>) -> Target {
        let (format, destination) = match self {
            Self::Nowhere => (args.format, Destination::Nowhere),
            Self::Stdout => (args.format, Destination::Stdout),
            Self::File(path) => (args.format.or_else(|| format_of(path)), Destination::File(path.clone())),
            Self::Directory(directory) => {
                let format = args.format.unwrap_or(Format::Png);
                let path = names::unique_path(directory, &url, format, taken);
                (args.format, Destination::File(path))
            }
        };
        Target { url, html: None, format, destination }
    }
}

/// The format for a file's extension.
fn format_of(path: &Path) -> Option<Format> {
    Format::from_extension(path.extension()?.to_str()?)
}

fn read_list(path: &Path) -> Result<String, Failure> {
    read_text(path, MAX_LIST_BYTES)
}

/// Reads one byte more than the service takes, so that it reports a document that is too long.
fn read_html(path: &Path) -> Result<String, Failure> {
    read_text(path, MAX_HTML_BYTES + 1)
}

/// Reads a file, or stdin for `-`, up to a size.
fn read_text(path: &Path, most: u64) -> Result<String, Failure> {
    let mut text = String::new();
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(fs::File::open(path).map_err(Failure::file(path))?),
    };
    source.take(most).read_to_string(&mut text).map_err(Failure::file(path))?;
    Ok(text)
}

/// The URLs in a list.
fn parse_list(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Args;

    fn parse(args: &[&str]) -> CaptureArgs {
        Args::try_parse_from([&["grab"], args].concat()).unwrap().capture
    }

    fn files(args: &[&str]) -> Vec<String> {
        let targets = resolve(&parse(args)).unwrap();
        let file = |target: Target| match target.destination {
            Destination::File(path) => path.display().to_string(),
            Destination::Stdout => "stdout".to_owned(),
            Destination::Nowhere => "nowhere".to_owned(),
        };
        targets.all.into_iter().map(file).collect()
    }

    #[test]
    fn output_option_sets_the_destination() {
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
    fn output_extension_sets_the_format() {
        let format = |args: &[&str]| resolve(&parse(args)).unwrap().all[0].format;
        assert_eq!(format(&["https://a.example", "-o", "p.JPG"]), Some(Format::Jpeg));
        assert_eq!(format(&["https://a.example", "-o", "p.WebP", "--format", "webp"]), Some(Format::Webp));
        assert_eq!(format(&["https://a.example", "-o", "p.2026", "--format", "webp"]), Some(Format::Webp));
        assert_eq!(format(&["https://a.example", "-o", "p"]), None);
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        for args in [
            &[] as &[&str],
            &["https://a.example", "https://b.example", "-o", "p.png"],
            &["https://a.example", "https://b.example", "-o", "-"],
            &["https://a.example", "-o", "-", "--also", "pdf"],
            &["https://a.example", "-o", "-", "--slice-height", "2000"],
            &["https://a.example", "-o", "-", "--evidence"],
            &["https://a.example", "-o", "-", "--step", r#"{"capture": "menu"}"#],
            &["https://a.example", "--async", "-o", "p.png"],
            &["https://a.example", "-o", "p.gif"],
            &["https://a.example", "-o", "p.2026"],
            &["https://a.example", "-o", "p.pdf", "--format", "png"],
            &["https://a.example", "-o", "p.jpg", "--format", "webp"],
            &["https://a.example", "-o", "/proc/none/p.png"],
            &["--from", "/nonexistent/list"],
            &["lst"],
        ] {
            assert!(resolve(&parse(args)).is_err(), "{args:?}");
        }
    }

    #[test]
    fn slices_that_could_not_be_saved_are_rejected_before_the_capture() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("p.png");
        let args = ["https://a.example", "-o", image.to_str().unwrap(), "--slice-height", "2000"];
        assert!(resolve(&parse(&args)).is_ok());
        fs::create_dir(dir.path().join("p-03.png")).unwrap();
        let message = resolve(&parse(&args)).unwrap_err().message();
        assert!(message.contains("p-03.png cannot be a slice: it is a directory"), "{message}");
        assert!(resolve(&parse(&args[..3])).is_ok(), "without slices it is no problem");
        let several = ["https://a.example/x", "https://a.example/x-02", "--slice-height", "2000"];
        let message = resolve(&parse(&several)).unwrap_err().message();
        assert!(message.contains("a.example_x-02.png cannot be a slice: it is another image"), "{message}");
    }

    #[test]
    fn url_without_a_scheme_is_completed() {
        for (text, expected) in [
            ("example.com", "https://example.com"),
            ("example.com:8443/a?b#c", "https://example.com:8443/a?b#c"),
            ("localhost:3000/", "http://localhost:3000/"),
            ("127.0.0.1", "http://127.0.0.1"),
            ("http://example.com", "http://example.com"),
            ("not an address", "not an address"),
        ] {
            assert_eq!(complete_url(text.to_owned()).unwrap(), expected);
        }
        for (text, advice) in [("lst", "`grab list`"), ("delte", "`grab delete`"), ("example", "https://example.com")] {
            let message = complete_url(text.to_owned()).unwrap_err().message();
            assert!(message.contains(advice), "{message}");
        }
    }

    #[test]
    fn missing_directory_of_the_output_file_is_created() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/p.png");
        assert!(resolve(&parse(&["https://a.example", "-o", path.to_str().unwrap()])).is_ok());
        assert!(path.parent().unwrap().is_dir());
    }

    #[test]
    fn lists_have_one_url_per_line() {
        let text = "# pages\nhttps://a.example\n\n  https://b.example  \r\n#https://c.example\n";
        assert_eq!(parse_list(text).collect::<Vec<_>>(), ["https://a.example", "https://b.example"]);
    }

    #[test]
    fn html_is_read_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("invoice.html");
        fs::write(&path, "<h1>Invoice</h1>").unwrap();
        let path = path.to_str().unwrap();
        let of = |args: &[&str]| resolve(&parse(args)).unwrap().all.remove(0);
        let target = of(&["--html", path]);
        assert_eq!((target.html.as_deref(), target.url.as_str()), (Some("<h1>Invoice</h1>"), "https://html.example/"));
        let file = Destination::File("a.example_x.png".into());
        assert_eq!(of(&["--html", path, "--html-url", "https://a.example/x"]).destination, file);
        for args in
            [&["--html", path, "https://a.example"][..], &["https://a.example", "--html-url", "https://b.example"]]
        {
            assert!(Args::try_parse_from([&["grab"], args].concat()).is_err(), "{args:?}");
        }
        assert!(resolve(&parse(&["--html", "/nonexistent/page"])).is_err());
    }

    #[test]
    fn skip_existing_skips_pages_with_a_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.example.png"), "x").unwrap();
        let path = dir.path().to_str().unwrap();
        let targets =
            resolve(&parse(&["https://a.example", "https://b.example", "--skip-existing", "-o", path])).unwrap();
        assert_eq!((targets.all.len(), targets.skipped), (1, 1));
    }
}
