//! The connection to the core: one type-erased service, whether the core runs in this process or behind a channel.

use std::error::Error;

use axum::body::HttpBody;
use bytes::Bytes;
use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

/// A clonable service that calls the core. The error type is concrete because, with a boxed error, axum rejects
/// handlers that await it ("implementation is not general enough").
pub type Transport = BoxCloneSyncService<Request<Body>, Response<Body>, Status>;

/// Calls a core in this process, without a socket. Pass the *layered* service: authentication and rate limits are
/// layers.
pub fn in_process<S, B>(service: S) -> Transport
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>> + 'static,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let erased = service
        .map_response(|response: Response<B>| response.map(Body::new))
        .map_err(|error: S::Error| Status::from_error(error.into()));
    BoxCloneSyncService::new(erased)
}

/// Calls a core over a connection.
pub fn channel(channel: Channel) -> Transport {
    BoxCloneSyncService::new(channel.map_err(|error| Status::from_error(error.into())))
}
