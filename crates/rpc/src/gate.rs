//! The gate: a tower layer around the public services that authenticates callers, enforces the request rate, checks
//! the scopes of API keys and access tokens, and records what it has answered.
//!
//! REST, MCP and internal callers all pass the same gate.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Credential};
use grabd_engine::accounts::{self, Access, RateLimitDecision};
use grabd_engine::{Core, Error};
use grabd_proto::correlation;
use grabd_proto::credential;
use grabd_proto::reason::{RATE_LIMIT, RATE_LIMIT_POLICY, REQUEST_ID, TRACEPARENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tower::{Layer, Service};
use tracing::{Instrument, Span};

use crate::call_log::CallLog;
use crate::scopes;
use crate::status::to_status;

/// Services that need no authentication here. All others do, including ones added later. The link service verifies the
/// signatures of links, and counts its requests.
const UNAUTHENTICATED: [&str; 4] =
    ["/grabd.v1.PricingService/", "/grabd.v1.LinkService/", "/grpc.health.v1.Health/", "/grpc.reflection."];

/// Authenticated calls that do not count against the request rate. Services that make them on behalf of callers must
/// limit them.
const UNCOUNTED: [&str; 1] = ["/grabd.v1.AccessService/Authenticate"];

/// The calls that wait for grabs, which have limits of their own.
const WAITS: [&str; 2] = ["/grabd.v1.GrabService/WatchGrab", "/grabd.v1.GrabService/WatchGrabs"];

/// The calls that may add to the queue of a team.
const CREATES: [&str; 2] = ["/grabd.v1.GrabService/CreateGrab", "/grabd.v1.GrabService/BatchCreateGrabs"];

/// Layer that adds the gate to a service.
#[derive(Clone)]
pub struct GateLayer(Core);

/// A service behind the gate.
#[derive(Clone)]
pub struct Gate<S> {
    inner: S,
    core: Core,
}

impl GateLayer {
    pub(crate) fn new(core: Core) -> Self {
        Self(core)
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate { inner, core: self.0.clone() }
    }
}

impl<S> Service<http::Request<Body>> for Gate<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let span = span(request.headers());
        if UNAUTHENTICATED.iter().any(|path| request.uri().path().starts_with(path)) {
            return Box::pin(self.inner.call(request).instrument(span));
        }
        // Use the service that `poll_ready` was called on, and keep the clone.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let core = self.core.clone();
        let response = async move {
            let log = CallLog::begin(&core, request.headers(), request.uri().path());
            let mut known = None;
            let admitted = match authenticate(&core, request.headers()).await {
                Ok(access) => {
                    known = Some(access.caller);
                    request.extensions_mut().insert(access.scopes);
                    request.extensions_mut().insert(log.notes.clone());
                    admit(&core, access, request.uri().path()).await
                }
                Err(fault) => Err((fault, None)),
            };
            let (decision, mut response) = match admitted {
                Ok((caller, decision)) => {
                    accounts::record_use(&core, caller);
                    request.extensions_mut().insert(caller);
                    (decision, inner.call(request).await?)
                }
                Err((fault, decision)) => (decision, to_status(fault).into_http()),
            };
            // A batch counts its further requests itself, and reports the state after them.
            if let Some(decision) = decision.filter(|_| !response.headers().contains_key(RATE_LIMIT)) {
                add_headers(decision, response.headers_mut());
            }
            // A call with an unknown credential is of no team.
            if let Some(caller) = known {
                log.end(&core, caller, response.headers());
            }
            Ok(response)
        };
        Box::pin(response.instrument(span))
    }
}

/// The span of a call, with its request id and trace id. Interfaces in this process have created it already.
fn span(headers: &HeaderMap) -> Span {
    let current = Span::current();
    if !current.is_none() {
        return current;
    }
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let request_id = text(REQUEST_ID).and_then(correlation::request_id);
    let trace_id = text(TRACEPARENT).and_then(correlation::trace_id);
    tracing::info_span!("grpc", request.id = request_id, trace.id = trace_id)
}

pub(crate) type Rejection = (Fault, Option<RateLimitDecision>);

/// Counts the call against the request rate, and then checks the scope: refused calls cost the service as much.
async fn admit(core: &Core, access: Access, path: &str) -> Result<(Caller, Option<RateLimitDecision>), Rejection> {
    let Access { caller, .. } = access;
    let decision = match path {
        path if UNCOUNTED.contains(&path) => None,
        path if WAITS.contains(&path) => {
            let begun = accounts::begin_wait(core, caller).await;
            Some(begun.map_err(|(fault, decision)| (fault, Some(decision)))?)
        }
        // The edge reports the limit of the queue with creates. It knows only the setting.
        path if CREATES.contains(&path) => {
            let named =
                |decision| RateLimitDecision { async_queue: accounts::own_async_queue(core, caller), ..decision };
            let checked = check_rate_limit(core, caller).await;
            let checked = checked.map_err(|(fault, decision)| (fault, decision.map(named)))?;
            Some(named(checked))
        }
        _ => Some(check_rate_limit(core, caller).await?),
    };
    scopes::check(path, access).map_err(|fault| (fault, decision))?;
    Ok((caller, decision))
}

async fn authenticate(core: &Core, headers: &HeaderMap) -> Result<Access, Fault> {
    let credential = credential::bearer(headers).and_then(Credential::parse).ok_or(Fault::Unauthorized)?;
    accounts::authenticate(core, &credential).await.map_err(Error::into_fault)
}

/// Counts a request of the caller.
///
/// # Errors
/// [`Fault::RateLimitExceeded`].
pub(crate) async fn check_rate_limit(core: &Core, caller: Caller) -> Result<RateLimitDecision, Rejection> {
    accounts::take_request(core, caller).await.map_err(|(fault, decision)| (fault, Some(decision)))
}

/// Adds the state of the rate limit to the metadata of a response or of an error, if a request was counted.
pub(crate) fn add_limit(decision: Option<RateLimitDecision>, metadata: &mut MetadataMap) {
    let Some(decision) = decision else { return };
    let mut headers = std::mem::take(metadata).into_headers();
    add_headers(decision, &mut headers);
    *metadata = MetadataMap::from_headers(headers);
}

/// Adds the state of the rate limit to the metadata of a response.
pub(crate) fn add_headers(decision: RateLimitDecision, headers: &mut HeaderMap) {
    for (name, value) in [(RATE_LIMIT, decision.state()), (RATE_LIMIT_POLICY, decision.policy())] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}
