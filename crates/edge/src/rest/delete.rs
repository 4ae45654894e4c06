//! `DELETE /v1/grabs/{id}`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{DeleteGrabRequest, ErrorCode};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use utoipa::openapi::path::OperationBuilder;

use super::error::ApiError;
use super::openapi::parts::{self, managing, success_response};
use super::openapi::tags;
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

/// The operation in the OpenAPI document.
pub(super) fn operation() -> OperationBuilder {
    let about = "Permanently deletes the image: its URL stops working at once. The grab stays in the list, with an \
                 `image_url` of null, and its credit stays spent. Repeating the request has no effect. A grab that is \
                 still open runs to its end and then has no image.";
    managing(tags::GRABS, "deleteGrab", "Delete an image", about, &[ErrorCode::NotFound])
        .parameter(parts::id("grab"))
        .response("204", success_response("The image is deleted. No body.", &[]))
}
