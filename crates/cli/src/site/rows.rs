//! Jobs and pages as rows of tables.

use serde_json::Value;

use crate::values::{moment, text};

/// The columns of a list of jobs.
pub(super) const SITE_HEAD: [&str; 6] = ["ID", "CREATED", "STATE", "CAPTURED", "FAILED", "NAME"];
/// The columns of a list of pages.
pub(super) const PAGE_HEAD: [&str; 4] = ["STATE", "CAPTURE", "PAGE", "REASON"];

/// The address of the start page or of the sitemap.
pub(super) fn address(site: &Value) -> String {
    site["url"].as_str().or_else(|| site["sitemap"].as_str()).unwrap_or_default().to_owned()
}

/// The row of a job.
pub(super) fn site(site: &Value) -> Vec<String> {
    let pages = &site["pages"];
    vec![
        text(&site["id"]),
        moment(&site["created_at"]),
        text(&site["state"]),
        format!("{} of {}", text(&pages["captured"]), text(&pages["found"])),
        text(&pages["failed"]),
        text(&site["name"]),
    ]
}

/// The row of a page.
pub(super) fn page(page: &Value) -> Vec<String> {
    vec![
        text(&page["state"]),
        text(&page["grab_id"]),
        text(&page["url"]),
        reason(page).unwrap_or_else(|| "-".to_owned()),
    ]
}

/// Why there is no image of a page, or what is to be said of it, in words. None if nothing says it.
pub(super) fn reason(page: &Value) -> Option<String> {
    if let Some(message) = page["error"]["message"].as_str() {
        return Some(message.to_owned());
    }
    page["skipped_because"].as_str().map(|reason| {
        let words = match reason {
            "robots" => "robots.txt excludes it",
            "other_site" => "belongs to another site",
            "excluded" => "not included, or excluded",
            "not_html" => "no web page",
            "max_pages" => "more pages than --max-pages",
            "private_address" => "not at a public address",
            "canceled" => "the job was canceled",
            "out_of_credits" => "no credits left",
            other => other,
        };
        words.to_owned()
    })
}

/// Why the next capture of an open job waits, as far as the service says so.
pub(super) fn waiting_because(site: &Value) -> Option<&Value> {
    let is_open = matches!(site["state"].as_str(), Some("discovering" | "capturing"));
    site.get("error").filter(|error| is_open && error.is_object())
}

/// The members of a job that are shown, with their names.
pub(super) fn members(site: &Value) -> [(&'static str, Option<String>); 8] {
    let pages = &site["pages"];
    let count = |name: &str| text(&pages[name]);
    let counts = format!(
        "{} found, {} captured, {} failed, {} skipped, {} waiting",
        count("found"),
        count("captured"),
        count("failed"),
        count("skipped"),
        count("waiting")
    );
    [
        ("id", Some(text(&site["id"]))),
        ("name", Some(text(&site["name"]))),
        (if site["sitemap"].is_string() { "sitemap" } else { "start page" }, Some(address(site))),
        ("state", Some(text(&site["state"]))),
        ("pages", Some(counts)),
        ("created", Some(moment(&site["created_at"]))),
        ("finished", site["finished_at"].as_str().map(|_| moment(&site["finished_at"]))),
        (
            if waiting_because(site).is_some() { "waiting" } else { "error" },
            site["error"]["message"].as_str().map(str::to_owned),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reason_is_an_error_or_why_a_page_was_skipped() {
        for (page, expected) in [
            (json!({ "error": null, "skipped_because": null }), None),
            (json!({ "error": { "code": "render_failed", "message": "It failed." } }), Some("It failed.")),
            (json!({ "skipped_because": "robots" }), Some("robots.txt excludes it")),
            (json!({ "skipped_because": "of_a_later_version" }), Some("of_a_later_version")),
        ] {
            assert_eq!(reason(&page).as_deref(), expected, "{page}");
        }
    }

    #[test]
    fn job_is_shown_with_its_counts() {
        let pages = json!({ "found": 9, "captured": 5, "failed": 1, "skipped": 2, "waiting": 1 });
        let job = json!({ "id": "a", "name": "b", "url": "https://a.example/", "sitemap": null, "state": "capturing", "pages": pages });
        let members = members(&job);
        assert_eq!(members[2], ("start page", Some("https://a.example/".to_owned())));
        assert_eq!(members[4].1.as_deref(), Some("9 found, 5 captured, 1 failed, 2 skipped, 1 waiting"));
        assert_eq!(site(&job)[3], "5 of 9");
    }

    #[test]
    fn error_of_an_open_job_is_why_it_waits() {
        for (state, name) in [("discovering", "waiting"), ("capturing", "waiting"), ("failed", "error")] {
            let job = json!({ "state": state, "error": { "code": "queue_limit_exceeded", "message": "A limit." } });
            assert_eq!(members(&job)[7], (name, Some("A limit.".to_owned())), "{state}");
        }
        assert_eq!(waiting_because(&json!({ "state": "capturing", "error": null })), None);
    }
}
