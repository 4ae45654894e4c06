//! Uploads images to URLs of callers (`upload_url`), such as presigned URLs of an object store.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::Fault;
use grabd_domain::capture::{CaptureSpec, HIDDEN, UploadUrl};
use grabd_domain::faults::{ErrorCause, Field};
use grabd_domain::grabs::{Failure, FailureReason, ImageKey};
use grabd_domain::limits::UPLOAD_LIMIT;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::not_completed::NotCompleted;
use crate::outgoing::RequestError;
use crate::service::Core;
use crate::targets;

const AGENT: &str = "grabd-uploads/1.0";

/// Bytes that are read from the image at a time.
const PART_BYTES: usize = 64 << 10;

/// Maximum time for loading the image from an object store.
const LOAD_LIMIT: Duration = Duration::from_secs(5);
/// Maximum time for reading the response body after the status. Some servers reset the connection otherwise.
const READ_LIMIT: Duration = Duration::from_secs(1);
/// The bytes of the response body that are read.
const RESPONSE_BYTES: usize = 16 << 10;

/// Why an image was not uploaded.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the image was deleted")]
    Deleted,
    #[error("the image cannot be read")]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    Storage(#[from] grabd_images::Error),
    #[error("HTTP {0}")]
    Status(StatusCode),
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Checks the URL for the upload without a lookup: HTTPS, and a public address.
///
/// # Errors
/// [`Fault::BadRequest`] for `upload_url`. Its value is not shown.
pub(super) fn check(core: &Core, spec: &CaptureSpec) -> Result<(), Fault> {
    let Some(UploadUrl(url)) = &spec.secrets.upload_url else { return Ok(()) };
    if !url.is_https() && !core.webhooks.allow_http() {
        return Err(Fault::BadRequest(field()));
    }
    core.guard.check_public(url).map_err(|_| Fault::BadRequest(field()))
}

/// Looks the host of the URL for the upload up, and refuses private addresses.
///
/// # Errors
/// [`Fault::BadRequest`] for `upload_url`. Its value is not shown.
pub(super) async fn check_host(core: &Core, spec: &CaptureSpec) -> Result<(), Fault> {
    let Some(UploadUrl(url)) = &spec.secrets.upload_url else { return Ok(()) };
    targets::check_host(core, url).await.map_err(|_| Fault::BadRequest(field()))
}

fn field() -> Field {
    let seen = HIDDEN;
    Field::new("upload_url", seen, UploadUrl::ALLOWED)
}

/// Uploads the stored image. It may happen more than once for one grab: when the process ends before it is recorded.
///
/// # Errors
/// The failure of the grab.
pub(super) async fn upload(core: &Core, url: &UploadUrl, key: &ImageKey) -> Result<(), NotCompleted> {
    put(core, url, key).await.map_err(|error| NotCompleted::Failed(error.to_failure()))
}

async fn put(core: &Core, UploadUrl(url): &UploadUrl, key: &ImageKey) -> Result<(), Error> {
    let copy = timeout(LOAD_LIMIT, core.grabs.images.image(key).local_copy()).await;
    // Kept until the upload has ended: a temporary copy is deleted with it.
    let copy = copy.map_err(|_| Error::Unreadable(io::ErrorKind::TimedOut.into()))??.ok_or(Error::Deleted)?;
    let file = File::open(copy.path()).await?;
    let bytes = file.metadata().await?.len();
    let request = Request::put("/")
        .header(CONTENT_TYPE, key.format().media_type())
        .header(CONTENT_LENGTH, bytes)
        .header(USER_AGENT, AGENT);
    let body = StreamBody::new(Box::pin(futures::stream::try_unfold(file, next_part)));
    let answered = core.outgoing.send(&core.guard, url, request, body, UPLOAD_LIMIT, |head, body| async move {
        drop(timeout(READ_LIMIT, discard(body)).await);
        head.status
    });
    match answered.await? {
        status if status.is_success() => Ok(()),
        status => Err(Error::Status(status)),
    }
}

async fn next_part(mut file: File) -> io::Result<Option<(Frame<Bytes>, File)>> {
    let mut part = Vec::with_capacity(PART_BYTES);
    let read = (&mut file).take(u64::try_from(PART_BYTES).unwrap_or(u64::MAX)).read_to_end(&mut part).await?;
    Ok((read > 0).then(|| (Frame::data(part.into()), file)))
}

async fn discard(mut body: Incoming) {
    let mut left = RESPONSE_BYTES;
    while left > 0 {
        let Some(Ok(frame)) = body.frame().await else { return };
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
    }
}

impl Error {
    /// The failure of a grab whose image was not uploaded. It does not name the URL, which is a secret.
    fn to_failure(&self) -> Failure {
        let failed = |cause, message: String| Failure::new(FailureReason::RenderFailed, message).caused_by(cause);
        match self {
            Self::Status(status) if status.is_redirection() => failed(
                ErrorCause::Request,
                format!("`upload_url` answered with a redirect (HTTP {}), which is not followed.", status.as_u16()),
            ),
            Self::Status(status) if status.is_client_error() => failed(
                ErrorCause::Request,
                format!("`upload_url` refused the image with HTTP {}. Is the URL still valid?", status.as_u16()),
            ),
            Self::Status(status) => failed(
                ErrorCause::Target,
                format!("`upload_url` answered with HTTP {}, so the image was not uploaded.", status.as_u16()),
            ),
            Self::Request(RequestError::Connection(refused)) if refused.is_refused() => failed(
                ErrorCause::Request,
                "`upload_url` leads to an address that is not public, so the image was not uploaded.".to_owned(),
            ),
            Self::Request(RequestError::TimedOut(limit)) => {
                failed(ErrorCause::Target, format!("The upload to `upload_url` took more than {} s.", limit.as_secs()))
            }
            Self::Request(RequestError::Connection(_) | RequestError::Tls(_) | RequestError::Http(_)) => failed(
                ErrorCause::Target,
                "The image could not be uploaded: there is no connection to the host of `upload_url`.".to_owned(),
            ),
            Self::Request(RequestError::Request(_)) => {
                failed(ErrorCause::Request, "`upload_url` is not a URL that a request can be sent to.".to_owned())
            }
            Self::Deleted | Self::Unreadable(_) | Self::Storage(_) => {
                tracing::error!(error = %self, source = ?std::error::Error::source(self), "an image was not uploaded");
                let message = "The image could not be uploaded, because of an error of the service.".to_owned();
                failed(ErrorCause::Service, message)
            }
        }
    }
}
