//! Saves the images of a job and a contact sheet of them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use futures::StreamExt;
use serde_json::{Value, json};
use url::Url;

use super::saved::SavedPage;
use super::{rows, sheet};
use crate::api::Api;
use crate::args::ConnectionArgs;
use crate::capture::{download, unique_path};
use crate::failure::{Exit, Failure};
use crate::format::Format;
use crate::list;
use crate::output;
use crate::values::text;

/// How many images are downloaded at the same time.
const DOWNLOADS: usize = 4;

/// More pages than the list of a job has.
const MAX_PAGES: u32 = 10_000;

/// Options whose files are saved beside the images.
const FILE_OPTIONS: [&str; 4] = ["also", "slice_height", "thumbnail", "viewports"];

/// The directory for the images of a site if none is named: the host.
pub(super) fn directory_of(address: &str) -> PathBuf {
    let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let name: String = host.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let name = name.trim_start_matches(['.', '-', '_']);
    PathBuf::from(if name.is_empty() { "site" } else { name })
}

/// Saves the images and the contact sheet, and prints the paths.
pub(super) async fn save(
    api: &Api,
    connection: &ConnectionArgs,
    site: &Value,
    directory: &Path,
) -> Result<Exit, Failure> {
    let id = text(&site["id"]);
    let pages = list::read_rows(api, &format!("{}/pages", list::path("sites", &id)?), MAX_PAGES).await?;
    let has_files = FILE_OPTIONS.iter().any(|option| !site["capture"][*option].is_null());
    let mut taken = HashSet::new();
    let targets: Vec<(Value, Option<(Url, PathBuf)>)> =
        pages.into_iter().map(|page| with_target(api, page, directory, &mut taken)).collect();
    let mut saving = futures::stream::iter(targets)
        .map(|(page, target)| save_page(api, page, target, has_files))
        .buffered(DOWNLOADS);
    let mut saved = Vec::new();
    while let Some(page) = saving.next().await {
        print_page(connection, &id, &page)?;
        // All other pages would fail in the same way.
        if page.failure.as_ref().is_some_and(Failure::is_fatal)
            && let Some(failure) = page.failure
        {
            return Err(failure);
        }
        saved.push(page);
    }
    let sheet = sheet::write(directory, &rows::address(site), &saved)?;
    summarize(connection, site, &saved, &sheet);
    Ok(exit(site, &saved))
}

/// The page with the URL of its image and the path for it.
fn with_target(
    api: &Api,
    page: Value,
    directory: &Path,
    taken: &mut HashSet<PathBuf>,
) -> (Value, Option<(Url, PathBuf)>) {
    let image = page["image_url"].as_str().and_then(|image| api.base().join(image).ok());
    let target = image.map(|image| {
        let extension = image.path().rsplit('.').next().unwrap_or_default();
        let format = Format::from_extension(extension).unwrap_or(Format::Png);
        let path = unique_path(directory, page["url"].as_str().unwrap_or_default(), format, taken);
        (image, path)
    });
    (page, target)
}

async fn save_page(api: &Api, page: Value, target: Option<(Url, PathBuf)>, has_files: bool) -> SavedPage {
    let Some((image, path)) = target else { return SavedPage { page, file: None, failure: None } };
    match save_files(api, &page, &image, &path, has_files).await {
        Ok(()) => SavedPage { page, file: Some(path), failure: None },
        Err(cause) => {
            let failure = Failure::NotSaved { id: text(&page["grab_id"]), cause: Box::new(cause) };
            SavedPage { page, file: None, failure: Some(failure) }
        }
    }
}

/// Saves the image of a page, and the files beside it.
async fn save_files(api: &Api, page: &Value, image: &Url, path: &Path, has_files: bool) -> Result<(), Failure> {
    download::save(api, image, path).await?;
    if has_files {
        let grab = list::fetch(api, &text(&page["grab_id"])).await?;
        download::attachments(api, &grab, path).await?;
    }
    Ok(())
}

/// Prints the path of an image to stdout, with `--json` the page. Failures are on stderr.
fn print_page(connection: &ConnectionArgs, id: &str, saved: &SavedPage) -> Result<(), Failure> {
    let SavedPage { page, file, failure } = saved;
    let url = text(&page["url"]);
    if let Some(failure) = failure {
        eprintln!("failed    {url}: {}", failure.message());
    } else if page["state"] == "failed" {
        eprintln!("failed    {url}: {}", rows::reason(page).unwrap_or_default());
    } else if page["state"] == "done"
        && let Some(note) = rows::reason(page)
    {
        eprintln!("note      {url}: {note}");
    }
    let file = file.as_ref().map(|path| path.display().to_string());
    if connection.json {
        let mut shown = page.clone();
        shown["site_id"] = json!(id);
        shown["file"] = json!(file);
        return output::line(&shown.to_string());
    }
    file.map_or(Ok(()), |file| output::line(&file))
}

fn summarize(connection: &ConnectionArgs, site: &Value, saved: &[SavedPage], sheet: &Path) {
    match (site["state"].as_str(), site["error"]["message"].as_str()) {
        (_, Some(message)) => eprintln!("The job ended early: {message}"),
        (Some("out_of_credits"), None) => eprintln!("No credits are left, so the other pages were not captured."),
        (Some("canceled"), None) => eprintln!("The job was canceled, so the other pages were not captured."),
        _ => {}
    }
    if connection.quiet {
        return;
    }
    let count = |state: &str| saved.iter().filter(|saved| saved.page["state"] == state).count();
    let parts = [(count("done"), "captured"), (count("failed"), "failed"), (count("skipped"), "skipped")];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, label)| format!("{count} {label}"));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let parts = if parts.is_empty() { "0 captured".to_owned() } else { parts };
    eprintln!("\n{parts} of {} pages. The contact sheet is {}.", saved.len(), sheet.display());
}

fn exit(site: &Value, saved: &[SavedPage]) -> Exit {
    let not_saved = saved.iter().find_map(|saved| saved.failure.as_ref());
    let has_failed = saved.iter().any(|saved| saved.page["state"] == "failed");
    match (site["state"].as_str(), not_saved) {
        (Some("out_of_credits"), _) => Exit::NoCredits,
        (_, Some(failure)) => failure.exit(),
        (Some("done"), None) if !has_failed => Exit::Done,
        (Some(_) | None, None) => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(state: &str, failure: Option<Failure>) -> SavedPage {
        SavedPage { page: json!({ "state": state }), file: None, failure }
    }

    #[test]
    fn directory_is_named_after_the_host() {
        for (address, expected) in
            [("https://www.a.example:8443/docs/", "www.a.example"), ("http://[::1]/", "1_"), ("nonsense", "site")]
        {
            assert_eq!(directory_of(address), Path::new(expected), "{address}");
        }
    }

    #[test]
    fn exit_code_tells_how_the_job_ended() {
        let not_saved = || Some(Failure::NoImage("it was deleted".to_owned()));
        for (state, pages, expected) in [
            ("done", vec![saved("done", None), saved("skipped", None)], Exit::Done),
            ("done", vec![saved("done", None), saved("failed", None)], Exit::Failed),
            ("done", vec![saved("done", not_saved())], Exit::Failed),
            ("canceled", vec![saved("done", None)], Exit::Failed),
            ("failed", vec![], Exit::Failed),
            ("out_of_credits", vec![saved("failed", None)], Exit::NoCredits),
        ] {
            assert_eq!(exit(&json!({ "state": state }), &pages), expected, "{state}");
        }
    }
}
