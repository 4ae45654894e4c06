//! `grab --baseline` and `grab diff --baseline`: what changed on many pages since earlier captures of them.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use futures::StreamExt;
use serde_json::{Value, json};

use crate::api::{Api, Grab, describe, difference_image};
use crate::args::{CaptureArgs, ConnectionArgs, DiffArgs, Format};
use crate::capture::{self, Keys, download};
use crate::diff::{capture_again, is_over};
use crate::failure::{Exit, Failure, NOTHING_CHARGED};
use crate::output;
use crate::report::Report;

/// The maximum size of a baseline, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The result of one page.
struct Compared {
    url: String,
    earlier: Grab,
    /// The later capture, and where the image of the difference was saved.
    result: Result<(Grab, Option<PathBuf>), Failure>,
}

/// Compares pages with a baseline, or makes it if there is none.
pub(crate) async fn make_or_compare(
    api: &Api,
    connection: &ConnectionArgs,
    args: &CaptureArgs,
    file: &Path,
) -> Result<Exit, Failure> {
    let urls = capture::page_urls(args)?;
    if args.update_baseline || !file.exists() {
        return make(api, connection, args, &urls, file).await;
    }
    let baseline = read(file)?;
    let (known, left_out): (Vec<Grab>, Vec<Grab>) =
        baseline.into_iter().partition(|earlier| urls.iter().any(|url| is_page(earlier, url)));
    let new: Vec<&String> = urls.iter().filter(|url| !known.iter().any(|earlier| is_page(earlier, url))).collect();
    for url in &new {
        eprintln!("new       {url}: not in {}; add it with --update-baseline", file.display());
    }
    for earlier in left_out {
        eprintln!("left out  {}: in {}, and not among the pages", earlier.fields.target_url, file.display());
    }
    let diff = DiffArgs {
        earlier: None,
        later: None,
        baseline: Some(file.to_owned()),
        fail_over: Some(args.fail_over.unwrap_or(0.0)),
        output: args.output.clone(),
        report: args.report.clone(),
        options: args.options.clone(),
        jobs: args.jobs,
        idempotency_key: args.idempotency_key.clone(),
    };
    let exit = compare_all(api, connection, &diff, known, &new).await?;
    Ok(if exit == Exit::Done && !new.is_empty() { Exit::Changed } else { exit })
}

/// Whether a capture is of the page with this URL, as it was given: the service completes URLs.
fn is_page(earlier: &Grab, url: &str) -> bool {
    let normalized = |text: &str| url::Url::parse(text).map_or_else(|_| text.to_owned(), |url| url.to_string());
    normalized(&earlier.fields.target_url) == normalized(url)
}

