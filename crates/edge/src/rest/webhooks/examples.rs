//! Examples in the OpenAPI document.

use serde_json::{Value, json};

use super::super::openapi::examples::EXAMPLE_ID;

/// A webhook.
pub(super) fn webhook() -> Value {
    json!({
        "id": EXAMPLE_ID,
        "url": "https://example.com/hooks/grabd",
        "events": ["grab.done", "grab.failed"],
        "description": "",
        "status": "enabled",
        "created_at": "2026-11-21T09:30:12.480Z",
        "disabled_reason": null
    })
}

/// A webhook with its secret.
pub(super) fn with_secret() -> Value {
    let mut webhook = webhook();
    webhook["secret"] = json!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=");
    webhook
}

/// A delivery.
pub(super) fn delivery() -> Value {
    json!({
        "id": EXAMPLE_ID,
        "message_id": "msg_0199f3a17c527d0e9b7a3f0c5c1e2a44",
        "type": "grab.done",
        "attempt": 1,
        "status": "failed",
        "status_code": 500,
        "attempted_at": "2026-11-21T09:30:13.020Z",
        "next_attempt_at": "2026-11-21T09:30:18.110Z"
    })
}
