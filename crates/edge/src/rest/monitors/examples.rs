//! Examples in the OpenAPI document.

use serde_json::{Value, json};

use super::super::openapi::examples::EXAMPLE_ID;

/// The id of an earlier grab.
const EARLIER_ID: &str = "0199f39e-0d11-7a52-8c77-1f0f4d2b9e10";

/// A monitor.
pub(in super::super) fn monitor() -> Value {
    json!({
        "id": EXAMPLE_ID,
        "name": "Prices",
        "capture": { "url": "https://example.com/prices", "full_page": true },
        "every": "1h",
        "cron": null,
        "time_zone": null,
        "compare": {
            "image": {
                "threshold_ratio": 0.001,
                "ignore": [".advertisement", { "x": 0, "y": 0, "width": 300, "height": 40 }],
                "min_region_px": 0
            },
            "status": false,
            "text": { "ignore_patterns": ["[0-9]+ views"] },
            "elements": true,
            "baseline": "latest"
        },
        "alert_after": 1,
        "notify": { "webhook": true, "email": true },
        "keep": 100,
        "quiet": { "from": "22:00", "to": "07:00", "time_zone": "Europe/Vienna" },
        "state": "active",
        "created_at": "2026-11-20T09:30:12.480Z",
        "updated_at": "2026-11-20T09:30:12.480Z",
        "next_run_at": "2026-11-21T10:30:12.480Z",
        "baseline_grab_id": EXAMPLE_ID,
        "last_run": run(),
        "live": true,
        "has_feed": false
    })
}

/// The addresses of a feed and a badge.
pub(in super::super) fn feed() -> Value {
    let base = "https://grabd.example/feeds/q7Jw1mQd5kq0mE4cN2t0X3o9c6b8h1yLZrVf5uTgK2A";
    json!({ "feed_url": format!("{base}/feed.atom"), "badge_url": format!("{base}/badge.svg") })
}

/// A run.
pub(in super::super) fn run() -> Value {
    json!({
        "id": "5e0c1d2f-6a7b-5c8d-9e0f-1a2b3c4d5e6f",
        "due_at": "2026-11-21T09:30:12.480Z",
        "outcome": "changed",
        "grab_id": EXAMPLE_ID,
        "compared_to": EARLIER_ID,
        "difference_ratio": 0.021,
        "what_changed": ["image", "text", "elements"],
        "text_changes": [{ "before": "Basic: 5 € a month", "after": "Basic: 6 € a month" }],
        "element_changes": [
            { "change": "changed", "role": "button", "name": "Order", "before": "Buy", "after": "Order" }
        ],
        "alerted": true,
        "finished_at": "2026-11-21T09:30:15.020Z",
        "error": null
    })
}