/// Captures all pages and writes the baseline. An existing one is replaced only if all were captured.
async fn make(
    api: &Api,
    connection: &ConnectionArgs,
    args: &CaptureArgs,
    urls: &[String],
    file: &Path,
) -> Result<Exit, Failure> {
    let keys = Keys::new(args.idempotency_key.as_ref(), urls.len())?;
    let keys = &keys;
    let mut results = futures::stream::iter(urls)
        .map(|url| async move {
            let mut body = serde_json::Map::from_iter([("url".to_owned(), json!(url))]);
            body.extend(args.format.map(|format| ("format".to_owned(), json!(format.as_str()))));
            body.extend(args.options.0.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
            let grab = capture::create_one(api, keys, body.into()).await?;
            if grab.fields.status == "done" { Ok(grab) } else { Err(Failure::CaptureFailed(grab.error())) }
        })
        .buffered(usize::from(args.jobs));
    let (mut text, mut failures) = (String::new(), Vec::new());
    for url in urls {
        match results.next().await {
            Some(Ok(grab)) => {
                if !connection.quiet {
                    eprintln!("captured  {url}");
                }
                text.push_str(&grab.json.to_string());
                text.push('\n');
            }
            Some(Err(failure)) => {
                eprintln!("failed    {url}: {}", failure.message());
                failures.push(failure);
            }
            None => {}
        }
    }
    if let Some(failure) = failures.first() {
        // The hint is about one page, and others may have been charged.
        if let Some(hint) = failure.hint() {
            eprintln!("{}", hint.replace(NOTHING_CHARGED, "Captures that failed were not charged."));
        }
        let (failed, pages) = (failures.len(), urls.len());
        eprintln!("\n{} was not written, because {failed} of {pages} pages failed", file.display());
        return Ok(failure.exit());
    }
    download::write(file, text.as_bytes())?;
    if !connection.quiet {
        eprintln!("\n{} has {} pages. The next run compares with them; commit the file.", file.display(), urls.len());
    }
    Ok(Exit::Done)
}

/// Captures all pages of a baseline again, compares them, and prints a line for each.
pub(crate) async fn run(api: &Api, connection: &ConnectionArgs, args: &DiffArgs, file: &Path) -> Result<Exit, Failure> {
    compare_all(api, connection, args, read(file)?, &[]).await
}

/// Compares the pages of a baseline, in its order. Pages that are `new` are counted and reported, and not captured.
async fn compare_all(
    api: &Api,
    connection: &ConnectionArgs,
    args: &DiffArgs,
    baseline: Vec<Grab>,
    new: &[&String],
) -> Result<Exit, Failure> {
    let keys = Keys::new(args.idempotency_key.as_ref(), baseline.len())?;
    if let Some(directory) = &args.output {
        fs::create_dir_all(directory).map_err(Failure::file(directory))?;
    }
    let mut taken = HashSet::new();
    let targets: Vec<(Grab, Option<PathBuf>)> = baseline
        .into_iter()
        .map(|earlier| {
            let name = |directory: &PathBuf| {
                capture::unique_path(directory, &earlier.fields.target_url, Format::Png, &mut taken)
            };
            let path = args.output.as_ref().map(name);
            (earlier, path)
        })
        .collect();
    let pages = targets.len();
    let mut results = futures::stream::iter(targets)
        .map(|(earlier, path)| compare(api, args, &keys, earlier, path))
        .buffered(usize::from(args.jobs));
    let (mut changed, mut over, mut failure_exit) = (0, 0, None);
    let mut failed = 0;
    let mut report = match &args.report {
        Some(directory) => Some(Report::create(directory)?),
        None => None,
    };
    while let Some(Compared { url, earlier, result }) = results.next().await {
        if let Some(report) = &mut report {
            let outcome = result.as_ref().map(|(later, _)| later).map_err(Failure::message);
            report.add(api, &url, &earlier, outcome, |later| is_over(args, later)).await?;
        }
        match &result {
            Ok((later, _)) => {
                let difference = later.fields.difference.as_ref();
                changed += usize::from(difference.is_some_and(|difference| difference.ratio > 0.0));
                over += usize::from(is_over(args, later));
            }
            Err(failure) => {
                failed += 1;
                eprintln!("failed    {url}: {}", failure.message());
                failure_exit = failure_exit.or(Some(failure.exit()));
            }
        }
        print(connection, args, &url, &result)?;
        // All other pages would fail in the same way.
        if let Some(failure) = result.err().filter(Failure::is_fatal) {
            return Err(failure);
        }
    }
    if let Some(mut report) = report {
        for url in new {
            report.add_new(url);
        }
        let page = report.write()?;
        if !connection.quiet {
            eprintln!("The report is {}.", page.display());
        }
    }
    if !connection.quiet {
        let over = args.fail_over.map(|_| format!(", {over} by more than --fail-over")).unwrap_or_default();
        let failed = if failed > 0 { format!(", {failed} failed and not charged") } else { String::new() };
        let unknown = if new.is_empty() { String::new() } else { format!(", {} not in the baseline", new.len()) };
        eprintln!("\n{changed} changed of {pages} pages{over}{failed}{unknown}");
    }
    Ok(match failure_exit {
        Some(exit) => exit,
        None if over > 0 => Exit::Changed,
        None => Exit::Done,
    })
}

async fn compare(api: &Api, args: &DiffArgs, keys: &Keys, earlier: Grab, path: Option<PathBuf>) -> Compared {
    let url = earlier.fields.target_url.clone().into_owned();
    let result = async {
        let later = capture_again(api, args, keys, &earlier, &url).await?;
        // A page that was not compared must not pass for one that did not change.
        if later.fields.difference.is_none() {
            return Err(Failure::NoImage(format!("capture {} was not compared with the baseline", later.fields.id)));
        }
        let image = later.fields.difference.as_ref().and_then(|difference| difference_image(api, difference));
        let saved = match (path, image) {
            (Some(path), Some(image)) => {
                download::save(api, &image, &path).await?;
                Some(path)
            }
            (Some(_) | None, _) => None,
        };
        Ok((later, saved))
    };
    let result = result.await;
    Compared { url, earlier, result }
}

/// Prints the result of a page to stdout. Failures are on stderr, and with `--json` here, too.
fn print(
    connection: &ConnectionArgs,
    args: &DiffArgs,
    url: &str,
    result: &Result<(Grab, Option<PathBuf>), Failure>,
) -> Result<(), Failure> {
    match (connection.json, result) {
        (true, Ok((later, saved))) => {
            let file = saved.as_ref().map(|path| path.display().to_string());
            let over = args.fail_over.map(|_| is_over(args, later));
            let (id, difference) = (&later.fields.id, &later.json["difference"]);
            let shown = json!({ "target_url": url, "id": id, "difference": difference, "over": over, "file": file });
            output::line(&shown.to_string())
        }
        (true, Err(failure)) => {
            let error = json!({ "code": failure.code(), "message": failure.message() });
            output::line(&json!({ "target_url": url, "error": error }).to_string())
        }
        (false, Ok((later, saved))) => {
            let saved = saved.as_ref().map(|path| format!(" -> {}", path.display())).unwrap_or_default();
            let difference = later.fields.difference.as_ref().map(describe).unwrap_or_default();
            output::line(&format!("{url}: {difference}{saved}"))
        }
        (false, Err(_)) => Ok(()),
    }
}

/// Reads the captures of a baseline: one JSON object a line, as `grab --json` prints them.
fn read(file: &Path) -> Result<Vec<Grab>, Failure> {
    let mut text = String::new();
    let source: Box<dyn Read> = match file.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(fs::File::open(file).map_err(Failure::file(file))?),
    };
    source.take(MAX_BYTES).read_to_string(&mut text).map_err(Failure::file(file))?;
    parse(&text).map_err(|(line, problem)| Failure::Usage(format!("line {line} of {}: {problem}", file.display())))
}

