//! The way of one request to the core: which headers go along, how long it may take, what comes back.

use std::time::Duration;

use grabd_proto::credential;
use grabd_proto::v1::Unparsed;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::timeout;
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request, Response, Status};

use super::error::Failure;
use super::headers::REQUEST_ID;

/// For calls that wait for nothing but the database.
pub(crate) const PROMPT: Duration = Duration::from_secs(5);
/// For creates: the core answers within 25 seconds, and two more are for the way.
pub(crate) const CREATE: Duration = Duration::from_secs(27);

const TRACEPARENT: HeaderName = HeaderName::from_static(grabd_proto::reason::TRACEPARENT);
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Most characters of a caller's own text that are sent on as "seen". The core shortens it further for the message.
const SEEN_CHARS: usize = 200;

/// What the core answered.
pub(crate) struct Answer<T> {
    /// The message.
    pub(crate) message: T,
    /// What came with it; the state of the caller's limits among others.
    pub(crate) metadata: HeaderMap,
}

/// A message with the credential, the request id and the trace of the request it comes from. The core stops working at
/// it after `deadline`.
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
    let mut request = Request::from_parts(MetadataMap::from_headers(metadata), Extensions::default(), message);
    request.set_timeout(deadline);
    request
}

/// Awaits one answer. A core in this process is not held to the deadline by any connection, so it is held here.
pub(crate) async fn answer<T>(
    headers: &HeaderMap,
    deadline: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<Answer<T>, Failure> {
    match timeout(deadline, call).await {
        Ok(Ok(response)) => {
            let (metadata, message, _) = response.into_parts();
            Ok(Answer { message, metadata: metadata.into_headers() })
        }
        Ok(Err(status)) => Err(Failure::of_status(&status, headers)),
        Err(_) => Err(Failure::internal(format_args!("no answer within {deadline:?}"), request_id(headers))),
    }
}

/// The id under which a request runs.
pub(crate) fn request_id(headers: &HeaderMap) -> &HeaderValue {
    headers.get(REQUEST_ID).expect("the manners around all routes give every request an id")
}

/// Tells the core of a field that has the wrong type here. It judges it in its turn, after the credential and the limit.
pub(crate) fn unparsed(field: &str, seen: &str) -> Unparsed {
    let end = seen.char_indices().nth(SEEN_CHARS).map_or(seen.len(), |(end, _)| end);
    Unparsed { field: field.to_owned(), seen: seen[..end].to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_cut_between_characters() {
        assert_eq!(unparsed("url", &"é".repeat(500)).seen, "é".repeat(SEEN_CHARS));
        assert_eq!(unparsed("url", "5").seen, "5");
    }
}
