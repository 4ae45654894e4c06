//! `/teams/{team}/audit`: the audit trail of a team in sentences, for its owners, and the same as CSV.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::Day;
use grabd_domain::ids::{TeamId, UserId};
use grabd_engine::accounts::{self, Member};
use grabd_engine::trail::{self, AuditAction, MAX_EXPORTED, TeamTrailSearch, TrailPage};
use http::StatusCode;

use crate::extract::{MyTeamPage, QueryForm};
use crate::form::{FieldError, Form};
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::paths;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::trail::{
    AFTER, Choice, Columns, EntryRow, Reader, action_choices, csv_response, parse_action, parse_after, parse_day,
};

/// The last path segment of the page.
const PAGE: &str = "audit";
/// The query parameter with the member.
const MEMBER: &str = "by";

#[derive(Template)]
#[template(path = "team_audit.html")]
struct TrailTemplate<'a> {
    layout: Layout,
    team_name: &'a str,
    path: String,
    back: String,
    errors: &'a [FieldError],
    members: Vec<Choice>,
    member_error: Option<String>,
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
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let before = parse_after(&query)?;
    let (search, errors) = parse(&query);
    let me = user.session.user.id;
    let TrailPage { entries, next } = match errors.is_empty() {
        true => trail::list_team_trail(&web.core, me, team.team, &search, before).await?,
        false => TrailPage { entries: Vec::new(), next: None },
    };
    let members = accounts::list_members(&web.core, me, team.team).await?;
    let message = |field: &str| errors.iter().find(|error| error.field == field).map(|error| error.message.clone());
    let link = |after: Option<i64>| path(team.team, PAGE, &query, after);
    let here = paths::team_page(team.team, PAGE);
    let template = TrailTemplate {
        layout: web.team_admin_layout(&user.session, team.team, "settings").await?,
        team_name: &team.name,
        back: paths::settings(team.team),
        members: members.into_iter().map(|member| choice(member, search.member)).collect(),
        member_error: message(MEMBER),
        actions: action_choices(AuditAction::of_owners(), search.action),
        action_error: message("action"),
        day: query.get("day"),
        day_error: message("day"),
        is_filtered: link(None) != here,
        entries: entries.into_iter().map(|named| EntryRow::of(named, Reader::Owner)).collect(),
        is_first: before.is_none(),
        newest: link(None),
        older: next.map(|next| link(Some(next))),
        export: path(team.team, "audit.csv", &query, None),
        max_exported: grouped(MAX_EXPORTED.into()),
        path: here,
        errors: &errors,
    };
    let status = if errors.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok(page(status, &template))
}

/// Streams the entries that match as CSV. A query with errors leads to the page, which explains them.
pub(crate) async fn download(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let (search, errors) = parse(&query);
    if !errors.is_empty() {
        return Ok(see_other(&path(team.team, PAGE, &query, None)));
    }
    let me = user.session.user.id;
    let chunks = trail::export_team_trail(&web.core, me, team.team, &search).await?;
    Ok(csv_response("team-audit", Day::of(web.core.now()), Columns::OfTeam, chunks))
}

fn choice(member: Member, chosen: Option<UserId>) -> Choice {
    let Member { user, email, .. } = member;
    Choice { value: user.to_string(), label: email.to_string(), is_chosen: chosen == Some(user) }
}

fn parse(query: &Form) -> (TeamTrailSearch, Vec<FieldError>) {
    let mut errors = Vec::new();
    let action = parse_action(query, &mut errors);
    let day = parse_day(query, &mut errors);
    // One that is not a member matches nothing.
    let member = query.get(MEMBER).parse().ok();
    if member.is_none() && !query.get(MEMBER).is_empty() {
        errors.push(FieldError { field: MEMBER, message: "Choose a member of the list.".to_owned() });
    }
    (TeamTrailSearch { member, action, day }, errors)
}

/// A page of the team with the filters of the query, and with the position after which the page begins.
fn path(team: TeamId, page: &str, query: &Form, after: Option<i64>) -> String {
    let after = after.map(|after| after.to_string());
    let kept = [MEMBER, "action", "day"].into_iter().map(|name| (name, query.get(name)));
    let kept = kept.filter(|(_, value)| !value.is_empty()).chain(after.as_deref().map(|after| (AFTER, after)));
    let query = Form::from_iter(kept).to_query();
    format!("{}{}{query}", paths::team_page(team, page), if query.is_empty() { "" } else { "?" })
}
