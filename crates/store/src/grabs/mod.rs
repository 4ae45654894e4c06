//! Grabs, their jobs, images and idempotency keys: one file for each change, and the reads in `queries/`.
//!
//! The state transitions of a grab:
//!
//! | from, to | file |
//! |---|---|
//! | placeholder, created in its final state | `placeholder.rs` |
//! | created as pending, or as processing if a slot is free | `create.rs` |
//! | pending to processing | `lease.rs` |
//! | processing to done | `complete.rs` |
//! | processing to failed | `fail.rs` |
//! | processing back to pending | `release.rs`, in bulk for lost leases `reclaim.rs` |
//! | open to failed, deadline passed | `fail.rs`, in bulk `expire_jobs.rs` |
//! | open to failed, cancelled by the caller | `fail.rs` |

pub(crate) mod complete;
pub(crate) mod create;
pub(crate) mod delay;
pub(crate) mod delete;
pub(crate) mod expire_jobs;
pub(crate) mod fail;
pub(crate) mod files;
pub(crate) mod idempotency;
pub(crate) mod images;
pub(crate) mod lease;
pub(crate) mod placeholder;
pub(crate) mod queries;
pub(crate) mod reclaim;
pub(crate) mod release;
pub(crate) mod reuse;
pub(crate) mod stored_bytes;

pub use complete::{Completion, EndedGrab};
pub use create::{Created, NewGrab, NewLease};
pub use expire_jobs::timeout_failure;
pub use fail::{FailGrab, FailureSource};
pub use idempotency::{NewRecord, Repeat};
pub use lease::{LeaseRequest, LeasedJob};
pub use placeholder::{NewPlaceholder, PlaceholderOutcome};
pub use queries::creator::GrabCreator;
pub use queries::days::DailyOutcomeCount;
pub use queries::export::{ExportCursor, ExportPage};
pub use queries::find::ShownImage;
pub use queries::list::{Cursor, GrabList, PageRequest};
pub use queries::storage::PayerStorage;
pub use queries::stored_files::StoredFile;
pub use queries::usage::GrabCounts;
pub use reclaim::LostLeases;
pub use release::{BACK_OFF, ReleaseOutcome};
pub use reuse::{ReuseGrab, ReuseOutcome};
