//! Links that are being opened. A page that shows a link to many visitors at once is captured, and charged, once.

use std::collections::HashMap;

use grabd_domain::Fault;
use grabd_domain::credentials::Environment;
use grabd_domain::idempotency::Fingerprint;
use grabd_domain::ids::{KeyId, TeamId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::accounts::RateLimitDecision;
use crate::error::Error;
use crate::grabs::CreateResult;

/// What is captured, and for whom.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Capture {
    pub(super) team: TeamId,
    pub(super) environment: Environment,
    /// The key that signed the link, if it may not read what others created.
    pub(super) only_of: Option<KeyId>,
    pub(super) fingerprint: Fingerprint,
}

/// The grab that answers a link.
#[derive(Clone, Debug)]
pub(super) struct LinkResult {
    pub(super) result: CreateResult,
    /// The state of the limit of the link's key. `None`: an earlier image answers, which is not counted.
    pub(super) counted: Option<RateLimitDecision>,
}

/// Why a link cannot be opened.
#[derive(Clone, Debug)]
pub struct LinkError {
    /// The error for the caller.
    pub fault: Fault,
    /// The state of the limit of the link's key, if the request was counted.
    pub counted: Option<RateLimitDecision>,
}

impl LinkError {
    pub(super) const fn new(fault: Fault, counted: Option<RateLimitDecision>) -> Self {
        Self { fault, counted }
    }
}

impl<E> From<E> for LinkError
where
    Error: From<E>,
{
    /// What went wrong inside is logged here, once for all requests that wait for the same image.
    #[track_caller]
    fn from(cause: E) -> Self {
        Self::new(Error::from(cause).into_fault(), None)
    }
}

pub(super) type Outcome = Result<LinkResult, LinkError>;

/// The captures that are under way for links. Each ends within the time limit of a synchronous create.
#[derive(Default)]
pub(super) struct LinksInFlight {
    captures: Mutex<HashMap<Capture, watch::Receiver<Option<Outcome>>>>,
}

impl LinksInFlight {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<Capture, watch::Receiver<Option<Outcome>>>> {
        self.captures.lock()
    }
}
