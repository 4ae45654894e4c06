//! The confirmation page for actions with consequences. It works without JavaScript.

use askama::Template;
use axum::response::Response;
use grabd_engine::accounts::Session;
use http::StatusCode;

use crate::form::{Field, FieldError};
use crate::page::{Layout, page};
use crate::secret_row::SecretRow;

/// The content of a confirmation page.
pub(crate) struct Confirmation<'a> {
    /// The action, as in "Revoke key".
    pub(crate) title: &'static str,
    /// The name of the affected object, as entered by a user.
    pub(crate) subject: &'a str,
    /// The consequences, one sentence each.
    pub(crate) consequences: &'a [&'static str],
    /// The label of the button.
    pub(crate) button: &'static str,
    /// Whether it cannot be undone. The button is red then.
    pub(crate) is_final: bool,
    /// The target of the form.
    pub(crate) action: String,
    /// The target of the cancel link.
    pub(crate) back: String,
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage<'a> {
    layout: Layout,
    form_token: &'a str,
    confirmation: &'a Confirmation<'a>,
    secrets: &'a [SecretRow],
    /// What the user has to enter besides.
    field: Option<Field>,
    errors: &'a [FieldError],
}

/// Renders the confirmation page.
pub(crate) fn confirm_page(layout: Layout, session: &Session, confirmation: &Confirmation<'_>) -> Response {
    confirm_page_with_secrets(layout, session, confirmation, &[])
}

/// The same with secrets that stay in use after the action.
pub(crate) fn confirm_page_with_secrets(
    layout: Layout,
    session: &Session,
    confirmation: &Confirmation<'_>,
    secrets: &[SecretRow],
) -> Response {
    let template = ConfirmPage { layout, form_token: &session.csrf, confirmation, secrets, field: None, errors: &[] };
    page(StatusCode::OK, &template)
}

/// The same with a field, whose errors are shown after the form was submitted.
pub(crate) fn confirm_page_with_field(
    layout: Layout,
    session: &Session,
    confirmation: &Confirmation<'_>,
    status: StatusCode,
    field: Field,
    errors: &[FieldError],
) -> Response {
    let form_token = &session.csrf;
    page(status, &ConfirmPage { layout, form_token, confirmation, secrets: &[], field: Some(field), errors })
}
