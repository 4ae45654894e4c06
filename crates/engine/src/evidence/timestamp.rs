//! Time stamps of another authority (RFC 3161), if the operator wants them.

use std::time::Duration;

use bytes::Bytes;
use grabd_domain::grabs::{RenderMetadata, Warning};
use grabd_domain::target::TargetUrl;
use grabd_evidence::{InvalidTimestamp, MAX_TIMESTAMP_BYTES, check_timestamp, timestamp_request};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use http::response::Parts;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;

use crate::outgoing::RequestError;
use crate::service::Core;

const AGENT: &str = "grabd-evidence/1.0";

/// Time limit of a request.
const LIMIT: Duration = Duration::from_secs(5);

/// Why there is no time stamp.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("HTTP {0}")]
    Status(StatusCode),
    #[error("the response broke off, or has more than 64 kB")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Invalid(#[from] InvalidTimestamp),
}

/// The time stamp of a manifest. `None` if the operator wants none, or with a warning if it could not be had: a capture is never
/// lost because of it.
pub(crate) async fn add_timestamp(core: &Core, manifest: &[u8], metadata: &mut RenderMetadata) -> Option<Vec<u8>> {
    let url = core.settings.operations.evidence_timestamp_url.as_ref()?;
    let stamped = request(core, url, manifest).await;
    core.metrics.evidence_timestamped(stamped.is_ok());
    match stamped {
        Ok(reply) => Some(reply),
        Err(error) => {
            tracing::warn!(%error, "evidence has no time stamp");
            if !metadata.warnings.contains(&Warning::EvidenceTimestampFailed) {
                metadata.warnings.push(Warning::EvidenceTimestampFailed);
            }
            None
        }
    }
}

async fn request(core: &Core, url: &TargetUrl, manifest: &[u8]) -> Result<Vec<u8>, Error> {
    let query = timestamp_request(manifest);
    let request = Request::post("/")
        .header(CONTENT_TYPE, "application/timestamp-query")
        .header(ACCEPT, "application/timestamp-reply")
        .header(CONTENT_LENGTH, query.len())
        .header(USER_AGENT, AGENT);
    let body = Full::new(Bytes::from(query));
    let reply = core.outgoing.send(&core.guard, url, request, body, LIMIT, read).await??;
    check_timestamp(&reply, manifest)?;
    Ok(reply.to_vec())
}

async fn read(head: Parts, body: Incoming) -> Result<Bytes, Error> {
    if head.status != StatusCode::OK {
        return Err(Error::Status(head.status));
    }
    Ok(Limited::new(body, MAX_TIMESTAMP_BYTES).collect().await.map_err(Error::Body)?.to_bytes())
}
