//! Links that are being opened. A page that shows a link to many visitors at once is captured, and charged, once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::idempotency::Fingerprint;
use grabd_domain::ids::TeamId;
use tokio::sync::watch;

use crate::core::{Core, internal_error};
use crate::grabs::{self, CreateRequest, CreateResult};

/// What is captured, and for whom.
type Capture = (TeamId, Environment, Fingerprint);
type Outcome = Result<CreateResult, Fault>;

/// The captures that are under way for links. Each ends within the time limit of a synchronous create.
#[derive(Default)]
pub(crate) struct LinksInFlight {
    captures: Mutex<HashMap<Capture, watch::Receiver<Option<Outcome>>>>,
}

impl LinksInFlight {
    /// Creates a grab, or waits for the one that another request for the same image is creating.
    ///
    /// # Errors
    /// Those of a create.
    pub(crate) async fn create_once(&self, core: &Core, caller: Caller, request: CreateRequest) -> Outcome {
        let Some(fingerprint) = grabs::fingerprint_of(&request)? else {
            return grabs::create(core, caller, &request).await;
        };
        let capture = (caller.team, caller.environment, fingerprint);
        let mut outcome = match self.lock().entry(capture) {
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

    fn lock(&self) -> MutexGuard<'_, HashMap<Capture, watch::Receiver<Option<Outcome>>>> {
        self.captures.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
