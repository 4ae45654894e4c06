//! Model Context Protocol server: Streamable HTTP at one path, without sessions, in the modern era of the protocol
//! (2026-07-28) and the legacy one (2025-03-26 to 2025-11-25).
//!
//! `host_origin` checks `Host` and `Origin`, `message` parses JSON-RPC, `era` checks the protocol metadata, `methods`
//! handles the protocol's own requests and `call` runs tools. Each tool is a file in `tools/`. To add a tool, describe
//! it in `tools/tools.json` and add its file; a test fails without it.

mod call;
mod era;
mod host_origin;
mod json_rpc;
mod message;
mod methods;
mod open_calls;
mod preview;
mod progress;
mod tools;

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use grabd_memory::MemoryBudget;
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

use crate::rest::body::{BodyError, BodyErrorKind, LargeBodies};
use crate::rest::call as core_call;
use crate::rest::error::ApiError;
use crate::rest::limits::{self, AddressLimiter};
use crate::rest::{address, headers, request_layer};
use crate::transport::Transport;
use era::Era;
use message::{Incoming, MalformedMessage, RpcRequest};
use open_calls::OpenCalls;
use preview::Previews;

const ALLOWED: &str = "POST, OPTIONS";

/// Settings of the MCP server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Origin at which callers reach the API and images, such as `https://grabd.example`.
    pub public_url: String,
    /// URL of the MCP server, if it is not `/mcp` at that origin.
    pub mcp_url: Option<String>,
    /// The port of the listener, if it accepts connections from this machine only.
    pub loopback_port: Option<u16>,
    /// Origins of other pages whose scripts may call, such as `https://app.example.com`. Other clients send no `Origin`.
    pub allowed_origins: Vec<String>,
    /// Requests per minute and address without a recognised team. At least 1.
    pub requests_per_minute: u32,
    /// Networks of proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Router that serves images at the paths of their public URLs.
    pub images: Router,
    /// The memory for images, shared with the rest of the process.
    pub memory: MemoryBudget,
    /// Tasks that outlive their connection. Shutdown must wait for them; they end within half a minute.
    pub tasks: TaskTracker,
}

/// State shared by all handlers.
struct Mcp {
    transport: Transport,
    /// Origin of images and of the API.
    origin: String,
    host_origin: host_origin::HostOriginPolicy,
    /// URL of the protected resource metadata (RFC 9728), from which clients learn how to get a token.
    metadata_url: String,
    addresses: AddressLimiter,
    trusted_proxies: Vec<IpNet>,
    tools: tools::Tools,
    previews: Previews,
    open_calls: Arc<OpenCalls>,
    large_bodies: LargeBodies,
    tasks: TaskTracker,
}

/// The MCP route. The peer address is taken from the request extension `ConnectInfo<SocketAddr>`.
///
/// # Panics
/// If a URL in the options is invalid. The configuration validates them.
pub fn router(transport: Transport, options: Options) -> Router {
    let Options {
        public_url,
        mcp_url,
        loopback_port,
        allowed_origins,
        requests_per_minute,
        trusted_proxies,
        images,
        memory,
        tasks,
    } = options;
    let origin = public_url.trim_end_matches('/').to_owned();
    let mcp_url = mcp_url.unwrap_or_else(|| format!("{origin}/mcp"));
    let parse = |text: &str| Url::parse(text).expect("the configuration has valid URLs");
    let (own, public) = (parse(&mcp_url), parse(&origin));
    let path = own.path().to_owned();
    let mcp = Arc::new(Mcp {
        transport,
        metadata_url: format!("{}/.well-known/oauth-protected-resource{}", own.origin().ascii_serialization(), path),
        host_origin: host_origin::HostOriginPolicy::new([&own, &public], loopback_port, &allowed_origins),
        addresses: AddressLimiter::new(requests_per_minute),
        trusted_proxies,
        tools: tools::Tools::read(),
        previews: Previews::new(images, memory, tasks.clone()),
        open_calls: Arc::default(),
        large_bodies: LargeBodies::default(),
        tasks,
        origin: origin.clone(),
    });
    let router = Router::new()
        .route(&path, crate::rest::allow_methods(ALLOWED, post(receive)))
        .layer(middleware::from_fn_with_state(Arc::clone(&mcp), limit_by_address))
        .layer(middleware::from_fn_with_state(Arc::clone(&mcp), host_origin::check))
        .with_state(mcp);
    crate::rest::common_headers(router, &origin)
}

