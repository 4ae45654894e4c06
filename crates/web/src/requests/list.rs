//! `/teams/{team}/requests`: the recorded API requests of a team, newest first.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::Day;
use grabd_domain::faults::Code;
use grabd_engine::requests::{self, REQUESTS_KEPT, RequestPage, RequestsPerDay, WAITING_PER_TEAM};
use http::StatusCode;

use super::PAGE;
use super::filter::{CODE, DAY, Filters, KEY, OUTCOMES, REQUEST_ID, REQUEST_ID_CHARS, STATUS};
use super::view::RequestView;
use crate::extract::{QueryForm, TeamPage};
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::time_format::Date;

/// Requests per page.
const PER_PAGE: u32 = 50;

#[derive(Template)]
#[template(path = "requests.html")]
struct RequestsPage<'a> {
    layout: Layout,
    team_name: &'a str,
    path: String,
    requests: Vec<RequestView>,
    selects: Vec<Select>,
    request_id: &'a str,
    request_id_chars: usize,
    is_filtered: bool,
    is_first: bool,
    newest: String,
    older: Option<String>,
    kept_days: u64,
    refused_per_day: String,
    accepted_per_day: String,
    per_second: u32,
}

/// A filter of the form.
struct Select {
    name: &'static str,
    label: &'static str,
    choices: Vec<Choice>,
}

/// A choice of a filter.
struct Choice {
    value: String,
    label: String,
    is_chosen: bool,
}

impl Select {
    fn of(
        filters: &Filters<'_>,
        name: &'static str,
        label: &'static str,
        all: &str,
        choices: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let chosen = filters.value(name);
        let choice = |(value, label): (String, String)| Choice { is_chosen: value == chosen, value, label };
        let all = (String::new(), all.to_owned());
        Self { name, label, choices: std::iter::once(all).chain(choices).map(choice).collect() }
    }
}

/// Shows a page of the list.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let filters = Filters::of(&query)?;
    let listed = requests::list(&web.core, &at.team_member, &filters.filter, filters.before, PER_PAGE).await?;
    let RequestsPerDay { refused, accepted } = requests::requests_per_day(&web.core, at.team_member.team).await?;
    let path = at.path(PAGE);
    let template = RequestsPage {
        layout: web.team_layout(&at, PAGE),
        team_name: &at.team_member.team_name,
        requests: listed.requests.iter().map(|request| RequestView::of(request, &listed, &at)).collect(),
        selects: selects(&filters, &listed, Day::of(web.core.now())),
        request_id: filters.value(REQUEST_ID),
        request_id_chars: REQUEST_ID_CHARS,
        is_filtered: filters.is_active(),
        is_first: filters.before.is_none(),
        newest: filters.path(&path, None),
        older: listed.before.map(|before| filters.path(&path, Some(before))),
        kept_days: REQUESTS_KEPT.as_secs() / (24 * 60 * 60),
        refused_per_day: grouped(refused.into()),
        accepted_per_day: grouped(accepted.into()),
        per_second: WAITING_PER_TEAM,
        path,
    };
    Ok(page(StatusCode::OK, &template))
}

fn selects(filters: &Filters<'_>, listed: &RequestPage, today: Day) -> Vec<Select> {
    let keys = listed.keys.iter().map(|(id, name)| (id.to_string(), name.clone()));
    let outcomes = OUTCOMES.map(|(word, label, _)| (word.to_owned(), label.to_owned()));
    let codes = Code::ALL.map(|code| (code.as_str().to_owned(), code.as_str().to_owned()));
    let days = u16::try_from(REQUESTS_KEPT.as_secs() / (24 * 60 * 60)).unwrap_or(7);
    // Today, and the days of which something may be left.
    let days = (0..=days).map(|ago| Date::from(today.before(ago))).map(|day| (day.machine, day.human));
    vec![
        Select::of(filters, KEY, "Key", "All keys and apps", keys),
        Select::of(filters, STATUS, "Status", "All", outcomes),
        Select::of(filters, CODE, "Error code", "All", codes),
        Select::of(filters, DAY, "Day (UTC)", "All", days),
    ]
}