/// The captures, or the number of the first line that is none.
fn parse(text: &str) -> Result<Vec<Grab>, (usize, String)> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let grabs = lines.map(|(index, line)| {
        let json: Value = serde_json::from_str(line)
            .map_err(|_| (index + 1, "not a JSON object; a baseline is what `grab --json …` prints".to_owned()))?;
        let url = json["target_url"].as_str().unwrap_or_default().to_owned();
        match Grab::parse(json) {
            Some(grab) if grab.fields.status == "done" && !url.is_empty() => Ok(grab),
            Some(_) | None => Err((index + 1, format!("{url} was not captured, so nothing can be compared with it"))),
        }
    });
    let grabs: Vec<Grab> = grabs.collect::<Result<_, _>>()?;
    if grabs.is_empty() { Err((1, "there is no capture".to_owned())) } else { Ok(grabs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baseline_has_a_done_capture_in_each_line() {
        let done = json!({ "id": "a", "status": "done", "created_at": "x", "target_url": "https://a.example/" });
        let failed = json!({ "target_url": "https://b.example/", "error": { "code": "render_failed" } });
        assert_eq!(parse(&format!("{done}\n\n{done}\n")).unwrap().len(), 2);
        for (text, line, words) in [
            (format!("{done}\n{failed}\n"), 2, "https://b.example/ was not captured"),
            ("shots/a.png\n".to_owned(), 1, "not a JSON object"),
            (String::new(), 1, "no capture"),
        ] {
            let (at, problem) = parse(&text).unwrap_err();
            assert_eq!(at, line);
            assert!(problem.contains(words), "{problem}");
        }
    }
}
