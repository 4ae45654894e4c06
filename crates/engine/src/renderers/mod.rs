//! Renderer sessions: how renderers get work, and report its results. The gRPC service for renderers is over this.

mod receive;
mod session;

use std::time::Duration;

pub use crate::grabs::finish::{AttemptResult, OutcomeUnknown, ReceivedFiles, ReceivedImage};
pub use crate::queue::{Lease, SessionMessage, SessionSlots};
pub use receive::{ImageReceiver, ReceiveError};
pub use session::{AttachError, RendererSession, image_not_stored, needs_files, record};

/// How often a renderer reports its condition.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
