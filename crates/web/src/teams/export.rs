//! `/teams/{team}/export`: all data of a team as JSON lines, for its owners.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use grabd_domain::Day;
use grabd_engine::export;
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use crate::extract::MyTeamPage;
use crate::problem::Problem;
use crate::state::Web;

/// Streams the file. If reading fails midway, the response is aborted.
pub(crate) async fn download(
    State(web): State<Arc<Web>>,
    MyTeamPage { team, .. }: MyTeamPage,
) -> Result<Response, Problem> {
    let name = format!("attachment; filename=\"grabd-team-{}.jsonl\"", Day::of(web.core.now()));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/jsonl; charset=utf-8")),
        (CONTENT_DISPOSITION, HeaderValue::try_from(name).expect("a day is visible ASCII")),
    ];
    let file = export::team_export(&web.core, team.team).await.map_err(Problem::no_archive)?;
    Ok((headers, Body::from_stream(file)).into_response())
}
