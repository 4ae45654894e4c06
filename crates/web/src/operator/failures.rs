//! `/operator/failures`: live captures that failed, the latest first.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::operator::{self, FailedAt};
use http::StatusCode;

use super::place::{self, AFTER};
use super::view::Failure;
use super::{AtOperator, Link, navigation};
use crate::Web;
use crate::form::Form;
use crate::page::{Frame, page};
use crate::problem::Problem;

const PATH: &str = "/operator/failures";

#[derive(Template)]
#[template(path = "operator_failures.html")]
struct FailuresPage {
    frame: Frame,
    links: Vec<Link>,
    failures: Vec<Failure>,
    is_first: bool,
    older: Option<String>,
}

/// The list.
pub(super) async fn show(State(web): State<Arc<Web>>, at: AtOperator, request: Request) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let before = place::read(&query)?.map(|(at, grab)| FailedAt { at, grab });
    let operator::FailuresPage { failures, next } = operator::list_failures(&web.core, &at.operator, before).await?;
    let template = FailuresPage {
        frame: at.frame(&web),
        links: navigation(PATH),
        failures: failures.into_iter().map(Failure::from).collect(),
        is_first: before.is_none(),
        older: next.map(|FailedAt { at, grab }| format!("{PATH}?{AFTER}={}", place::write(at, grab))),
    };
    Ok(page(StatusCode::OK, &template))
}
