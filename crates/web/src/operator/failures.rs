//! `/operator/failures`: failed live captures, latest first, and the hosts with the most of them.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_domain::ErrorCause;
use grabd_domain::grabs::FailureReason;
use grabd_engine::operator::{
    self, FailedHost, FailureCursor, FailureSearch, FailuresOutcome, FailuresPage, GROUPED_FAILURES,
    MAX_SEARCHED_FAILURES,
};
use http::StatusCode;

use super::audit::{TEAM, text, too_many_teams};
use super::cursor::{self, AFTER};
use super::navigation::FAILURES;
use super::view::{Failure, cause_label, reason_label};
use crate::extract::OperatorContext;
use crate::form::{FieldError, Form};
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::trail::{Choice, parse_day};

/// The query parameter with the reason.
const REASON: &str = "code";
/// The query parameter with the cause.
const CAUSE: &str = "cause";
/// The reasons to choose from.
const REASONS: [FailureReason; 4] = [
    FailureReason::RenderBlocked,
    FailureReason::RenderFailed,
    FailureReason::SsrfDetected,
    FailureReason::InternalError,
];

#[derive(Template)]
#[template(path = "operator_failures.html")]
struct Page<'a> {
    layout: Layout,
    errors: &'a [FieldError],
    team: &'a str,
    team_error: Option<String>,
    reasons: Vec<Choice>,
    reason_error: Option<String>,
    causes: Vec<Choice>,
    cause_error: Option<String>,
    day: &'a str,
    day_error: Option<String>,
    /// Whether a filter is set.
    is_filtered: bool,
    failures: Vec<Failure>,
    hosts: Vec<Host>,
    grouped: String,
    is_partial: bool,
    searched: String,
    is_first: bool,
    latest: String,
    older: Option<String>,
}

/// A host in the table.
struct Host {
    host: String,
    failures: String,
    teams: String,
    code: &'static str,
    reason: &'static str,
}

impl From<FailedHost> for Host {
    fn from(FailedHost { host, failures, teams, reason }: FailedHost) -> Self {
        let (code, label) = (reason.code().as_str(), reason_label(reason));
        Self { host, failures: grouped(failures), teams: grouped(teams), code, reason: label }
    }
}

/// Shows the list.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    at: OperatorContext,
    request: Request,
) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let before = cursor::from_query(&query)?.map(|(at, grab)| FailureCursor { at, grab });
    let (search, mut errors) = parse(&query);
    let mut found = FailuresPage { failures: Vec::new(), hosts: Vec::new(), next: None, is_partial: false };
    if errors.is_empty() {
        match operator::list_failures(&web.core, &at.operator, &search, before).await? {
            FailuresOutcome::Page(page) => found = page,
            FailuresOutcome::TooManyTeams => errors.push(too_many_teams()),
        }
    }
    let FailuresPage { failures, hosts, next, is_partial } = found;
    let message = |field: &str| errors.iter().find(|error| error.field == field).map(|error| error.message.clone());
    let link = |after: Option<FailureCursor>| path(&query, after);
    let template = Page {
        layout: at.layout(&web, FAILURES),
        team: &search.team,
        team_error: message(TEAM),
        reasons: reasons(search.reason),
        reason_error: message(REASON),
        causes: causes(search.cause),
        cause_error: message(CAUSE),
        day: query.get("day"),
        day_error: message("day"),
        is_filtered: link(None) != FAILURES,
        failures: failures.into_iter().map(Failure::from).collect(),
        hosts: hosts.into_iter().map(Host::from).collect(),
        grouped: grouped(GROUPED_FAILURES.into()),
        is_partial,
        searched: grouped(MAX_SEARCHED_FAILURES.into()),
        is_first: before.is_none(),
        latest: link(None),
        older: next.map(|next| link(Some(next))),
        errors: &errors,
    };
    let status = if errors.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok(page(status, &template))
}

fn reasons(chosen: Option<FailureReason>) -> Vec<Choice> {
    let choice = |reason: FailureReason| Choice {
        value: reason.code().as_str().to_owned(),
        label: reason_label(reason).to_owned(),
        is_chosen: chosen == Some(reason),
    };
    REASONS.map(choice).into()
}

fn causes(chosen: Option<ErrorCause>) -> Vec<Choice> {
    let choice = |cause: ErrorCause| Choice {
        value: cause.as_str().to_owned(),
        label: cause_label(cause).to_owned(),
        is_chosen: chosen == Some(cause),
    };
    ErrorCause::ALL.map(choice).into()
}

fn parse(query: &Form) -> (FailureSearch, Vec<FieldError>) {
    let mut errors = Vec::new();
    let (reason_text, cause_text) = (query.get(REASON), query.get(CAUSE));
    let reason = FailureReason::parse(reason_text);
    if reason.is_none() && !reason_text.is_empty() {
        errors.push(FieldError { field: REASON, message: "Choose a result of the list.".to_owned() });
    }
    let cause = ErrorCause::ALL.into_iter().find(|cause| cause.as_str() == cause_text);
    if cause.is_none() && !cause_text.is_empty() {
        errors.push(FieldError { field: CAUSE, message: "Choose a cause of the list.".to_owned() });
    }
    let day = parse_day(query, &mut errors);
    (FailureSearch { team: text(query, TEAM), reason, cause, day }, errors)
}

/// The page with the filters of the query, and with the position after which it begins.
fn path(query: &Form, after: Option<FailureCursor>) -> String {
    let after = after.map(|FailureCursor { at, grab }| cursor::format(at, grab));
    let kept = [TEAM, REASON, CAUSE, "day"].into_iter().map(|name| (name, query.get(name)));
    let kept = kept.filter(|(_, value)| !value.is_empty()).chain(after.as_deref().map(|after| (AFTER, after)));
    let query = Form::from_iter(kept).to_query();
    format!("{FAILURES}{}{query}", if query.is_empty() { "" } else { "?" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_parsed_and_kept_in_links() {
        let query = Form::parse(b"team=%20acme%20&code=render_failed&cause=service&day=2026-11-20&x=y");
        let (search, errors) = parse(&query);
        assert!(errors.is_empty());
        let seen = (&*search.team, search.reason, search.cause, search.day.map(|day| day.to_string()));
        let expected = (Some(FailureReason::RenderFailed), Some(ErrorCause::Service));
        assert_eq!(seen, ("acme", expected.0, expected.1, Some("2026-11-20".to_owned())));
        let link = path(&query, None);
        assert_eq!(link, "/operator/failures?team=+acme+&code=render_failed&cause=service&day=2026-11-20");
        assert_eq!(path(&Form::default(), None), "/operator/failures");
        let (_, errors) = parse(&Form::parse(b"code=x&cause=y&day=z"));
        let fields: Vec<&str> = errors.iter().map(|error| error.field).collect();
        assert_eq!(fields, ["code", "cause", "day"]);
    }
}
