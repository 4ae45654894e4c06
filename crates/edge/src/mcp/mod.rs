//! The Model Context Protocol: what agents see. Streamable HTTP at one path, without sessions, in the protocol's modern era
//! (2026-07-28) and in the one before (2025-03-26 to 2025-11-25).
//!
//! `door` looks at where a request comes from, `message` at what it says, `era` at how it wants to be answered; `methods`
//! has the protocol's own requests, `calls` runs a tool, and each tool is a file in `tools/`. To add a tool, describe it in
//! `tools/tools.json` and give it a file; without one a test fails.

mod answer;
mod call;
mod calls;
mod door;
mod era;
mod message;
mod methods;
mod picture;
mod progress;
mod tools;

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use grabd_proto::credential;
use grabd_proto::v1::AuthenticateRequest;
use grabd_proto::v1::access_service_client::AccessServiceClient;
use http::header::{CONNECTION, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use ipnet::IpNet;
use rmcp::model::{ErrorCode, ErrorData};
use tokio_util::task::TaskTracker;
use url::Url;

use crate::rest::body::{self, Refused, Why};
use crate::rest::call as core_call;
use crate::rest::error::Failure;
use crate::rest::limits::{self, Addresses};
use crate::rest::{address, frame, headers};
use crate::transport::Transport;
use calls::Calls;
use era::Era;
use message::{Incoming, Malformed, Message};
use picture::Pictures;

/// Largest message in bytes.
const LIMIT_BYTES: usize = 1 << 20;
const ALLOWED: &str = "POST, OPTIONS";

/// What the face needs to know of the deployment.
#[derive(Clone, Debug)]
pub struct Options {
    /// Origin under which callers reach the API and images, such as `https://grabd.example`.
    pub public_url: String,
    /// The address of this face, when it is not `/mcp` at that origin.
    pub mcp_url: Option<String>,
    /// Origins of pages whose scripts may call, such as `https://app.example.com`. Callers that are no pages send none.
    pub allowed_origins: Vec<String>,
    /// Requests per minute and address, over all requests that no team is recognised in. At least 1.
    pub requests_per_minute: u32,
    /// Networks of proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Who serves images under their public addresses.
    pub images: Router,
    /// Where work is kept that outlives its connection. Whoever shuts down waits for it; it is over within half a minute.
    pub tasks: TaskTracker,
}

/// What every request shares.
struct Mcp {
    transport: Transport,
    /// Origin of images and of the API.
    origin: String,
    door: door::Door,
    /// Where a client learns how to get a token.
    metadata_url: String,
    addresses: Addresses,
    trusted_proxies: Vec<IpNet>,
    tools: tools::Tools,
    pictures: Pictures,
    calls: Arc<Calls>,
    tasks: TaskTracker,
}

/// The one route. The peer's address is taken from the request extension `ConnectInfo<SocketAddr>`.
///
/// # Panics
/// When one of the addresses in the options is none, which the configuration has seen to.
pub fn router(transport: Transport, options: Options) -> Router {
    let Options { public_url, mcp_url, allowed_origins, requests_per_minute, trusted_proxies, images, tasks } = options;
    let origin = public_url.trim_end_matches('/').to_owned();
    let mcp_url = mcp_url.unwrap_or_else(|| format!("{origin}/mcp"));
    let parse = |text: &str| Url::parse(text).expect("the configuration holds addresses");
    let (own, public) = (parse(&mcp_url), parse(&origin));
    let path = own.path().to_owned();
    let mcp = Arc::new(Mcp {
        transport,
        metadata_url: format!("{}/.well-known/oauth-protected-resource{}", own.origin().ascii_serialization(), path),
        door: door::Door::new([&own, &public], &allowed_origins),
        addresses: Addresses::new(requests_per_minute),
        trusted_proxies,
        tools: tools::Tools::read(),
        pictures: Pictures::new(images, tasks.clone()),
        calls: Arc::default(),
        tasks,
        origin: origin.clone(),
    });
    let router = Router::new()
        .route(&path, crate::rest::only(ALLOWED, post(receive)))
        .layer(middleware::from_fn_with_state(Arc::clone(&mcp), count))
        .layer(middleware::from_fn_with_state(Arc::clone(&mcp), door::pass))
        .with_state(mcp);
    crate::rest::manners(router, &origin)
}

/// Reads a message and answers it. Whatever is wrong with it is told only to those whose credential is right.
async fn receive(State(mcp): State<Arc<Mcp>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if credential::bearer(&parts.headers).is_none() {
        return mcp.challenge(&parts.headers);
    }
    if !era::accepts(&parts.headers, "application/json") {
        let message = "`Accept` must name application/json, and text/event-stream for progress on the way.";
        return mcp.refuse(&parts, StatusCode::NOT_ACCEPTABLE, ErrorCode::INVALID_REQUEST, message.to_owned()).await;
    }
    let bytes = match body::read(&parts.headers, body, LIMIT_BYTES).await {
        Ok(bytes) => bytes,
        Err(Refused { seen, unread, why }) => {
            let status = match why {
                Why::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
                Why::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
                Why::Missing => StatusCode::BAD_REQUEST,
            };
            let message = format!("The body must be one JSON-RPC message; got {seen}.");
            let mut response = mcp.refuse(&parts, status, ErrorCode::INVALID_REQUEST, message).await;
            if unread && parts.version < Version::HTTP_2 {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            return response;
        }
    };
    let incoming = match message::read(&bytes) {
        Ok(incoming) => incoming,
        Err(malformed) => {
            let era = Era::of_headers(&parts.headers);
            return mcp.known(&parts, answer::malformed(era, &malformed)).await;
        }
    };
    match incoming {
        Incoming::Request(message) => mcp.answer(&parts, &message).await,
        Incoming::Notification { method, params } => {
            let response = mcp.known(&parts, StatusCode::ACCEPTED.into_response()).await;
            // A modern client closes the connection instead.
            let cancels = method == "notifications/cancelled" && Era::of_headers(&parts.headers) == Era::Legacy;
            if cancels && response.status() == StatusCode::ACCEPTED {
                mcp.calls.cancel(&parts.headers, &params);
            }
            response
        }
        Incoming::Response => match Era::of_headers(&parts.headers) {
            Era::Legacy => mcp.known(&parts, StatusCode::ACCEPTED.into_response()).await,
            Era::Modern => {
                let message = "Nothing was asked of the client, so there is nothing to respond to.".to_owned();
                mcp.refuse(&parts, StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, message).await
            }
        },
    }
}

impl Mcp {
    /// Answers a request in the way of its era.
    async fn answer(self: Arc<Self>, parts: &Parts, message: &Message<'_>) -> Response {
        let era = Era::of(&parts.headers, message);
        let wrong = era.check(&parts.headers, message).err();
        if wrong.is_none() && message.method == "tools/call" {
            match call::Call::read(&self.tools, message) {
                Ok(call) => return call::run(self, parts, era, message, call).await,
                Err(error) => return self.known(parts, answer::error(era, &message.id, &error)).await,
            }
        }
        let answered = match wrong {
            Some(error) => answer::error(era, &message.id, &error),
            None => methods::answer(&self.tools, era, message),
        };
        self.known(parts, answered).await
    }

    /// The answer, if the core knows who asks; else what it says instead.
    async fn known(&self, parts: &Parts, answer: Response) -> Response {
        let headers = &parts.headers;
        let mut core = AccessServiceClient::new(self.transport.clone());
        let sent = core_call::request(headers, AuthenticateRequest {}, core_call::PROMPT);
        match core_call::answer(headers, core_call::PROMPT, core.authenticate(sent)).await {
            Ok(_) => answer,
            Err(failure) => self.failed(headers, failure),
        }
    }

    /// A message that cannot be answered, because it is none or of the wrong kind.
    async fn refuse(&self, parts: &Parts, status: StatusCode, code: ErrorCode, message: String) -> Response {
        let malformed = Malformed { id: None, error: ErrorData::new(code, message, None) };
        let mut response = answer::malformed(Era::of_headers(&parts.headers), &malformed);
        *response.status_mut() = status;
        self.known(parts, response).await
    }

    /// A failure of which no message of the protocol tells: the caller is not known, or the core cannot say.
    fn failed(&self, request: &HeaderMap, failure: Failure) -> Response {
        let mut response = failure.into_response();
        if response.status() == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, self.challenge_of(request));
        }
        response
    }

    fn challenge(&self, request: &HeaderMap) -> Response {
        self.failed(request, Failure::new(grabd_proto::v1::ErrorCode::Unauthorized, "Missing or invalid Bearer token."))
    }

    /// Where to get a token (RFC 9728), and whether the one that was sent is of no use.
    fn challenge_of(&self, request: &HeaderMap) -> HeaderValue {
        let error = match request.contains_key(http::header::AUTHORIZATION) {
            true => "error=\"invalid_token\", ",
            false => "",
        };
        let text = format!("Bearer {error}resource_metadata=\"{}\", scope=\"grabs\"", self.metadata_url);
        HeaderValue::from_str(&text).expect("addresses are visible ASCII")
    }
}

/// Counts requests in which the core recognises no team per address, as REST does. No panic gets out.
async fn count(State(mcp): State<Arc<Mcp>>, request: Request, next: Next) -> Response {
    let request_id = core_call::request_id(request.headers()).clone();
    let client = address::of_client(&request, &mcp.trusted_proxies);
    if credential::bearer(request.headers()).is_none() {
        return match mcp.addresses.take(client) {
            Ok(window) => {
                let mut response = frame::run(next, request, &request_id).await;
                window.write(response.headers_mut());
                response
            }
            Err(window) => limits::refusal(&window).into_response(),
        };
    }
    let response = frame::run(next, request, &request_id).await;
    match response.status() {
        StatusCode::UNAUTHORIZED => count_stranger(&mcp, client, response),
        _ => response,
    }
}

fn count_stranger(mcp: &Mcp, client: IpAddr, mut response: Response) -> Response {
    match mcp.addresses.take(client) {
        Ok(window) => {
            window.write(response.headers_mut());
            response
        }
        Err(window) => limits::refusal(&window).into_response(),
    }
}

/// For answers about one team that change at any time.
const PRIVATE: &str = headers::PRIVATE;
