//! `/teams/{team}/billing/ledger.csv`: the complete ledger as CSV.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use grabd_domain::Day;
use grabd_domain::permissions::Permission;
use grabd_engine::billing;
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use crate::extract::TeamPage;
use crate::problem::Problem;
use crate::state::Web;

/// Streams the file. If reading fails midway, the response is aborted.
pub(crate) async fn download(State(web): State<Arc<Web>>, TeamPage(at): TeamPage) -> Result<Response, Problem> {
    let name = format!("attachment; filename=\"grabd-ledger-{}.csv\"", Day::of(web.core.now()));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8; header=present")),
        (CONTENT_DISPOSITION, HeaderValue::try_from(name).expect("a day is visible ASCII")),
    ];
    // Which pages were captured is for those who may see captures.
    let with_hosts = at.may(Permission::ViewCaptures);
    let file = billing::ledger_csv(&web.core, at.team_member.team, with_hosts);
    Ok((headers, Body::from_stream(file)).into_response())
}
