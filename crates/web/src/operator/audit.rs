//! `/operator/audit`: the audit trail, newest first.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::operator::{self, AuditEntry};
use http::StatusCode;

use super::cursor::AFTER;
use super::navigation::AUDIT;
use crate::extract::OperatorContext;
use crate::form::Form;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::time_format::Moment;

#[derive(Template)]
#[template(path = "operator_audit.html")]
struct AuditPage {
    layout: Layout,
    entries: Vec<Row>,
    is_first: bool,
    older: Option<String>,
}

/// An entry in the table.
struct Row {
    at: Moment,
    /// The e-mail address of a user, or what else made the change.
    who: String,
    action: String,
    target: String,
    team: Option<String>,
    address: String,
    detail: String,
}

impl From<AuditEntry> for Row {
    fn from(entry: AuditEntry) -> Self {
        let AuditEntry { id: _, at, actor, email, action, target, team, address, detail } = entry;
        Self {
            at: at.into(),
            who: email.unwrap_or(actor),
            action,
            target,
            team: team.map(|team| team.to_string()),
            address: address.unwrap_or_default(),
            detail: detail.unwrap_or_default(),
        }
    }
}

/// Shows the list.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    at: OperatorContext,
    request: Request,
) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let before = match query.get(AFTER) {
        "" => None,
        text => Some(text.parse().map_err(|_| {
            Problem::bad_request(
                "Invalid page link",
                "The link refers to an unknown entry.",
                "Go to the newest entries.",
            )
        })?),
    };
    let operator::AuditPage { entries, next } = operator::list_audit(&web.core, &at.operator, before).await?;
    let template = AuditPage {
        layout: at.layout(&web, AUDIT),
        entries: entries.into_iter().map(Row::from).collect(),
        is_first: before.is_none(),
        older: next.map(|next| format!("{AUDIT}?{AFTER}={next}")),
    };
    Ok(page(StatusCode::OK, &template))
}
