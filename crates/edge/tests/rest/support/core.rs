//! A core that answers by script.

use std::collections::HashMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::Stream;
use grabd_proto::reason;
use grabd_proto::v1::grab_service_server::{GrabService, GrabServiceServer};
use grabd_proto::v1::pricing_service_server::{PricingService, PricingServiceServer};
use grabd_proto::v1::usage_service_server::{UsageService, UsageServiceServer};
use grabd_proto::v1::webhook_service_server::WebhookServiceServer;
use grabd_proto::v1::{
    CaptureGrabRequest, CaptureGrabResponse, CreateGrabRequest, CreateGrabResponse, DeleteGrabRequest,
    DeleteGrabResponse, ErrorCode, GetGrabRequest, GetGrabResponse, GetPricingRequest, GetPricingResponse,
    GetUsageRequest, GetUsageResponse, Grab, GrabStatus, ImageFormat, ListGrabsRequest, ListGrabsResponse,
    WatchGrabRequest, WatchGrabResponse,
};
use http::HeaderMap;
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::webhooks::Webhooks;

/// What the core tells of a recognised team's limit.
pub(crate) const POLICY: &str = "\"default\";q=60;w=60";
pub(crate) const STATE: &str = "\"default\";r=59;t=12";

type Watched = Pin<Box<dyn Stream<Item = Result<WatchGrabResponse, Status>> + Send>>;

/// One RPC: what it says next, and what it was asked. Without a script it never answers.
pub(crate) struct Rpc<Q, A> {
    script: Mutex<Option<Script<A>>>,
    seen: Mutex<Vec<(HeaderMap, Q)>>,
}

type Script<A> = Arc<dyn Fn() -> Result<Response<A>, Status> + Send + Sync>;

impl<Q: Clone + Send, A: Send> Rpc<Q, A> {
    pub(super) fn new() -> Self {
        Self { script: Mutex::new(None), seen: Mutex::new(Vec::new()) }
    }

    /// From now on, this is the answer.
    pub(crate) fn answers(&self, script: impl Fn() -> Result<Response<A>, Status> + Send + Sync + 'static) {
        *self.script.lock().expect("not poisoned") = Some(Arc::new(script));
    }

    /// Everything it was asked since it was last looked at.
    pub(crate) fn asked(&self) -> Vec<(HeaderMap, Q)> {
        std::mem::take(&mut self.seen.lock().expect("not poisoned"))
    }

    /// The one thing it was asked since it was last looked at.
    #[track_caller]
    pub(crate) fn asked_once(&self) -> (HeaderMap, Q) {
        let mut asked = self.asked();
        assert_eq!(asked.len(), 1);
        asked.remove(0)
    }

    pub(super) async fn call(&self, request: Request<Q>) -> Result<Response<A>, Status> {
        let (metadata, _, message) = request.into_parts();
        self.seen.lock().expect("not poisoned").push((metadata.into_headers(), message));
        // Scripts may panic, which must not happen under the lock.
        let script = self.script.lock().expect("not poisoned").clone();
        match script {
            Some(script) => script(),
            None => pending().await,
        }
    }
}

pub(crate) struct Core {
    pub(crate) create: Rpc<CreateGrabRequest, CreateGrabResponse>,
    pub(crate) get: Rpc<GetGrabRequest, GetGrabResponse>,
    pub(crate) delete: Rpc<DeleteGrabRequest, DeleteGrabResponse>,
    pub(crate) list: Rpc<ListGrabsRequest, ListGrabsResponse>,
    pub(crate) watch: Rpc<WatchGrabRequest, Watched>,
    pub(crate) usage: Rpc<GetUsageRequest, GetUsageResponse>,
    pub(crate) webhooks: Webhooks,
    pub(crate) pricing: Rpc<GetPricingRequest, GetPricingResponse>,
}

impl Core {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            create: Rpc::new(),
            get: Rpc::new(),
            delete: Rpc::new(),
            list: Rpc::new(),
            watch: Rpc::new(),
            usage: Rpc::new(),
            webhooks: Webhooks::new(),
            pricing: Rpc::new(),
        })
    }

    pub(crate) fn routes(core: &Arc<Self>) -> Routes {
        Routes::new(GrabServiceServer::from_arc(Arc::clone(core)))
            .add_service(UsageServiceServer::from_arc(Arc::clone(core)))
            .add_service(PricingServiceServer::from_arc(Arc::clone(core)))
            .add_service(WebhookServiceServer::from_arc(Arc::clone(core)))
    }
}

