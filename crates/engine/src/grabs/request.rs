//! Requests to create a grab, and their results.

use grabd_domain::capture::{CaptureRequest, CaptureSpec, Tolerance};
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::{Class, Grab};
use grabd_domain::idempotency::Fingerprint;
use grabd_domain::ids::KeyId;
use grabd_store::grabs::NewRecord;
use uuid::Uuid;

/// A request to create a grab, not validated yet.
#[derive(Debug)]
pub struct CreateRequest {
    /// What to capture.
    pub capture: CaptureRequest,
    /// What does not count in the comparison with an earlier grab. Only monitors have something.
    pub tolerance: Tolerance,
    /// Synchronous or asynchronous.
    pub class: Class,
    /// The idempotency key, not validated yet.
    pub idempotency_key: Option<String>,
    /// Whether the caller may read grabs. If not, only those of the same API key answer the request or are compared with.
    pub may_read: bool,
    /// Whether it is made by whoever opened a signed link, and not by the team.
    pub is_link: bool,
}

impl CreateRequest {
    /// The key whose grabs the caller may get, if not those of all.
    pub(super) fn only_of(&self, caller: Caller) -> Option<KeyId> {
        // No grab has the nil key: a caller that is no key and may not read gets none.
        (!self.may_read).then(|| caller.principal.key().unwrap_or(KeyId(Uuid::nil())))
    }
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

    /// An earlier grab answers the create. The labels and the unknown members are those of the request, since those of the
    /// earlier grab may be of somebody else.
    pub(super) fn cached(mut grab: Grab, spec: &CaptureSpec, replayed: bool) -> Self {
        grab.spec.metadata = spec.metadata.clone();
        grab.spec.unknown = spec.unknown.clone();
        Self { grab, replayed, cached: true }
    }
}

/// A validated request to create a grab.
pub(crate) struct ValidCreate {
    pub(super) spec: CaptureSpec,
    pub(super) class: Class,
    pub(super) record: Option<NewRecord>,
    /// Fingerprint of what determines the image.
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) is_link: bool,
}

/// The result of validating a create.
pub(crate) enum Validated {
    Fresh(Box<ValidCreate>),
    /// An earlier request had the same idempotency key, or an earlier grab answers the request.
    Repeated(Box<CreateResult>),
}
