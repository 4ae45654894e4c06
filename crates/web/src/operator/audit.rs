//! `/operator/audit`: the audit trail in sentences, newest first, and the same as CSV.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_domain::Day;
use grabd_engine::operator::{self, AuditSearch, AuditSearchOutcome, MAX_FILTER_TEAMS};
use grabd_engine::trail::{AuditAction, MAX_EXPORTED, TrailPage};
use http::StatusCode;

use super::navigation::{AUDIT, AUDIT_CSV};
use crate::extract::OperatorContext;
use crate::form::{FieldError, Form};
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::trail::{
    AFTER, Choice, Columns, EntryRow, Reader, action_choices, csv_response, parse_action, parse_after, parse_day,
};

/// The query parameter with the team.
pub(super) const TEAM: &str = "team";
/// The query parameter with who made the change.
const ACTOR: &str = "by";
/// Longest text of a filter, in characters.
const MAX_CHARS: usize = 254;

#[derive(Template)]
#[template(path = "operator_audit.html")]
struct AuditPage<'a> {
    layout: Layout,
    errors: &'a [FieldError],
    team: &'a str,
    team_error: Option<String>,
    actor: &'a str,
    actor_error: Option<String>,
    actions: Vec<Choice>,
    action_error: Option<String>,
    day: &'a str,
    day_error: Option<String>,
    /// Whether a filter is set.
    is_filtered: bool,
    entries: Vec<EntryRow>,
    is_first: bool,
    newest: String,
    older: Option<String>,
    export: String,
    max_exported: String,
}

/// Shows the list.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    at: OperatorContext,
    request: Request,
) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let before = parse_after(&query)?;
    let (search, mut errors) = parse(&query);
    let mut listed = TrailPage { entries: Vec::new(), next: None };
    if errors.is_empty() {
        match operator::list_audit(&web.core, &at.operator, &search, before).await? {
            AuditSearchOutcome::Found(found) => listed = found,
            AuditSearchOutcome::UnknownActor => errors.push(unknown_actor()),
            AuditSearchOutcome::TooManyTeams => errors.push(too_many_teams()),
        }
    }
    let message = |field: &str| errors.iter().find(|error| error.field == field).map(|error| error.message.clone());
    let link = |after: Option<i64>| path(AUDIT, &query, after);
    let template = AuditPage {
        layout: at.layout(&web, AUDIT),
        team: &search.team,
        team_error: message(TEAM),
        actor: &search.actor,
        actor_error: message(ACTOR),
        actions: action_choices(AuditAction::ALL.into_iter(), search.action),
        action_error: message("action"),
        day: query.get("day"),
        day_error: message("day"),
        is_filtered: link(None) != AUDIT,
        entries: listed.entries.into_iter().map(|named| EntryRow::of(named, Reader::Operator)).collect(),
        is_first: before.is_none(),
        newest: link(None),
        older: listed.next.map(|next| link(Some(next))),
        export: path(AUDIT_CSV, &query, None),
        max_exported: grouped(MAX_EXPORTED.into()),
        errors: &errors,
    };
    let status = if errors.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok(page(status, &template))
}

/// Streams the entries that match as CSV. A query with errors leads to the page, which explains them.
pub(super) async fn download(
    State(web): State<Arc<Web>>,
    at: OperatorContext,
    request: Request,
) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let (search, errors) = parse(&query);
    if !errors.is_empty() {
        return Ok(see_other(&path(AUDIT, &query, None)));
    }
    match operator::export_audit(&web.core, &at.operator, &search).await? {
        AuditSearchOutcome::Found(chunks) => Ok(csv_response("audit", Day::of(web.core.now()), Columns::All, chunks)),
        AuditSearchOutcome::UnknownActor | AuditSearchOutcome::TooManyTeams => {
            Ok(see_other(&path(AUDIT, &query, None)))
        }
    }
}

fn parse(query: &Form) -> (AuditSearch, Vec<FieldError>) {
    let mut errors = Vec::new();
    let action = parse_action(query, &mut errors);
    let day = parse_day(query, &mut errors);
    let search = AuditSearch { team: text(query, TEAM), actor: text(query, ACTOR), action, day };
    (search, errors)
}

/// The text of a filter, shortened to what can match.
pub(super) fn text(query: &Form, name: &str) -> String {
    query.get(name).trim().chars().take(MAX_CHARS).collect()
}

fn unknown_actor() -> FieldError {
    let message = "No account has this e-mail address. Enter another one, or the id of a deleted account.";
    FieldError { field: ACTOR, message: message.to_owned() }
}

/// The error for a part of a name that matches too many teams.
pub(super) fn too_many_teams() -> FieldError {
    let message = format!("More than {MAX_FILTER_TEAMS} teams match. Enter more of the name, or the id of the team.");
    FieldError { field: TEAM, message }
}

/// A path with the filters of the query, and with the position after which the page begins.
fn path(path: &str, query: &Form, after: Option<i64>) -> String {
    let after = after.map(|after| after.to_string());
    let kept = [TEAM, ACTOR, "action", "day"].into_iter().map(|name| (name, query.get(name)));
    let kept = kept.filter(|(_, value)| !value.is_empty()).chain(after.as_deref().map(|after| (AFTER, after)));
    let query = Form::from_iter(kept).to_query();
    format!("{path}{}{query}", if query.is_empty() { "" } else { "?" })
}
