//! The state that all handlers share, and the errors of callers that are not authenticated.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use grabd_limiters::AddressLimiter;
use grabd_proto::v1::access_service_client::AccessServiceClient;
use grabd_proto::v1::{AuthenticateRequest, ErrorCode};
use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use ipnet::IpNet;
use tokio_util::task::TaskTracker;

use super::open_calls::OpenCalls;
use super::preview::Previews;
use super::tools::Tools;
use crate::reading::Reader;
use crate::rest::call;
use crate::rest::challenges::{FIRST_SCOPE, add_metadata};
use crate::rest::error::ApiError;
use crate::rest::large_body::LargeBodies;
use crate::transport::Transport;

/// State shared by all handlers.
pub(super) struct Mcp {
    pub(super) transport: Transport,
    /// Origin of images and of the API.
    pub(super) origin: String,
    /// URL of the protected resource metadata (RFC 9728), from which clients learn how to get a token.
    pub(super) metadata_url: String,
    pub(super) addresses: AddressLimiter,
    pub(super) trusted_proxies: Vec<IpNet>,
    pub(super) tools: Tools,
    pub(super) previews: Previews,
    pub(super) reader: Reader,
    pub(super) open_calls: Arc<OpenCalls>,
    pub(super) large_bodies: LargeBodies,
    pub(super) tasks: TaskTracker,
}

impl Mcp {
    /// Returns `response` if the caller is authenticated, else the error of the core.
    pub(super) async fn if_authenticated(&self, parts: &Parts, response: Response) -> Response {
        let headers = &parts.headers;
        let mut core = AccessServiceClient::new(self.transport.clone());
        let sent = call::request(headers, AuthenticateRequest { with_account: false }, call::QUERY_DEADLINE);
        match call::send(headers, call::QUERY_DEADLINE, core.authenticate(sent)).await {
            Ok(_) => response,
            Err(failure) => self.http_error(headers, failure),
        }
    }

    /// An error that is sent as an HTTP response without JSON-RPC: authentication failed, or the credential lacks a scope.
    pub(super) fn http_error(&self, request: &HeaderMap, failure: ApiError) -> Response {
        let mut response = failure.into_response();
        match response.status() {
            StatusCode::UNAUTHORIZED => {
                response.headers_mut().insert(WWW_AUTHENTICATE, self.challenge_header(request));
            }
            StatusCode::FORBIDDEN => add_metadata(&mut response, &self.metadata()),
            _ => {}
        }
        response
    }

    /// The response to a request without a token.
    pub(super) fn challenge(&self, request: &HeaderMap) -> Response {
        self.http_error(request, ApiError::new(ErrorCode::Unauthorized, "Missing or invalid Bearer token."))
    }

    /// Value of `WWW-Authenticate`: where to get a token (RFC 9728), and whether the one that was sent is invalid.
    fn challenge_header(&self, request: &HeaderMap) -> HeaderValue {
        let error = match request.contains_key(http::header::AUTHORIZATION) {
            true => "error=\"invalid_token\", ",
            false => "",
        };
        let text = format!("Bearer {error}{}, scope=\"{FIRST_SCOPE}\"", self.metadata());
        HeaderValue::from_str(&text).expect("URLs are visible ASCII")
    }

    /// The parameter of challenges that names the protected resource metadata (RFC 9728 section 5.1).
    fn metadata(&self) -> String {
        format!("resource_metadata=\"{}\"", self.metadata_url)
    }
}
