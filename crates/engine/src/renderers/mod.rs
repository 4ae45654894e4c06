//! Renderer sessions: how renderers get work, and report its results. The gRPC service for renderers is over this.

mod receive;
mod session;
mod upload_target;

use std::time::Duration;

pub use crate::grabs::finish::{AttemptResult, OutcomeUnknown, ReceivedFiles, ReceivedImage};
pub use crate::image_digest::ImageDigest;
pub use crate::queue::{Lease, SessionMessage, SessionSlots};
pub use grabd_images::{UploadError, UploadTarget, Uploader};
pub use receive::{ImageReceiver, ReceiveError, UploadedImage};
pub use session::{AttachError, RendererSession, domain_rules, image_not_stored, needs_files, record};
pub use upload_target::upload_target;

/// How often a renderer reports its condition.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
