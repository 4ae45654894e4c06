//! Requests to create a grab, and their results.

use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::grabs::{Class, Grab};
use grabd_domain::idempotency::Fingerprint;
use grabd_store::grabs::NewRecord;

/// A request to create a grab, not validated yet.
#[derive(Debug)]
pub struct CreateRequest {
    /// What to capture.
    pub capture: CaptureRequest,
    /// Synchronous or asynchronous.
    pub class: Class,
    /// The idempotency key, not validated yet.
    pub idempotency_key: Option<String>,
}

/// The result of a create.
#[derive(Clone, Debug)]
pub struct CreateResult {
    /// The current state of the grab.
    pub grab: Grab,
    /// Whether an earlier request with the same idempotency key created the grab.
    pub replayed: bool,
    /// Whether a grab that existed before answers the request. Nothing was created.
    pub cached: bool,
}

impl CreateResult {
    pub(super) const fn first(grab: Grab) -> Self {
        Self { grab, replayed: false, cached: false }
    }

    /// An earlier grab answers the create.
    pub(super) const fn cached(grab: Grab, replayed: bool) -> Self {
        Self { grab, replayed, cached: true }
    }
}

/// A validated request to create a grab.
pub(super) struct ValidCreate {
    pub(super) spec: CaptureSpec,
    pub(super) class: Class,
    pub(super) record: Option<NewRecord>,
    /// Fingerprint of what determines the image.
    pub(super) fingerprint: Option<Fingerprint>,
}

/// The result of validating a create.
pub(super) enum Validated {
    Fresh(Box<ValidCreate>),
    /// An earlier request had the same idempotency key, or an earlier grab answers the request.
    Repeated(Box<CreateResult>),
}
