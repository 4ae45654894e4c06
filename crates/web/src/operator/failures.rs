//! `/operator/failures`: failed live captures, latest first.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::operator::{self, FailureCursor};
use http::StatusCode;

use super::cursor::{self, AFTER};
use super::navigation::FAILURES;
use super::view::Failure;
use crate::extract::OperatorContext;
use crate::form::Form;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

#[derive(Template)]
#[template(path = "operator_failures.html")]
struct FailuresPage {
    layout: Layout,
    failures: Vec<Failure>,
    is_first: bool,
    older: Option<String>,
}

/// Shows the list.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    at: OperatorContext,
    request: Request,
) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let before = cursor::from_query(&query)?.map(|(at, grab)| FailureCursor { at, grab });
    let operator::FailuresPage { failures, next } = operator::list_failures(&web.core, &at.operator, before).await?;
    let template = FailuresPage {
        layout: at.layout(&web, FAILURES),
        failures: failures.into_iter().map(Failure::from).collect(),
        is_first: before.is_none(),
        older: next.map(|FailureCursor { at, grab }| format!("{FAILURES}?{AFTER}={}", cursor::format(at, grab))),
    };
    Ok(page(StatusCode::OK, &template))
}
