//! Request bodies. What the routes leave unread is read before the response is sent.
//!
//! *Why:* a route may respond before it has read the body, for example because the credential is missing or the body is
//! too large. hyper would then close the connection after the response without announcing it, or reset the stream over
//! HTTP/2. Clients that are still sending would fail without having read the response, and others would fail with their
//! next request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::header::{CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, HeaderValue};
use hyper::body::{Frame, Incoming, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout, timeout_at};

/// The most bytes that are read and discarded: twice the largest body that any route accepts. A client that sends more
/// gets `Connection: close`, or its stream is reset.
const MAX_BYTES: u64 = 8 << 20;
/// How long a body may take to arrive, from the header on. Routes do not wait longer either, so a body that is too slow for
/// them is not waited for again.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How long the next part may take. A client that waits for the response before it sends the rest gets it after that.
const PART_TIME_LIMIT: Duration = Duration::from_secs(1);

/// A body that the routes read, and of which the connection keeps the rest.
#[derive(Clone)]
pub(super) struct RequestBody(Arc<Mutex<State>>);

struct State {
    body: Incoming,
    /// Set by the first read, which makes hyper send `100 Continue` to a client that waits for it.
    is_requested: bool,
    has_ended: bool,
}

/// The rest of a body after the routes have responded.
pub(super) struct UnreadBody {
    body: RequestBody,
    /// The client sends the body only after `100 Continue`.
    sends_on_request: bool,
    deadline: Instant,
}

impl RequestBody {
    pub(super) fn new(body: Incoming) -> Self {
        let has_ended = body.is_end_stream();
        Self(Arc::new(Mutex::new(State { body, is_requested: false, has_ended })))
    }

    /// The part that the routes will leave unread, at the start of a request. gRPC calls read on while they respond.
    pub(super) fn rest(&self, headers: &HeaderMap) -> Option<UnreadBody> {
        let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        (!content_type.starts_with(b"application/grpc") && !self.is_end_stream()).then(|| UnreadBody {
            body: self.clone(),
            sends_on_request: headers.contains_key(EXPECT),
            deadline: Instant::now() + TIME_LIMIT,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl UnreadBody {
    /// Reads and discards the rest. Returns false if the connection must be closed instead, or the stream be reset.
    pub(super) async fn discard(self) -> bool {
        let mut left = MAX_BYTES;
        if self.body.is_end_stream() {
            return true;
        }
        let is_waiting = self.sends_on_request && !self.body.state().is_requested;
        if is_waiting || self.body.size_hint().lower() > left {
            return false;
        }
        let discard = async {
            let mut body = self.body;
            loop {
                let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
                let Ok(frame) = timeout(PART_TIME_LIMIT, next).await else { return false };
                let Some(frame) = frame else { return true };
                let Ok(frame) = frame else { return false };
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                match left.checked_sub(bytes) {
                    Some(less) => left = less,
                    None => return false,
                }
            }
        };
        timeout_at(self.deadline, discard).await.unwrap_or(false)
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut state = self.state();
        if state.has_ended {
            return Poll::Ready(None);
        }
        state.is_requested = true;
        let polled = Pin::new(&mut state.body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            state.has_ended = true;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let state = self.state();
        state.has_ended || state.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.state().body.size_hint()
    }
}
