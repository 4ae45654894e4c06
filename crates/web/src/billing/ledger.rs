//! `/teams/{team}/billing/ledger`: all ledger entries, newest first.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::billing;
use http::StatusCode;

use super::HERE;
use super::entries::Row;
use crate::extract::{QueryForm, TeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

/// Entries per page.
const PAGE: u32 = 50;
/// The query parameter of the pagination: an entry id; the page has older entries.
const BEFORE: &str = "before";

#[derive(Template)]
#[template(path = "ledger.html")]
struct LedgerPage<'a> {
    layout: Layout,
    team_name: &'a str,
    path: String,
    is_first: bool,
    entries: Vec<Row>,
    older: Option<String>,
}

/// Shows a page of the ledger.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let before = match query.get(BEFORE) {
        "" => None,
        entry => Some(entry.parse::<i64>().map_err(|_| no_such_place())?),
    };
    let billing::LedgerPage { entries, before: next } =
        billing::ledger(&web.core, at.team_member.team, before, PAGE).await?;
    let path = at.path(HERE);
    let template = LedgerPage {
        layout: web.team_layout(&at, HERE),
        team_name: &at.team_member.team_name,
        is_first: before.is_none(),
        entries: entries.into_iter().map(|entry| Row::of(entry, &at)).collect(),
        older: next.map(|next| format!("{path}/ledger?{BEFORE}={next}")),
        path,
    };
    Ok(page(StatusCode::OK, &template))
}

fn no_such_place() -> Problem {
    Problem::bad_request(
        "Invalid page link",
        "The link refers to an unknown ledger entry.",
        "Go back to the first page.",
    )
}
