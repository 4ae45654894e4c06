//! Example grabs.

use serde_json::{Value, json};

/// Id of the grab in all examples.
pub(in super::super) const EXAMPLE_ID: &str = "0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44";

/// Example of a done grab.
pub(in super::super) fn done() -> Value {
    json!({
        "id": EXAMPLE_ID,
        "status": "done",
        "created_at": "2026-11-21T09:30:12.480Z",
        "target_url": "https://example.com/",
        "image_url": "https://grabd.example/i/Zx/4k/Zx4kQ0c8mW2rT7yB1nE5uA.png",
        "width": 1280,
        "height": 720,
        "format": "png",
        "bytes": 18213,
        "execution_ms": 312,
        "error_message": null,
        "final_url": "https://example.com/",
        "http_status": 200,
        "settled_by": "quiet",
        "blocked_requests": 0,
        "image_width": 1280,
        "image_height": 720,
        "truncated": false,
        "warnings": [],
        "title": "Example Domain",
        "description": null,
        "lang": "en",
        "canonical_url": null,
        "icon_url": null,
        "open_graph": null,
        "page_width": 1280,
        "page_height": 720,
        "redirects": 0,
        "timings": { "queued_ms": 24, "navigate_ms": 96, "load_ms": 14, "settle_ms": 152, "shot_ms": 38 },
        "image_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "blank": false,
        "words": 28
    })
}

/// Example of a pending grab.
pub(in super::super) fn pending() -> Value {
    let mut grab = done();
    grab["status"] = json!("pending");
    for name in [
        "image_url",
        "bytes",
        "execution_ms",
        "final_url",
        "http_status",
        "settled_by",
        "blocked_requests",
        "image_width",
        "image_height",
        "truncated",
        "warnings",
        "title",
        "lang",
        "page_width",
        "page_height",
        "redirects",
        "timings",
        "image_sha256",
        "words",
    ] {
        grab[name] = Value::Null;
    }
    if let Value::Object(members) = &mut grab {
        members.remove("blank");
    }
    grab
}
