//! Forms whose token was not checked yet.

use axum::body::Body;
use axum::extract::Request;
use grabd_engine::accounts::Session;
use http::HeaderMap;

use super::csrf;
use crate::cookies::Cookies;
use crate::form::{Form, FormError};
use crate::problem::Problem;

/// A form before the check of its token. Handlers read it only if the form or its link decides whose token it has;
/// they must check it before they change anything.
pub(crate) struct UncheckedForm {
    headers: HeaderMap,
    form: Form,
}

impl UncheckedForm {
    /// Reads the form of a request. The handler has counted the request against a limit before.
    ///
    /// # Errors
    /// When the body is not a form.
    pub(crate) async fn read(request: Request) -> Result<Self, FormError> {
        let (parts, body) = request.into_parts();
        Self::read_body(parts.headers, body).await
    }

    /// Reads the form of a request that was taken apart.
    ///
    /// # Errors
    /// When the body is not a form.
    pub(super) async fn read_body(headers: HeaderMap, body: Body) -> Result<Self, FormError> {
        let form = Form::read(&headers, body).await?;
        Ok(Self { headers, form })
    }

    /// The headers of the request.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The form, to find out whose token it has.
    pub(crate) fn unchecked(&self) -> &Form {
        &self.form
    }

    /// The form, if it has the token of a signed-in user.
    ///
    /// # Errors
    /// When its origin or token is wrong.
    pub(crate) fn check(&self, session: &Session) -> Result<&Form, Problem> {
        csrf::check(&self.headers, &self.form, &session.csrf)?;
        Ok(&self.form)
    }

    /// The form, if it has the token of a visitor.
    ///
    /// # Errors
    /// When its origin or token is wrong.
    pub(crate) fn check_visit(&self, cookies: &Cookies) -> Result<&Form, Problem> {
        csrf::check_visit(cookies, &self.headers, &self.form)?;
        Ok(&self.form)
    }

    /// The same as [`Self::check`], for the extractors, which pass the form on.
    ///
    /// # Errors
    /// When its origin or token is wrong.
    pub(super) fn into_checked(self, session: &Session) -> Result<Form, Problem> {
        self.check(session)?;
        Ok(self.form)
    }
}
