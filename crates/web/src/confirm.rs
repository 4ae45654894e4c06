//! The confirmation page for actions that cannot be undone. It works without JavaScript.

use askama::Template;
use axum::response::Response;
use grabd_engine::accounts::Session;
use http::StatusCode;

use crate::page::{Layout, page};
use crate::state::Web;

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
    /// The target of the form.
    pub(crate) action: String,
    /// The target of the cancel link.
    pub(crate) back: String,
    /// The path that the navigation marks as current.
    pub(crate) here: &'static str,
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage<'a> {
    layout: Layout,
    form_token: &'a str,
    confirmation: &'a Confirmation<'a>,
}

/// Renders the confirmation page.
pub(crate) fn confirm_page(web: &Web, session: &Session, confirmation: &Confirmation<'_>) -> Response {
    let layout = web.user_layout(session, confirmation.here);
    page(StatusCode::OK, &ConfirmPage { layout, form_token: &session.csrf, confirmation })
}