#[tonic::async_trait]
impl GrabService for Core {
    type WatchGrabStream = Watched;
    type CaptureGrabStream = futures::stream::Empty<Result<CaptureGrabResponse, Status>>;

    async fn capture_grab(&self, _: Request<CaptureGrabRequest>) -> Result<Response<Self::CaptureGrabStream>, Status> {
        Err(Status::unimplemented("REST holds no grab"))
    }

    async fn create_grab(&self, request: Request<CreateGrabRequest>) -> Result<Response<CreateGrabResponse>, Status> {
        self.create.call(request).await
    }

    async fn get_grab(&self, request: Request<GetGrabRequest>) -> Result<Response<GetGrabResponse>, Status> {
        self.get.call(request).await
    }

    async fn delete_grab(&self, request: Request<DeleteGrabRequest>) -> Result<Response<DeleteGrabResponse>, Status> {
        self.delete.call(request).await
    }

    async fn list_grabs(&self, request: Request<ListGrabsRequest>) -> Result<Response<ListGrabsResponse>, Status> {
        self.list.call(request).await
    }

    async fn watch_grab(&self, request: Request<WatchGrabRequest>) -> Result<Response<Watched>, Status> {
        self.watch.call(request).await
    }
}

#[tonic::async_trait]
impl UsageService for Core {
    async fn get_usage(&self, request: Request<GetUsageRequest>) -> Result<Response<GetUsageResponse>, Status> {
        self.usage.call(request).await
    }
}

#[tonic::async_trait]
impl PricingService for Core {
    async fn get_pricing(&self, request: Request<GetPricingRequest>) -> Result<Response<GetPricingResponse>, Status> {
        self.pricing.call(request).await
    }
}

/// An answer with the state of a recognised team's limit.
pub(crate) fn limited<A>(message: A) -> Result<Response<A>, Status> {
    let mut response = Response::new(message);
    response.metadata_mut().insert(reason::RATE_LIMIT_POLICY, POLICY.parse().expect("metadata"));
    response.metadata_mut().insert(reason::RATE_LIMIT, STATE.parse().expect("metadata"));
    Ok(response)
}

/// An error with its reason, as the core sends it. Everything after authentication tells the limit.
pub(crate) fn fault(code: ErrorCode, message: &str, retry: Option<Duration>) -> Status {
    let mut details = ErrorDetails::with_error_info(reason::of(code), reason::DOMAIN, HashMap::new());
    if let Some(retry) = retry {
        details.set_retry_info(Some(retry));
    }
    let mut status = Status::with_error_details(Code::Unknown, message, details);
    if code != ErrorCode::Unauthorized {
        status.metadata_mut().insert(reason::RATE_LIMIT_POLICY, POLICY.parse().expect("metadata"));
        status.metadata_mut().insert(reason::RATE_LIMIT, STATE.parse().expect("metadata"));
    }
    status
}

/// A live grab in the given state.
pub(crate) fn grab(status: GrabStatus, revision: i64) -> Grab {
    Grab {
        id: "01990000-0000-7000-8000-000000000001".to_owned(),
        status: status.into(),
        created_at: Some(prost_types::Timestamp { seconds: 1_795_206_774, nanos: 120_000_000 }),
        target_url: "https://example.com/".to_owned(),
        width: 1280,
        height: 720,
        format: ImageFormat::Png.into(),
        revision,
        live: true,
        ..Grab::default()
    }
}

/// A watched grab that tells these revisions and then stays open, ends, or breaks.
pub(crate) fn watched(revisions: Vec<Grab>, then: impl Stream<Item = Status> + Send + 'static) -> Watched {
    use futures::StreamExt;
    let told = futures::stream::iter(revisions).map(|grab| Ok(WatchGrabResponse { grab: Some(grab) }));
    Box::pin(told.chain(then.map(Err)))
}
