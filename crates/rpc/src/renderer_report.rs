//! Reports the result of an attempt to its core.

use std::time::Duration;

use grabd_domain::grabs::{SlicePlace, StepImage, ViewportSize};
use grabd_domain::render::{Capture, CapturedFile, CapturedSlice, CapturedStepImage, CapturedViewport, RenderError};
use grabd_proto::internal::v1::finish_picture_request::Message as Part;
use grabd_proto::internal::v1::finish_request::Result as FinishResult;
use grabd_proto::internal::v1::renderer_service_client::RendererServiceClient;
use grabd_proto::internal::v1::{
    FileHeader, FinishPictureRequest, FinishRequest, PageFailure, PictureHeader, Released, SliceHeader,
    StepImageHeader, ViewportHeader,
};
use tokio::time::Instant;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{Body as HttpBody, Bytes, StdError};

use crate::render_metadata;
use crate::status::cause_to_proto;

/// Initial delay between attempts to report a result, doubled after each.
const REPORT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Size of the parts in which an image is sent.
const PART_BYTES: usize = 256 << 10;

/// The result of an attempt, as it is sent.
pub(crate) enum AttemptReport {
    /// An image, sent in parts unless it was uploaded.
    Captured(Box<Capture>, Option<Uploaded>),
    /// Any other result, sent as one message.
    Other(Box<FinishResult>),
}

/// An image that was uploaded to the object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uploaded {
    /// Its size in bytes.
    pub(crate) size_bytes: u64,
    /// Its SHA-256 in hexadecimal digits.
    pub(crate) sha256: String,
}

/// The result of a render whose image was not uploaded.
pub(crate) fn to_wire(outcome: Result<Capture, RenderError>) -> AttemptReport {
    AttemptReport::Other(Box::new(match outcome {
        Ok(capture) => return AttemptReport::Captured(Box::new(capture), None),
        Err(RenderError::Page { failure, metadata }) => FinishResult::Failure(PageFailure {
            code: failure.reason.code().as_str().to_owned(),
            message: failure.message,
            cause: cause_to_proto(failure.cause).into(),
            metadata: Some(render_metadata::to_wire(&metadata)),
        }),
        Err(RenderError::Lost(cause)) => FinishResult::Released(Released { cause }),
    }))
}

/// The messages for an image and the attachments. They share their memory.
fn parts(
    grab_id: &str,
    lease_token: &str,
    capture: &Capture,
    uploaded: Option<&Uploaded>,
) -> impl Iterator<Item = FinishPictureRequest> + Send + use<> {
    let Capture { image, metadata, execution_ms, files, slices, viewports, step_images } = capture;
    let size = |content: &Bytes| u64::try_from(content.len()).unwrap_or(u64::MAX);
    let header = PictureHeader {
        grab_id: grab_id.to_owned(),
        lease_token: lease_token.to_owned(),
        size_bytes: uploaded.map_or_else(|| size(image), |uploaded| uploaded.size_bytes),
        execution_ms: i32::try_from(*execution_ms).unwrap_or(i32::MAX),
        metadata: Some(render_metadata::to_wire(metadata)),
        uploaded_sha256: uploaded.map(|uploaded| uploaded.sha256.clone()),
    };
    // No parts follow the header of an image that was uploaded.
    let image = if uploaded.is_some() { Bytes::new() } else { image.clone() };
    let files = files.iter().map(|CapturedFile { kind, content }| {
        let header = FileHeader { kind: kind.as_str().to_owned(), size_bytes: size(content) };
        (Part::File(header), content.clone())
    });
    let slices = slices.iter().map(|CapturedSlice { place, content }| {
        let SlicePlace { y, height, heading } = place.clone();
        (Part::Slice(SliceHeader { size_bytes: size(content), y, height, heading }), content.clone())
    });
    let viewports = viewports.iter().map(|CapturedViewport { size: of, content }| {
        let ViewportSize { viewport_width, viewport_height, width, height } = *of;
        let header = ViewportHeader { size_bytes: size(content), viewport_width, viewport_height, width, height };
        (Part::Viewport(header), content.clone())
    });
    let step_images = step_images.iter().map(|CapturedStepImage { image, content }| {
        let StepImage { name, width, height } = image.clone();
        (Part::StepImage(StepImageHeader { size_bytes: size(content), name, width, height }), content.clone())
    });
    let headers: Vec<_> = files.chain(slices).chain(viewports).chain(step_images).collect();
    std::iter::once((Part::Header(Box::new(header)), image))
        .chain(headers)
        .flat_map(|(header, content)| std::iter::once(header).chain(content_parts(content)))
        .map(|message| FinishPictureRequest { message: Some(message) })
}

fn content_parts(content: Bytes) -> impl Iterator<Item = Part> + Send {
    let starts = (0..content.len()).step_by(PART_BYTES);
    starts.map(move |start| Part::Part(content.slice(start..content.len().min(start + PART_BYTES))))
}

/// Reports a result, with retries until the core has recorded it or the lease has ended. A shutdown waits no longer
/// than that either, since a grab without a reported result is rendered again.
pub(crate) async fn report<T>(
    mut core: RendererServiceClient<T>,
    grab_id: String,
    lease_token: String,
    result: AttemptReport,
    lease_ends: Instant,
) where
    T: GrpcService<Body> + Clone + Send + Sync + 'static,
    T::Error: Into<StdError>,
    T::Future: Send,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
{
    let grab = grab_id.clone();
    let with_retries = async {
        let mut wait = REPORT_RETRY_DELAY;
        loop {
            let accepted = match &result {
                AttemptReport::Captured(capture, uploaded) => {
                    let parts = tokio_stream::iter(parts(&grab_id, &lease_token, capture, uploaded.as_ref()));
                    core.finish_picture(parts).await.map(|response| response.into_inner().accepted)
                }
                AttemptReport::Other(result) => {
                    let (grab_id, lease_token) = (grab_id.clone(), lease_token.clone());
                    let request = FinishRequest { grab_id, lease_token, result: Some((**result).clone()) };
                    core.finish(request).await.map(|response| response.into_inner().accepted)
                }
            };
            match accepted {
                Ok(accepted) => return accepted,
                Err(status) => tracing::warn!(%status, grab.id = grab, "a result could not be reported; trying again"),
            }
            // Backoff before the next report.
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(2));
        }
    };
    match tokio::time::timeout_at(lease_ends, with_retries).await {
        Ok(true) => {}
        Ok(false) => tracing::info!(grab.id = grab, "a result was rejected: its lease had ended"),
        Err(_) => tracing::warn!(grab.id = grab, "a result could not be reported before its lease ended"),
    }
}
