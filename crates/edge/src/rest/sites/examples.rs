//! Examples in the OpenAPI document.

use serde_json::{Value, json};

use super::super::openapi::examples::EXAMPLE_ID;

/// A job.
pub(in super::super) fn site() -> Value {
    json!({
        "id": EXAMPLE_ID,
        "live": true,
        "name": "Documentation",
        "url": "https://example.com/docs/",
        "sitemap": null,
        "capture": { "full_page": true },
        "max_pages": 50,
        "max_depth": 3,
        "include": ["/docs/*"],
        "exclude": ["*/archive/*"],
        "robots": true,
        "requests_per_minute": 30,
        "state": "capturing",
        "created_at": "2026-11-21T09:30:12.480Z",
        "updated_at": "2026-11-21T09:31:40.120Z",
        "finished_at": null,
        "error": null,
        "pages": { "found": 21, "skipped": 2, "captured": 12, "failed": 1, "waiting": 6 }
    })
}

/// A job that has ended.
pub(in super::super) fn finished() -> Value {
    let mut site = site();
    site["state"] = json!("done");
    site["finished_at"] = json!("2026-11-21T09:32:20.300Z");
    site["pages"] = json!({ "found": 21, "skipped": 2, "captured": 18, "failed": 1, "waiting": 0 });
    site
}

/// A page.
pub(super) fn page() -> Value {
    json!({
        "number": 2,
        "url": "https://example.com/docs/install",
        "depth": 1,
        "found_on": "https://example.com/docs/",
        "state": "done",
        "skipped_because": null,
        "grab_id": EXAMPLE_ID,
        "image_url": "https://grabd.example/i/Zx/4k/Zx4kQ0c8mW2rT7yB1nE5uA.png",
        "error": null
    })
}
