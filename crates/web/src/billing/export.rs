//! `/teams/{team}/billing/ledger.csv`: the complete ledger as CSV.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use grabd_domain::Day;
use grabd_engine::billing;
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use crate::Web;
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::session::sign_in_url_for;

/// Streams the file. If reading fails midway, the response is aborted.
pub(crate) async fn download(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(at) = web.team_context(request.headers(), &team).await? else {
        return Ok(see_other(&sign_in_url_for(request.uri())));
    };
    let name = format!("attachment; filename=\"grabd-ledger-{}.csv\"", Day::of(web.core.now()));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8; header=present")),
        (CONTENT_DISPOSITION, HeaderValue::try_from(name).expect("a day is visible ASCII")),
    ];
    let file = billing::ledger_csv(&web.core, at.team_member.team);
    Ok((headers, Body::from_stream(file)).into_response())
}
