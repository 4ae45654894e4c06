//! What all searches for the captured part have in common: their time, and how their scripts are called.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::script;

/// How long a script may exceed its time limit before it counts as stuck.
const SEARCH_GRACE: Duration = Duration::from_secs(1);

/// The time for reading the state of a page whose budget is used up.
pub(super) const STATE_TIME: Duration = Duration::from_millis(500);

/// Calls a script. Returns `None` also if its document was replaced, which the caller notices by itself.
pub(super) async fn call_script<T: DeserializeOwned>(
    context: &CaptureContext<'_>,
    budget: Duration,
    function: &str,
    arguments: &impl Serialize,
) -> Result<Option<T>, CaptureError> {
    match script::call(context.tab, budget + SEARCH_GRACE, function, arguments).await {
        Err(CallError::Refused { message, .. }) => {
            tracing::debug!(message, "a script ended early");
            Ok(None)
        }
        answer => Ok(answer?),
    }
}

/// The end of scrolling and searching: after another settle budget at most.
pub(super) fn end_of_search(context: &CaptureContext<'_>) -> Instant {
    (Instant::now() + context.limits.settle_budget).min(context.capture_by)
}

pub(super) fn left_until(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}
