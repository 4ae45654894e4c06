//! The service of one connection: requests are counted, and parts of answers are owed until the client has taken them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use tower::Service;

use super::places::{Asked, Place};
use super::pulse::{Ongoing, Owed, Pulse};

/// The routes as one connection reaches them.
#[derive(Clone)]
pub(super) struct Answering {
    router: Router,
    too_many: fn() -> Response,
    pulse: Arc<Pulse>,
    place: Arc<Place>,
}

impl Answering {
    pub(super) const fn new(router: Router, too_many: fn() -> Response, pulse: Arc<Pulse>, place: Arc<Place>) -> Self {
        Self { router, too_many, pulse, place }
    }
}

impl Service<Request<Incoming>> for Answering {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<Incoming>>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, mut request: Request<Incoming>) -> Self::Future {
        let ongoing = self.pulse.begin();
        let asked = self.place.ask();
        request.extensions_mut().insert(ConnectInfo(self.place.peer()));
        let answered = asked.is_some().then(|| self.router.call(request));
        let (pulse, too_many) = (Arc::clone(&self.pulse), self.too_many);
        Box::pin(async move {
            let response = match answered {
                Some(answered) => answered.await?,
                None => too_many(),
            };
            Ok(response.map(|body| Answer::new(body, pulse, ongoing, asked)))
        })
    }
}

/// The body of an answer.
pub(super) struct Answer {
    body: Body,
    pulse: Arc<Pulse>,
    /// There while the next part could be had and nobody has asked for it.
    unasked: Option<Owed>,
    _ongoing: Ongoing,
    _asked: Option<Asked>,
}

impl Answer {
    fn new(body: Body, pulse: Arc<Pulse>, ongoing: Ongoing, asked: Option<Asked>) -> Self {
        let unasked = (!body.is_end_stream()).then(|| pulse.owe());
        Self { body, pulse, unasked, _ongoing: ongoing, _asked: asked }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // Whoever asks can send; from here on the wait for the next part is ours.
        self.unasked = None;
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let Poll::Ready(Some(Ok(frame))) = polled else { return polled };
        self.unasked = (!self.body.is_end_stream()).then(|| self.pulse.owe());
        Poll::Ready(Some(Ok(frame.map_data(|bytes| Piece::owed(bytes, &self.pulse)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A part of an answer under way. It is dropped when the last of it has been written.
struct Piece {
    bytes: Bytes,
    _owed: Owed,
}

impl Piece {
    fn owed(bytes: Bytes, pulse: &Arc<Pulse>) -> Bytes {
        Bytes::from_owner(Self { bytes, _owed: pulse.owe() })
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
