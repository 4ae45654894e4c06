//! `GET /v1/grabs?ids=…` with `Prefer: wait=N`: waits until all of these grabs have ended.

use std::collections::HashMap;
use std::time::Duration;

use axum::response::Response;
use grabd_api::GrabList;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{Grab, WatchGrabsRequest};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::{Instant, timeout_at};
use tonic::Code;

use super::call::{self, CoreResponse};
use super::error::ApiError;
use super::fetch::WAIT_MAX_S;
use super::state::Edge;
use super::{headers, wire};

/// Waits at most `seconds` until all have ended, and returns their current states in the order of the ids.
pub(super) async fn wait(
    edge: &Edge,
    headers: &HeaderMap,
    ids: Vec<String>,
    seconds: u64,
) -> Result<Response, ApiError> {
    let seconds = seconds.min(WAIT_MAX_S);
    let wait = Duration::from_secs(seconds);
    let deadline = Instant::now() + wait;
    let mut core = GrabServiceClient::new(edge.transport.clone());
    let request = WatchGrabsRequest { ids: ids.clone() };
    let sent = call::request(headers, request, wait + call::QUERY_DEADLINE);
    let CoreResponse { message: mut stream, metadata } =
        call::send(headers, call::QUERY_DEADLINE, core.watch_grabs(sent)).await?;
    let mut latest: HashMap<String, Grab> = HashMap::new();
    loop {
        match timeout_at(deadline, stream.message()).await {
            Err(_) | Ok(Ok(None)) => break,
            Ok(Ok(Some(response))) => {
                let grab = response.grab.ok_or_else(|| incomplete(headers))?;
                latest.insert(grab.id.clone(), grab);
            }
            // A draining core ends its streams. What is known is still a valid response.
            Ok(Err(status)) if status.code() == Code::Unavailable && !latest.is_empty() => break,
            Ok(Err(status)) => return Err(ApiError::from_status(&status, headers)),
        }
    }
    // Ids are written in different ways, and each grab is returned once.
    let known = ids.iter().filter_map(|id| latest.remove(&id.to_ascii_lowercase()));
    let grabs: Vec<Grab> = known.collect();
    let data: Option<Vec<_>> = grabs.iter().map(wire::grab).collect();
    let page = GrabList { data: data.ok_or_else(|| incomplete(headers))?, has_more: false, next: None };
    let mut response = headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &page, &metadata);
    let applied = HeaderValue::from_str(&format!("wait={seconds}")).expect("digits are visible ASCII");
    response.headers_mut().insert(headers::PREFERENCE_APPLIED, applied);
    Ok(response)
}

fn incomplete(headers: &HeaderMap) -> ApiError {
    ApiError::internal("the core returned an incomplete grab", call::request_id(headers))
}
