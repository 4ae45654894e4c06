//! A mock core with scripted responses.

use std::collections::HashMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::Stream;
use grabd_proto::reason;
use grabd_proto::v1::access_service_server::{AccessService, AccessServiceServer};
use grabd_proto::v1::grab_service_server::{GrabService, GrabServiceServer};
use grabd_proto::v1::pricing_service_server::{PricingService, PricingServiceServer};
use grabd_proto::v1::usage_service_server::{UsageService, UsageServiceServer};
use grabd_proto::v1::webhook_service_server::WebhookServiceServer;
use grabd_proto::v1::{
    AuthenticateRequest, AuthenticateResponse, BatchCreateGrabsRequest, BatchCreateGrabsResponse, CaptureGrabRequest,
    CaptureGrabResponse, CreateGrabRequest, CreateGrabResponse, DeleteGrabRequest, DeleteGrabResponse, ErrorCode,
    GetGrabRequest, GetGrabResponse, GetPricingRequest, GetPricingResponse, GetUsageRequest, GetUsageResponse, Grab,
    GrabStatus, ImageFormat, ListGrabsRequest, ListGrabsResponse, TakeRequestRequest, TakeRequestResponse,
    WatchGrabRequest, WatchGrabResponse, WatchGrabsRequest, WatchGrabsResponse,
};
use http::HeaderMap;
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::webhooks::Webhooks;

/// Rate limit headers that the core sends for a recognised team.
pub(crate) const POLICY: &str = "\"default\";q=60;w=60";
pub(crate) const STATE: &str = "\"default\";r=59;t=12";

type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchGrabResponse, Status>> + Send>>;
pub(crate) type WatchAllStream = Pin<Box<dyn Stream<Item = Result<WatchGrabsResponse, Status>> + Send>>;

/// One RPC: its script and the recorded requests. Without a script it never responds.
pub(crate) struct Rpc<Req, Resp> {
    script: Mutex<Option<Script<Resp>>>,
    seen: Mutex<Vec<(HeaderMap, Req)>>,
}

type Script<Resp> = Arc<dyn Fn() -> Result<Response<Resp>, Status> + Send + Sync>;

impl<Req: Clone + Send, Resp: Send> Rpc<Req, Resp> {
    pub(super) fn new() -> Self {
        Self { script: Mutex::new(None), seen: Mutex::new(Vec::new()) }
    }

    /// Sets the script that produces all further responses.
    pub(crate) fn respond_with(&self, script: impl Fn() -> Result<Response<Resp>, Status> + Send + Sync + 'static) {
        *self.script.lock().expect("not poisoned") = Some(Arc::new(script));
    }

    /// Takes the recorded requests.
    pub(crate) fn take_requests(&self) -> Vec<(HeaderMap, Req)> {
        std::mem::take(&mut self.seen.lock().expect("not poisoned"))
    }

    /// Takes the recorded requests, which must be exactly one.
    #[track_caller]
    pub(crate) fn take_request(&self) -> (HeaderMap, Req) {
        let mut requests = self.take_requests();
        assert_eq!(requests.len(), 1);
        requests.remove(0)
    }

    pub(super) async fn call(&self, request: Request<Req>) -> Result<Response<Resp>, Status> {
        let (metadata, _, message) = request.into_parts();
        self.seen.lock().expect("not poisoned").push((metadata.into_headers(), message));
        // Scripts may panic, which must not poison the lock.
        let script = self.script.lock().expect("not poisoned").clone();
        match script {
            Some(script) => script(),
            None => pending().await,
        }
    }
}

pub(crate) struct Core {
    pub(crate) create: Rpc<CreateGrabRequest, CreateGrabResponse>,
    pub(crate) batch: Rpc<BatchCreateGrabsRequest, BatchCreateGrabsResponse>,
    pub(crate) get: Rpc<GetGrabRequest, GetGrabResponse>,
    pub(crate) delete: Rpc<DeleteGrabRequest, DeleteGrabResponse>,
    pub(crate) list: Rpc<ListGrabsRequest, ListGrabsResponse>,
    pub(crate) watch: Rpc<WatchGrabRequest, WatchStream>,
    pub(crate) watch_all: Rpc<WatchGrabsRequest, WatchAllStream>,
    pub(crate) usage: Rpc<GetUsageRequest, GetUsageResponse>,
    pub(crate) webhooks: Webhooks,
    pub(crate) pricing: Rpc<GetPricingRequest, GetPricingResponse>,
}

impl Core {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            create: Rpc::new(),
            batch: Rpc::new(),
            get: Rpc::new(),
            delete: Rpc::new(),
            list: Rpc::new(),
            watch: Rpc::new(),
            watch_all: Rpc::new(),
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
            .add_service(AccessServiceServer::from_arc(Arc::clone(core)))
    }
}

#[tonic::async_trait]
impl GrabService for Core {
    type WatchGrabStream = WatchStream;
    type WatchGrabsStream = WatchAllStream;
    type CaptureGrabStream = futures::stream::Empty<Result<CaptureGrabResponse, Status>>;

    async fn capture_grab(&self, _: Request<CaptureGrabRequest>) -> Result<Response<Self::CaptureGrabStream>, Status> {
        Err(Status::unimplemented("REST does not use this RPC"))
    }

    async fn create_grab(&self, request: Request<CreateGrabRequest>) -> Result<Response<CreateGrabResponse>, Status> {
        self.create.call(request).await
    }

    async fn batch_create_grabs(
        &self,
        request: Request<BatchCreateGrabsRequest>,
    ) -> Result<Response<BatchCreateGrabsResponse>, Status> {
        self.batch.call(request).await
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

    async fn watch_grab(&self, request: Request<WatchGrabRequest>) -> Result<Response<WatchStream>, Status> {
        self.watch.call(request).await
    }

    async fn watch_grabs(&self, request: Request<WatchGrabsRequest>) -> Result<Response<WatchAllStream>, Status> {
        self.watch_all.call(request).await
    }
}

/// Accepts every credential, which is checked before a large body is received.
#[tonic::async_trait]
impl AccessService for Core {
    async fn authenticate(&self, _: Request<AuthenticateRequest>) -> Result<Response<AuthenticateResponse>, Status> {
        Ok(Response::new(AuthenticateResponse { live: true, account: "account".into() }))
    }

    async fn take_request(&self, _: Request<TakeRequestRequest>) -> Result<Response<TakeRequestResponse>, Status> {
        Err(Status::unimplemented("REST does not use this RPC"))
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

/// A response with the rate limit headers of a recognised team.
pub(crate) fn with_limit_headers<Resp>(message: Resp) -> Result<Response<Resp>, Status> {
    let mut response = Response::new(message);
    response.metadata_mut().insert(reason::RATE_LIMIT_POLICY, POLICY.parse().expect("metadata"));
    response.metadata_mut().insert(reason::RATE_LIMIT, STATE.parse().expect("metadata"));
    Ok(response)
}

/// An error with its reason, as the core sends it. All errors after authentication have rate limit headers.
pub(crate) fn error_status(code: ErrorCode, message: &str, retry: Option<Duration>) -> Status {
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

/// A watch stream that sends these revisions and then stays open, ends or fails.
pub(crate) fn watch_stream(revisions: Vec<Grab>, then: impl Stream<Item = Status> + Send + 'static) -> WatchStream {
    use futures::StreamExt;
    let events = futures::stream::iter(revisions).map(|grab| Ok(WatchGrabResponse { grab: Some(grab) }));
    Box::pin(events.chain(then.map(Err)))
}
