//! The query of a page.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::form::Form;

/// The fields of the query.
pub(crate) struct QueryForm(pub(crate) Form);

impl<S: Sync> FromRequestParts<S> for QueryForm {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Form::parse(parts.uri.query().unwrap_or_default().as_bytes())))
    }
}
