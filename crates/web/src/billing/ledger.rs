//! `/teams/{team}/billing/ledger`: everything that has come and gone, the newest first.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_engine::billing;
use http::StatusCode;

use super::entries::Row;
use super::{HERE, frame};
use crate::Web;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::sign_in_first_at;

/// Entries on a page.
const PAGE: u32 = 50;
/// The field of the query that names the entry before which a page begins.
const BEFORE: &str = "before";

#[derive(Template)]
#[template(path = "ledger.html")]
struct LedgerPage<'a> {
    frame: Frame,
    team_name: &'a str,
    path: String,
    is_first: bool,
    entries: Vec<Row>,
    older: Option<String>,
}

/// A page of it.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(at) = web.at_team(request.headers(), &team).await? else {
        return Ok(see_other(&sign_in_first_at(request.uri())));
    };
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let before = match query.one(BEFORE) {
        "" => None,
        entry => Some(entry.parse::<i64>().map_err(|_| no_such_place())?),
    };
    let billing::LedgerPage { entries, before: next } =
        billing::ledger(&web.core, at.insider.team, before, PAGE).await?;
    let path = at.path(HERE);
    let template = LedgerPage {
        frame: frame(&web, &at),
        team_name: &at.insider.team_name,
        is_first: before.is_none(),
        entries: entries.into_iter().map(|entry| Row::of(entry, &at)).collect(),
        older: next.map(|next| format!("{path}/ledger?{BEFORE}={next}")),
        path,
    };
    Ok(page(StatusCode::OK, &template))
}

fn no_such_place() -> Problem {
    Problem::bad_request(
        "There is no such place in the ledger",
        "The address names an entry that there cannot be.",
        "Begin at the newest one.",
    )
}
