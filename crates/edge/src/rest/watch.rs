//! Following a grab: the core's stream of its revisions, for the two endpoints that wait.

use std::time::Duration;

use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{Grab, GrabStatus, WatchGrabRequest, WatchGrabResponse};
use http::HeaderMap;
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::Edge;
use super::call::{self, Answer};
use super::error::Failure;

/// The later revisions of a grab, beginning with the one it is at.
pub(super) struct Watch {
    /// What came with the opening of the stream.
    pub(super) metadata: HeaderMap,
    stream: Streaming<WatchGrabResponse>,
}

/// Begins to follow a grab, for `lasting` at most. Revisions up to `after_revision` are not told again.
pub(super) async fn open(
    edge: &Edge,
    headers: &HeaderMap,
    id: String,
    after_revision: i64,
    lasting: Duration,
) -> Result<Watch, Failure> {
    let mut core = GrabServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, WatchGrabRequest { id, after_revision }, lasting);
    let Answer { message: stream, metadata } = call::answer(headers, call::PROMPT, core.watch_grab(sent)).await?;
    Ok(Watch { metadata, stream })
}

/// What following a grab came to within some time.
pub(super) enum Next {
    /// A later revision.
    Grab(Box<Grab>),
    /// It has ended and there is nothing later.
    End,
    /// Nothing yet.
    Nothing,
}

impl Watch {
    /// The next revision, awaited for `wait` at most. Nothing is lost when it is dropped while waiting.
    ///
    /// # Errors
    /// As the core has them, which may be before the first revision: that is how an unknown id is told.
    pub(super) async fn next(&mut self, wait: Duration) -> Result<Next, Status> {
        match timeout(wait, self.stream.message()).await {
            Err(_) => Ok(Next::Nothing),
            Ok(Err(status)) => Err(status),
            Ok(Ok(None)) => Ok(Next::End),
            Ok(Ok(Some(WatchGrabResponse { grab }))) => {
                grab.map(|grab| Next::Grab(Box::new(grab))).ok_or_else(|| Status::internal("a watched grab is missing"))
            }
        }
    }
}

/// Does nothing follow this state?
pub(super) fn has_ended(grab: &Grab) -> bool {
    match grab.status() {
        GrabStatus::Done | GrabStatus::Failed => true,
        GrabStatus::Pending | GrabStatus::Processing | GrabStatus::Unspecified => false,
    }
}