/// Handles a message. Errors in the message are only reported to authenticated callers.
async fn receive(State(mcp): State<Arc<Mcp>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if credential::bearer(&parts.headers).is_none() {
        return mcp.challenge(&parts.headers);
    }
    if !era::accepts(&parts.headers, "application/json") {
        let message = "`Accept` must include application/json, and text/event-stream for progress notifications.";
        return mcp.refuse(&parts, StatusCode::NOT_ACCEPTABLE, ErrorCode::INVALID_REQUEST, message.to_owned()).await;
    }
    let bytes = match mcp.large_bodies.read(&parts.headers, body).await {
        Ok(bytes) => bytes,
        Err(BodyError { seen, unread, kind }) => {
            let status = match kind {
                BodyErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
                BodyErrorKind::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
                BodyErrorKind::Missing => StatusCode::BAD_REQUEST,
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
            return mcp.if_authenticated(&parts, json_rpc::malformed(era, &malformed)).await;
        }
    };
    match incoming {
        Incoming::Request(message) => mcp.handle_request(&parts, &message).await,
        Incoming::Notification { method, params } => {
            let response = mcp.if_authenticated(&parts, StatusCode::ACCEPTED.into_response()).await;
            // Modern clients close the connection instead.
            let cancels = method == "notifications/cancelled" && Era::of_headers(&parts.headers) == Era::Legacy;
            if cancels && response.status() == StatusCode::ACCEPTED {
                mcp.open_calls.cancel(&parts.headers, &params);
            }
            response
        }
        Incoming::Response => match Era::of_headers(&parts.headers) {
            Era::Legacy => mcp.if_authenticated(&parts, StatusCode::ACCEPTED.into_response()).await,
            Era::Modern => {
                let message = "This server sends no requests, so it accepts no responses.".to_owned();
                mcp.refuse(&parts, StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, message).await
            }
        },
    }
}

impl Mcp {
    /// Handles a request.
    async fn handle_request(self: Arc<Self>, parts: &Parts, message: &RpcRequest<'_>) -> Response {
        let era = Era::of(&parts.headers, message);
        let error = era.check(&parts.headers, message).err();
        if error.is_none() && message.method == "tools/call" {
            match call::Call::read(&self.tools, message) {
                Ok(call) => return call::run(self, parts, era, message, call).await,
                Err(error) => return self.if_authenticated(parts, json_rpc::error(era, &message.id, &error)).await,
            }
        }
        let response = match error {
            Some(error) => json_rpc::error(era, &message.id, &error),
            None => methods::handle(&self.tools, era, message),
        };
        self.if_authenticated(parts, response).await
    }

    /// Returns `response` if the caller is authenticated, else the error of the core.
    async fn if_authenticated(&self, parts: &Parts, response: Response) -> Response {
        let headers = &parts.headers;
        let mut core = AccessServiceClient::new(self.transport.clone());
        let sent = core_call::request(headers, AuthenticateRequest {}, core_call::QUERY_DEADLINE);
        match core_call::send(headers, core_call::QUERY_DEADLINE, core.authenticate(sent)).await {
            Ok(_) => response,
            Err(failure) => self.http_error(headers, failure),
        }
    }

    /// The response to a body that is not an acceptable message.
    async fn refuse(&self, parts: &Parts, status: StatusCode, code: ErrorCode, message: String) -> Response {
        let malformed = MalformedMessage { id: None, error: ErrorData::new(code, message, None) };
        let mut response = json_rpc::malformed(Era::of_headers(&parts.headers), &malformed);
        *response.status_mut() = status;
        self.if_authenticated(parts, response).await
    }

    /// An error that is sent as an HTTP response without JSON-RPC: authentication failed, or the key lacks a scope.
    fn http_error(&self, request: &HeaderMap, failure: ApiError) -> Response {
        let mut response = failure.into_response();
        match response.status() {
            StatusCode::UNAUTHORIZED => {
                response.headers_mut().insert(WWW_AUTHENTICATE, self.challenge_header(request));
            }
            StatusCode::FORBIDDEN => {
                let challenge = HeaderValue::from_static("Bearer error=\"insufficient_scope\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            _ => {}
        }
        response
    }

    fn challenge(&self, request: &HeaderMap) -> Response {
        self.http_error(
            request,
            ApiError::new(grabd_proto::v1::ErrorCode::Unauthorized, "Missing or invalid Bearer token."),
        )
    }

    /// Value of `WWW-Authenticate`: where to get a token (RFC 9728), and whether the one that was sent is invalid.
    fn challenge_header(&self, request: &HeaderMap) -> HeaderValue {
        let error = match request.contains_key(http::header::AUTHORIZATION) {
            true => "error=\"invalid_token\", ",
            false => "",
        };
        let text = format!("Bearer {error}resource_metadata=\"{}\", scope=\"grabs\"", self.metadata_url);
        HeaderValue::from_str(&text).expect("URLs are visible ASCII")
    }
}

/// Counts requests without a recognised team by address, as REST does, and recovers from panics.
async fn limit_by_address(State(mcp): State<Arc<Mcp>>, request: Request, next: Next) -> Response {
    let request_id = core_call::request_id(request.headers()).clone();
    let client = address::client_address(&request, &mcp.trusted_proxies);
    if credential::bearer(request.headers()).is_none() {
        return match mcp.addresses.take(client) {
            Ok(window) => {
                let mut response = request_layer::catch_panic(next, request, &request_id).await;
                window.write(response.headers_mut());
                response
            }
            Err(window) => limits::rate_limit_error(&window).into_response(),
        };
    }
    let response = request_layer::catch_panic(next, request, &request_id).await;
    match response.status() {
        StatusCode::UNAUTHORIZED => count_unauthenticated(&mcp, client, response),
        _ => response,
    }
}

fn count_unauthenticated(mcp: &Mcp, client: IpAddr, mut response: Response) -> Response {
    match mcp.addresses.take(client) {
        Ok(window) => {
            window.write(response.headers_mut());
            response
        }
        Err(window) => limits::rate_limit_error(&window).into_response(),
    }
}

const PRIVATE_NO_STORE: &str = headers::PRIVATE_NO_STORE;
