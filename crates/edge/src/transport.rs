//! The one way to the core: the same erased service whether it runs in this process or behind a channel.

use std::error::Error;

use axum::body::HttpBody;
use bytes::Bytes;
use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

/// A clonable way to call the core. The error is this concrete type because a boxed one makes every handler that awaits
/// it "not general enough" for axum.
pub type Transport = BoxCloneSyncService<Request<Body>, Response<Body>, Status>;

/// The core in this process, without a socket. Pass the *layered* stack, never a bare service: authentication and rate
/// limits are layers of it.
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

/// A core at the other end of a connection.
pub fn channel(channel: Channel) -> Transport {
    BoxCloneSyncService::new(channel.map_err(|error| Status::from_error(error.into())))
}
