//! `/teams/{team}/grabs/new`: the captures that were made since the gallery was opened, for the script of the gallery.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::Fault;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::GrabId;
use grabd_engine::Error;
use grabd_engine::grabs::{self, ListRequest};
use http::StatusCode;

use super::card::{Card, NewCards};
use super::query::ListQuery;
use crate::extract::{QueryForm, TeamPart};
use crate::page::page;
use crate::problem::Problem;
use crate::state::Web;

/// The query parameter with the id of the newest grab that the gallery shows.
const SINCE: &str = "since";
/// New grabs that are inserted at a time. If there are more, the gallery is loaded again.
const MAX_NEW: i64 = 24;

/// Sends the cards, newest first. Without `since`, the gallery was empty. The filters are those of the gallery.
///
/// A gallery asks every few seconds, so this counts only against the limit for parts of pages.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPart(at): TeamPart,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let filters = ListQuery::of(&query)?;
    let since = match query.get(SINCE) {
        "" => None,
        // Malformed ids are reported as those of another team.
        id => Some(id.parse::<GrabId>().map_err(|_| unknown())?.to_string()),
    };
    let ListQuery { status, key, .. } = filters;
    let request = ListRequest { limit: Some(MAX_NEW), status, key, ending_before: since, ..ListRequest::default() };
    let caller = at.team_member.uncounted_caller(filters.environment.unwrap_or(Environment::Live));
    let listed = match grabs::list(&web.core, caller, &request).await.map_err(Error::into_fault) {
        Ok(listed) => listed,
        Err(Fault::BadRequest(_)) => return Err(unknown()),
        Err(fault) => return Err(fault.into()),
    };
    let cards = listed.grabs.iter().map(|grab| Card::of(grab, &at)).collect();
    Ok(page(StatusCode::OK, &NewCards { cards, has_more: listed.has_more }))
}

fn unknown() -> Problem {
    Problem::not_found("This team has no such capture.")
}
