//! Creates the grab of a link once, however many requests for its image arrive at the same time.

use std::collections::hash_map::Entry;

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use tokio::sync::watch;

use super::in_flight::{Capture, Outcome};
use crate::core::Core;
use crate::faults::internal_error;
use crate::grabs::{self, CreateRequest};

/// Creates a grab, or waits for the one that another request for the same image is creating.
///
/// # Errors
/// Those of a create.
pub(super) async fn create_once(core: &Core, caller: Caller, request: CreateRequest) -> Outcome {
    let Some(fingerprint) = grabs::fingerprint_of(&request)? else {
        return grabs::create(core, caller, &request).await;
    };
    let capture = (caller.team, caller.environment, fingerprint);
    let mut outcome = match core.grabs.links.lock().entry(capture) {
        Entry::Occupied(entry) => entry.get().clone(),
        Entry::Vacant(entry) => {
            let (ended, outcome) = watch::channel(None);
            entry.insert(outcome.clone());
            let core = core.clone();
            core.clone().spawn(async move {
                // Removed also if the task panics. Requests that come later find the image.
                let removal = Removal { core: &core, capture };
                let result = grabs::create(&core, caller, &request).await;
                drop(removal);
                ended.send_replace(Some(result));
            });
            outcome
        }
    };
    let ended = outcome.wait_for(Option::is_some).await.map_err(internal_error("links.open"))?;
    ended.clone().unwrap_or(Err(Fault::InternalError))
}

/// Removes a capture when it is dropped.
struct Removal<'a> {
    core: &'a Core,
    capture: Capture,
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        self.core.grabs.links.lock().remove(&self.capture);
    }
}
