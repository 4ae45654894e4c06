//! What the requests of one connection share, and their results.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use grabd_egress::EgressStream;
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;

use super::state::ListenerState;
use super::target::{Destination, Malformed};

/// A streamed response body of an origin, or an empty one.
pub(super) type Body = Either<Incoming, Empty<Bytes>>;

/// Why a request gets no response. The connection is closed, and the browser reports a network error.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Refused(#[from] grabd_egress::EgressError),
    #[error("a filter list names the host")]
    Listed,
    #[error("the origin closed the connection or sent an invalid response")]
    Origin(#[source] hyper::Error),
    #[error("the origin sent a response that only a proxy may send")]
    NotAnOrigin,
}

/// A connection to an origin, kept for the next request to the same host and port. Its address was checked when it was
/// opened.
pub(super) struct Origin {
    pub(super) destination: Destination,
    pub(super) requests: http1::SendRequest<Incoming>,
}

/// State shared by the requests of one connection.
pub(super) struct Session {
    pub(super) state: Arc<ListenerState>,
    origin: Mutex<Option<Origin>>,
    tunnel: Mutex<Option<EgressStream>>,
}

impl Session {
    pub(super) fn new(state: Arc<ListenerState>) -> Self {
        Self { state, origin: Mutex::default(), tunnel: Mutex::default() }
    }

    pub(super) fn set_origin(&self, origin: Origin) {
        *self.origin.lock().unwrap_or_else(PoisonError::into_inner) = Some(origin);
    }

    pub(super) fn take_origin(&self) -> Option<Origin> {
        self.origin.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn set_tunnel(&self, upstream: EgressStream) {
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(upstream);
    }

    pub(super) fn take_tunnel(&self) -> Option<EgressStream> {
        self.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
