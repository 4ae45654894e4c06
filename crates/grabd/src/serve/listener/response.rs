//! The service of one connection. Counts requests, and tracks response parts until the client has read them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, Version};
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use tower::Service;

use super::activity::{ActiveRequest, ConnectionActivity, PendingPart};
use super::limiter::{ConnectionPermit, RequestPermit};
use super::request_body::RequestBody;

/// The routes, as called by one connection.
#[derive(Clone)]
pub(super) struct ConnectionService {
    router: Router,
    too_many_requests: fn() -> Response,
    activity: Arc<ConnectionActivity>,
    permit: Arc<ConnectionPermit>,
}

impl ConnectionService {
    pub(super) const fn new(
        router: Router,
        too_many_requests: fn() -> Response,
        activity: Arc<ConnectionActivity>,
        permit: Arc<ConnectionPermit>,
    ) -> Self {
        Self { router, too_many_requests, activity, permit }
    }
}

impl Service<Request<Incoming>> for ConnectionService {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<RequestBody>>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let mut request = request.map(RequestBody::new);
        let unread = request.body().rest(request.headers());
        let ends_with_connection = request.version() < Version::HTTP_2;
        let active_request = self.activity.begin_request();
        let request_permit = self.permit.acquire_request();
        request.extensions_mut().insert(ConnectInfo(self.permit.peer()));
        let response = request_permit.is_some().then(|| self.router.call(request));
        let (activity, too_many_requests) = (Arc::clone(&self.activity), self.too_many_requests);
        Box::pin(async move {
            let mut response = match response {
                Some(response) => response.await?,
                None => too_many_requests(),
            };
            if let Some(unread) = unread
                && !unread.discard().await
                && ends_with_connection
            {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| ResponseBody::new(body, activity, active_request, request_permit)))
        })
    }
}

/// A tracked response body.
pub(super) struct ResponseBody {
    body: Body,
    activity: Arc<ConnectionActivity>,
    /// Set while the next part is available and hyper has not polled for it.
    unpolled: Option<PendingPart>,
    _active_request: ActiveRequest,
    _request_permit: Option<RequestPermit>,
}

impl ResponseBody {
    fn new(
        body: Body,
        activity: Arc<ConnectionActivity>,
        active_request: ActiveRequest,
        request_permit: Option<RequestPermit>,
    ) -> Self {
        let unpolled = (!body.is_end_stream()).then(|| activity.add_pending());
        Self { body, activity, unpolled, _active_request: active_request, _request_permit: request_permit }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // hyper polls when it can send. From now on the wait for the next part is ours.
        self.unpolled = None;
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let Poll::Ready(Some(Ok(frame))) = polled else { return polled };
        self.unpolled = (!self.body.is_end_stream()).then(|| self.activity.add_pending());
        Poll::Ready(Some(Ok(frame.map_data(|bytes| TrackedChunk::tracked(bytes, &self.activity)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A response part in transit. Dropped after its last byte was written.
struct TrackedChunk {
    bytes: Bytes,
    _pending: PendingPart,
}

impl TrackedChunk {
    fn tracked(bytes: Bytes, activity: &Arc<ConnectionActivity>) -> Bytes {
        Bytes::from_owner(Self { bytes, _pending: activity.add_pending() })
    }
}

impl AsRef<[u8]> for TrackedChunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
