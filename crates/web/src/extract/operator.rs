//! Forms of operators.

use axum::extract::{FromRequest, FromRequestParts, Request};

use super::unchecked::UncheckedForm;
use crate::form::Form;
use crate::operator::OperatorContext;
use crate::problem::Problem;

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
