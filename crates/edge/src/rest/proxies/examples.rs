//! Examples in the OpenAPI document.

use serde_json::{Value, json};

use super::super::openapi::examples::EXAMPLE_ID;

/// A proxy.
pub(super) fn proxy() -> Value {
    json!({
        "id": EXAMPLE_ID,
        "name": "Office in Vienna",
        "url": "http://proxy.example.com:3128",
        "has_login": true,
        "created_at": "2026-11-21T09:30:12.480Z",
        "updated_at": "2026-11-21T09:30:12.480Z",
        "last_used_at": null,
        "last_error": null,
        "last_error_at": null
    })
}
