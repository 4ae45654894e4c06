//! Operators, and their forms.

use axum::extract::{FromRequest, FromRequestParts, Request};
use grabd_engine::accounts::Session;
use grabd_engine::operator::Operator;
use http::request::Parts;

use super::unchecked::UncheckedForm;
use crate::form::Form;
use crate::problem::Problem;

/// A signed-in operator.
#[derive(Clone)]
pub(crate) struct OperatorContext {
    pub(crate) operator: Operator,
    pub(crate) session: Session,
}

/// A form and the operator who submitted it. The middleware of the pages for operators has counted the request and
/// found the session.
pub(crate) struct OperatorForm {
    pub(crate) at: OperatorContext,
    pub(crate) form: Form,
}

impl<S: Sync> FromRequest<S> for OperatorForm {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let at = OperatorContext::from_request_parts(&mut parts, state).await?;
        let form = UncheckedForm::read_body(parts.headers, body).await?.into_checked(&at.session)?;
        Ok(Self { at, form })
    }
}

impl<S: Sync> FromRequestParts<S> for OperatorContext {
    type Rejection = Problem;

    /// The operator that the middleware of these pages added to the request.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get().cloned().ok_or_else(unknown_page)
    }
}

/// The problem that everybody else gets, also for pages that exist.
pub(crate) fn unknown_page() -> Problem {
    Problem::not_found("This page does not exist, or you do not have access to it.")
}
