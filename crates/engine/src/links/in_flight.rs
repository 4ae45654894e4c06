//! Links that are being opened. A page that shows a link to many visitors at once is captured, and charged, once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use grabd_domain::Fault;
use grabd_domain::credentials::Environment;
use grabd_domain::idempotency::Fingerprint;
use grabd_domain::ids::TeamId;
use tokio::sync::watch;

use crate::grabs::CreateResult;

/// What is captured, and for whom.
pub(super) type Capture = (TeamId, Environment, Fingerprint);
pub(super) type Outcome = Result<CreateResult, Fault>;

/// The captures that are under way for links. Each ends within the time limit of a synchronous create.
#[derive(Default)]
pub(crate) struct LinksInFlight {
    captures: Mutex<HashMap<Capture, watch::Receiver<Option<Outcome>>>>,
}

impl LinksInFlight {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<Capture, watch::Receiver<Option<Outcome>>>> {
        self.captures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
