//! `DELETE /v1/grabs/{id}`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_proto::v1::DeleteGrabRequest;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use super::error::ApiError;
use super::path_id::id;
use super::state::Edge;
use super::{call, headers};

/// Deletes a grab's image. The request body is ignored.
pub(super) async fn delete(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let headers = request.headers();
    let mut core = GrabServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, DeleteGrabRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.delete_grab(sent)).await?;
    let mut response =
        headers::response(StatusCode::NO_CONTENT, headers::PRIVATE_NO_STORE, Body::empty(), &reply.metadata);
    response.headers_mut().remove(CONTENT_TYPE);
    Ok(response)
}
