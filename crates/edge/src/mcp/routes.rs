//! The route, its settings, and the middleware before it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use grabd_http::client_address;
use grabd_limiters::{AddressLimiter, EndSiteQuota};
use grabd_memory::MemoryBudget;
use grabd_proto::credential;
use http::StatusCode;
use ipnet::IpNet;
use tokio_util::task::TaskTracker;
use url::Url;

use super::host_origin::{self, HostOriginPolicy};
use super::preview::Previews;
use super::receive::receive;
use super::state::Mcp;
use super::tools::Tools;
use crate::reading::Reader;
use crate::rest::error::ApiError;
use crate::rest::large_body::LargeBodies;
use crate::rest::{allow_methods, call, common_headers, rate_limit_headers, request_layer};
use crate::transport::Transport;

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
    /// Origins of other pages whose scripts may call, such as `https://app.example.com`. Other clients send no
    /// `Origin`.
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
    let host_origin = Arc::new(HostOriginPolicy::new([&own, &public], loopback_port, &allowed_origins));
    let mcp = Arc::new(Mcp {
        large_bodies: LargeBodies::new(transport.clone()),
        transport,
        metadata_url: format!("{}/.well-known/oauth-protected-resource{}", own.origin().ascii_serialization(), path),
        addresses: AddressLimiter::per_minute(requests_per_minute, EndSiteQuota::USUAL),
        trusted_proxies,
        tools: Tools::read(),
        reader: Reader::new(images.clone(), memory.clone(), &origin),
        previews: Previews::new(images, memory, tasks.clone()),
        open_calls: Arc::default(),
        tasks,
        origin: origin.clone(),
    });
    let router = Router::new()
        .route(&path, allow_methods(ALLOWED, post(receive)))
        .layer(middleware::from_fn_with_state(Arc::clone(&mcp), limit_by_address))
        .layer(middleware::from_fn_with_state(host_origin, host_origin::check))
        .with_state(mcp);
    common_headers(router, &origin)
}

/// Counts requests without a recognised team by address, as REST does, and recovers from panics.
async fn limit_by_address(State(mcp): State<Arc<Mcp>>, request: Request, next: Next) -> Response {
    let request_id = call::request_id(request.headers()).clone();
    let client = client_address(&request, &mcp.trusted_proxies);
    if credential::bearer(request.headers()).is_none() {
        return match mcp.addresses.take(client) {
            Ok(window) => {
                let mut response = request_layer::catch_panic(next, request, &request_id).await;
                rate_limit_headers::write(&window, response.headers_mut());
                response
            }
            Err(window) => ApiError::rate_limit_exceeded(&window).into_response(),
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
            rate_limit_headers::write(&window, response.headers_mut());
            response
        }
        Err(window) => ApiError::rate_limit_exceeded(&window).into_response(),
    }
}
