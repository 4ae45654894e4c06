//! `/teams/{team}/monitors/{monitor}/history.zip`: the runs of a monitor and their images, as a zip archive.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use grabd_engine::monitors;
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use crate::extract::TeamPage;
use crate::problem::Problem;
use crate::state::Web;

/// Streams the archive. If an image cannot be read midway, the response is aborted.
pub(crate) async fn download(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, monitor)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (monitor, caller) = at.find_monitor_counted(&web, &monitor).await?;
    let archive = monitors::history(&web.core, caller, monitor.id).await?;
    let name = format!("attachment; filename=\"monitor-{}.zip\"", monitor.id);
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/zip")),
        (CONTENT_DISPOSITION, HeaderValue::try_from(name).expect("an id is visible ASCII")),
    ];
    Ok((headers, Body::from_stream(archive)).into_response())
}
