//! The core's stream of a grab's revisions and stages, for the two endpoints that wait for changes.

use std::time::Duration;

use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{Grab, GrabStatus, WatchGrabRequest, WatchGrabResponse};
use http::HeaderMap;
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::call::{self, CoreResponse};
use super::error::ApiError;
use super::state::Edge;

/// The current and later revisions of a grab.
pub(super) struct Watch {
    /// Metadata of the response that opened the stream.
    pub(super) metadata: HeaderMap,
    stream: Streaming<WatchGrabResponse>,
}

/// Opens the stream that is asked for, for at most `max_duration`.
pub(super) async fn open(
    edge: &Edge,
    headers: &HeaderMap,
    watch: WatchGrabRequest,
    max_duration: Duration,
) -> Result<Watch, ApiError> {
    let mut core = GrabServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, watch, max_duration);
    let CoreResponse { message: stream, metadata } =
        call::send(headers, call::QUERY_DEADLINE, core.watch_grab(sent)).await?;
    Ok(Watch { metadata, stream })
}

/// Result of waiting for the next revision.
pub(super) enum Next {
    /// A later revision, or a later stage of the last one.
    Grab(Box<Grab>),
    /// The grab has ended; there is no later revision.
    End,
    /// No revision arrived in time.
    Nothing,
}

impl Watch {
    /// Waits for the next revision, for at most `wait`. Cancel safe.
    ///
    /// # Errors
    /// With the status of the core. An unknown id may be reported here, instead of the first revision.
    pub(super) async fn next(&mut self, wait: Duration) -> Result<Next, Status> {
        match timeout(wait, self.stream.message()).await {
            Err(_) => Ok(Next::Nothing),
            Ok(Err(status)) => Err(status),
            Ok(Ok(None)) => Ok(Next::End),
            Ok(Ok(Some(WatchGrabResponse { grab }))) => {
                grab.map(|grab| Next::Grab(Box::new(grab))).ok_or_else(|| Status::internal("a watch event has no grab"))
            }
        }
    }
}

/// Whether the grab is in a final state.
pub(super) fn has_ended(grab: &Grab) -> bool {
    match grab.status() {
        GrabStatus::Done | GrabStatus::Failed => true,
        GrabStatus::Pending | GrabStatus::Processing | GrabStatus::Unspecified => false,
    }
}
