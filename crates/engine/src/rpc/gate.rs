//! The gate in front of the public services: who is calling, and may they call again already?
//!
//! It is a layer around the services, so REST, MCP and internal callers all pass the same one.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Credential};
use grabd_proto::credential;
use grabd_proto::origin;
use grabd_proto::reason::{RATE_LIMIT, RATE_LIMIT_POLICY, REQUEST_ID, TRACEPARENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::body::Body;
use tower::{Layer, Service};
use tracing::{Instrument, Span};

use super::limits::Verdict;
use super::status::to_status;
use crate::core::{Core, inside};
use crate::digest;

/// Services that anybody may call. Everything else needs a caller, also what is added later.
const OPEN: [&str; 3] = ["/grabd.v1.PricingService/", "/grpc.health.v1.Health/", "/grpc.reflection."];

/// Calls that need a caller and take nothing from the request rate. Whoever lets somebody make them often counts them.
const UNCOUNTED: [&str; 1] = ["/grabd.v1.AccessService/Authenticate"];

/// Puts the gate in front of services.
#[derive(Clone)]
pub struct GateLayer(Core);

/// Services behind the gate.
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
        if OPEN.iter().any(|path| request.uri().path().starts_with(path)) {
            return Box::pin(self.inner.call(request).instrument(span));
        }
        // The clone takes the place of the service that `poll_ready` was asked of.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let core = self.core.clone();
        let answered = async move {
            let admitted = match authenticate(&core, request.headers()).await {
                Ok(caller) if UNCOUNTED.contains(&request.uri().path()) => Ok((caller, None)),
                Ok(caller) => count(&core, caller).map(|verdict| (caller, Some(verdict))),
                Err(fault) => Err((fault, None)),
            };
            let (verdict, mut response) = match admitted {
                Ok((caller, verdict)) => {
                    core.note_use(caller.principal);
                    request.extensions_mut().insert(caller);
                    (verdict, inner.call(request).await?)
                }
                Err((fault, verdict)) => (verdict, to_status(&fault).into_http()),
            };
            if let Some(verdict) = verdict {
                tell(verdict, response.headers_mut());
            }
            Ok(response)
        };
        Box::pin(answered.instrument(span))
    }
}

/// What is logged on behalf of a call stands under its request id and its trace. A face in this process has seen to that.
fn span(headers: &HeaderMap) -> Span {
    let current = Span::current();
    if !current.is_none() {
        return current;
    }
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let request_id = text(REQUEST_ID).and_then(origin::request_id);
    let trace_id = text(TRACEPARENT).and_then(origin::trace_id);
    tracing::info_span!("grpc", request.id = request_id, trace.id = trace_id)
}

type Refusal = (Fault, Option<Verdict>);

async fn authenticate(core: &Core, headers: &HeaderMap) -> Result<Caller, Fault> {
    let credential = credential::bearer(headers).and_then(Credential::parse).ok_or(Fault::Unauthorized)?;
    let known = stands_behind(core, &credential).await;
    known.map_err(inside("authenticate"))?.ok_or(Fault::Unauthorized)
}

/// Who stands behind the credential now: what was revoked a moment ago opens nothing.
async fn stands_behind(core: &Core, credential: &Credential) -> Result<Option<Caller>, grabd_store::Error> {
    match credential {
        Credential::Key(key) => core.store.authenticate(&digest::of(key.expose())).await,
        Credential::Token(token) => core.store.authenticate_token(&digest::of(token.expose()), core.clock.now()).await,
    }
}

fn count(core: &Core, caller: Caller) -> Result<Verdict, Refusal> {
    let verdict = core.limits.check(caller.team, caller.environment);
    verdict.admit(core).map_err(|fault| (fault, Some(verdict)))?;
    Ok(verdict)
}

fn tell(verdict: Verdict, headers: &mut HeaderMap) {
    for (name, value) in [(RATE_LIMIT, verdict.state()), (RATE_LIMIT_POLICY, verdict.policy())] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}
