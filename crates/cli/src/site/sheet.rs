//! The contact sheet of a job: a web page beside the images, which can be moved with them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::rows;
use super::saved::SavedPage;
use crate::capture::download;
use crate::failure::Failure;
use crate::html::{self, escaped};

/// Writes the contact sheet and returns its path.
pub(super) fn write(directory: &Path, address: &str, pages: &[SavedPage]) -> Result<PathBuf, Failure> {
    let path = directory.join("index.html");
    download::write(&path, page(address, pages).as_bytes())?;
    Ok(path)
}

fn page(address: &str, pages: &[SavedPage]) -> String {
    let (shown, missing): (Vec<&SavedPage>, Vec<&SavedPage>) = pages.iter().partition(|saved| saved.file.is_some());
    let mut body = String::from("<div class=\"images sheet\">\n");
    for saved in &shown {
        body.push_str(&figure(saved));
    }
    body.push_str("</div>\n");
    if !missing.is_empty() {
        body.push_str("<h2>Without an image</h2>\n<ul>\n");
        for SavedPage { page, failure, .. } in &missing {
            let reason = failure.as_ref().map(Failure::message).or_else(|| rows::reason(page));
            let reason = reason.unwrap_or_else(|| "there is no image".to_owned());
            let state = page["state"].as_str().unwrap_or_default();
            let _ = writeln!(
                body,
                "<li><span class=\"tag {}\">{}</span>{}: {}</li>",
                if state == "failed" { "failed" } else { "" },
                escaped(state),
                link(page["url"].as_str().unwrap_or_default()),
                escaped(&reason)
            );
        }
        body.push_str("</ul>\n");
    }
    let count = shown.len();
    let pages = if count == 1 { "page" } else { "pages" };
    html::page(&format!("{count} {pages} of {}", escaped(address)), &body)
}

/// The image of a page, with its address, and what is to be said of it.
fn figure(saved: &SavedPage) -> String {
    let url = saved.page["url"].as_str().unwrap_or_default();
    let name = saved.file.as_ref().and_then(|file| file.file_name()).unwrap_or_default().to_string_lossy();
    let name = escaped(&name);
    let note = rows::reason(&saved.page).map(|note| format!(": {}", escaped(&note))).unwrap_or_default();
    format!(
        "<figure><a href=\"{name}\"><img src=\"{name}\" alt=\"Capture of {}\" loading=\"lazy\"></a>\
         <figcaption>{}{note}</figcaption></figure>\n",
        escaped(url),
        link(url)
    )
}

/// A link to a page. Only web addresses become links.
fn link(url: &str) -> String {
    let shown = escaped(url);
    let is_web = url.starts_with("http://") || url.starts_with("https://");
    if is_web { format!("<a href=\"{shown}\" rel=\"noreferrer\">{shown}</a>") } else { shown }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sheet_shows_images_and_says_why_others_are_missing() {
        let saved = |url: &str, state: &str, skipped: Option<&str>, file: Option<&str>| SavedPage {
            page: json!({ "url": url, "state": state, "skipped_because": skipped }),
            file: file.map(PathBuf::from),
            failure: None,
        };
        let mut moved = saved("https://a.example/moved", "done", None, Some("shots/a.example_moved.png"));
        moved.page["error"] = json!({ "code": "other_site", "message": "It led to <b>." });
        let pages = [
            moved,
            saved("https://a.example/?a=1&b=2", "done", None, Some("shots/a.example_a_1.png")),
            saved("https://a.example/secret", "skipped", Some("robots"), None),
            saved("javascript:alert(1)", "skipped", Some("other_site"), None),
        ];
        let html = page("https://a.example/<b>", &pages);
        assert!(html.contains("<title>2 pages of https://a.example/&lt;b&gt;</title>"), "{html}");
        assert!(
            html.contains("<img src=\"a.example_a_1.png\" alt=\"Capture of https://a.example/?a=1&amp;b=2\""),
            "{html}"
        );
        assert!(html.contains("https://a.example/secret</a>: robots.txt excludes it"), "{html}");
        assert!(html.contains("/moved</a>: It led to &lt;b&gt;.</figcaption>"), "{html}");
        assert!(!html.contains("href=\"javascript"), "{html}");
    }
}
