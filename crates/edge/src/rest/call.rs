//! Calls to the core: forwarded headers, deadlines and responses.

use std::time::Duration;

use grabd_proto::called_as;
use grabd_proto::credential;
use grabd_proto::v1::Unparsed;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use tokio::time::timeout;
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request, Response, Status};

use super::error::ApiError;
use super::headers::REQUEST_ID;
pub(crate) use super::request_id::request_id;

/// Deadline of calls that only wait for the database.
pub(crate) const QUERY_DEADLINE: Duration = Duration::from_secs(5);
/// Deadline of creates: the core responds within 25 seconds; two more are for transfer.
pub(crate) const CREATE_DEADLINE: Duration = Duration::from_secs(27);

const TRACEPARENT: HeaderName = HeaderName::from_static(grabd_proto::reason::TRACEPARENT);
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Maximum number of characters of an invalid value that are forwarded as `seen`. The core shortens it further for the
/// message.
const MAX_SEEN_CHARS: usize = 200;

/// A response of the core.
pub(crate) struct CoreResponse<T> {
    pub(crate) message: T,
    /// Response metadata, which includes the state of the caller's limits.
    pub(crate) metadata: HeaderMap,
}

/// A gRPC request with the credential, request id and trace headers of the HTTP request. The core stops working on it
/// after `deadline`.
pub(crate) fn request<T>(headers: &HeaderMap, message: T, deadline: Duration) -> Request<T> {
    let mut metadata = HeaderMap::with_capacity(8);
    if credential::bearer(headers).is_some()
        && let Some(credential) = headers.get(AUTHORIZATION)
    {
        metadata.insert(AUTHORIZATION, credential.clone());
    }
    for name in [REQUEST_ID, TRACEPARENT, TRACESTATE] {
        for value in headers.get_all(&name) {
            metadata.append(&name, value.clone());
        }
    }
    called_as::copy(headers, &mut metadata);
    let mut request = Request::from_parts(MetadataMap::from_headers(metadata), Extensions::default(), message);
    request.set_timeout(deadline);
    request
}

/// Awaits a response. The deadline is enforced here because no connection enforces it for a core in this process.
pub(crate) async fn send<T>(
    headers: &HeaderMap,
    deadline: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<CoreResponse<T>, ApiError> {
    match timeout(deadline, call).await {
        Ok(Ok(response)) => {
            let (metadata, message, _) = response.into_parts();
            Ok(CoreResponse { message, metadata: metadata.into_headers() })
        }
        Ok(Err(status)) => Err(ApiError::from_status(&status, headers)),
        Err(_) => Err(ApiError::internal(format_args!("no response within {deadline:?}"), request_id(headers))),
    }
}

/// A field of the wrong type, to be reported by the core, which checks the credential and the limits first.
pub(crate) fn unparsed(field: &str, seen: &str) -> Unparsed {
    let end = seen.char_indices().nth(MAX_SEEN_CHARS).map_or(seen.len(), |(end, _)| end);
    Unparsed { field: field.to_owned(), seen: seen[..end].to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unparsed_truncates_the_value_at_a_character_boundary() {
        assert_eq!(unparsed("url", &"é".repeat(500)).seen, "é".repeat(MAX_SEEN_CHARS));
        assert_eq!(unparsed("url", "5").seen, "5");
    }
}
