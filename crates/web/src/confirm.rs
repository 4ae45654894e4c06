//! The question before what cannot be undone. It is a page, so it is asked without a script too.

use askama::Template;
use axum::response::Response;
use grabd_engine::accounts::Session;
use http::StatusCode;

use crate::Web;
use crate::page::{Frame, page};

/// A question.
pub(crate) struct Question<'a> {
    /// What would be done, as in "Revoke the key".
    pub(crate) deed: &'static str,
    /// To what: somebody's own words.
    pub(crate) what: &'a str,
    /// What follows, a sentence each.
    pub(crate) consequences: &'a [&'static str],
    /// The word on the button.
    pub(crate) button: &'static str,
    /// Where the form leads.
    pub(crate) action: String,
    /// Where the way back leads.
    pub(crate) back: String,
    /// The path that the navigation shows as the current one.
    pub(crate) here: &'static str,
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage<'a> {
    frame: Frame,
    form_token: &'a str,
    question: &'a Question<'a>,
}

/// The page that asks it.
pub(crate) fn ask(web: &Web, session: &Session, question: &Question<'_>) -> Response {
    let frame = web.frame_of(session, question.here);
    page(StatusCode::OK, &ConfirmPage { frame, form_token: &session.csrf, question })
}
