//! Reads a message and handles it.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use grabd_proto::credential;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use rmcp::model::{ErrorCode, ErrorData};

use super::era::{self, Era};
use super::message::{self, Incoming, MalformedMessage, RpcRequest};
use super::state::Mcp;
use super::{call, json_rpc, methods, resources};
use crate::rest::body::{BodyError, BodyErrorKind};
use crate::rest::large_body::LargeBodyError;

/// Handles a message. Errors in the message are only reported to authenticated callers.
pub(super) async fn receive(State(mcp): State<Arc<Mcp>>, request: Request) -> Response {
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
        Err(LargeBodyError::Refused(error)) => return mcp.http_error(&parts.headers, error),
        Err(LargeBodyError::Body(BodyError { seen, kind })) => {
            let status = match kind {
                BodyErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
                BodyErrorKind::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
                BodyErrorKind::Missing => StatusCode::BAD_REQUEST,
            };
            let message = format!("The body must be one JSON-RPC message; got {seen}.");
            return mcp.refuse(&parts, status, ErrorCode::INVALID_REQUEST, message).await;
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
        if error.is_none() && message.method == "resources/read" {
            return resources::read(&self, parts, era, message).await;
        }
        let none = HeaderMap::new();
        let response = match (error, message.method.as_str()) {
            (Some(error), _) => json_rpc::error(era, &message.id, &error),
            (None, "resources/list") => json_rpc::result(&message.id, resources::list(era), &none),
            (None, "resources/templates/list") => json_rpc::result(&message.id, resources::templates(era), &none),
            (None, _) => methods::handle(&self.tools, era, message),
        };
        self.if_authenticated(parts, response).await
    }

    /// The response to a body that is not an acceptable message.
    async fn refuse(&self, parts: &Parts, status: StatusCode, code: ErrorCode, message: String) -> Response {
        let malformed = MalformedMessage { id: None, error: ErrorData::new(code, message, None) };
        let mut response = json_rpc::malformed(Era::of_headers(&parts.headers), &malformed);
        *response.status_mut() = status;
        self.if_authenticated(parts, response).await
    }
}
