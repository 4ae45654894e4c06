//! `/account`: the account page.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, SecondFactorStatus, SessionInfo};
use http::StatusCode;

use super::PATH;
use crate::extract::{QueryForm, SignedInPage};
use crate::fields::{PASSWORD_HINT, password_field};
use crate::form::{Field, FieldError};
use crate::page::{Layout, page};
use crate::paths::VERIFIED;
use crate::problem::Problem;
use crate::response::see_other;
use crate::session::SignedIn;
use crate::state::Web;
use crate::time_format::Moment;
use crate::user_agent::describe;

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage<'a> {
    layout: Layout,
    form_token: &'a str,
    email: &'a str,
    notice: &'static str,
    current: Field,
    new: Field,
    second_factor: Option<SecondFactorStatus>,
    passkeys: usize,
    has_passkeys: bool,
    sessions: Vec<SessionRow>,
    errors: &'a [FieldError],
}

/// A session in the list.
struct SessionRow {
    id: String,
    browser: String,
    is_this: bool,
    since: Moment,
    seen: Moment,
}

impl From<SessionInfo> for SessionRow {
    fn from(session: SessionInfo) -> Self {
        let SessionInfo { id, agent, created_at, seen_at, is_this } = session;
        let browser = describe(agent.as_deref());
        Self { id: id.to_string(), browser, is_this, since: created_at.into(), seen: seen_at.into() }
    }
}

/// Notices, by the query parameter that shows them.
const NOTICES: [(&str, &str); 6] = [
    ("reset", "Password changed. You are signed in."),
    (VERIFIED, "E-mail address verified."),
    ("changed", "Password changed. All other sessions were signed out."),
    ("second-factor-off", "The second factor is off."),
    ("ended", "Session signed out."),
    ("alone", "All other sessions were signed out."),
];

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    SignedInPage(user): SignedInPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let notice = NOTICES.iter().find(|(word, _)| query.has(word)).map_or("", |(_, notice)| *notice);
    account(&web, &user, StatusCode::OK, notice, &[]).await
}

/// Redirects to the page when the URL of a submitted form is loaded with GET.
pub(crate) async fn redirect_to_page() -> Response {
    see_other(PATH)
}

pub(super) async fn account(
    web: &Web,
    user: &SignedIn,
    status: StatusCode,
    notice: &'static str,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let me = &user.session.user;
    let sessions = accounts::list_sessions(&web.core, me.id, &user.token).await?;
    let template = AccountPage {
        layout: web.user_layout(&user.session, PATH),
        form_token: &user.session.csrf,
        email: me.email.as_str(),
        notice,
        current: password_field("current-password", "", &[]).with_name("current", "Current password", errors),
        new: password_field("new-password", PASSWORD_HINT, &[]).with_name("new", "New password", errors),
        second_factor: accounts::find_second_factor(&web.core, me.id).await?,
        passkeys: accounts::list_passkeys(&web.core, me.id).await?.len(),
        has_passkeys: accounts::has_passkeys(&web.core),
        sessions: sessions.into_iter().map(SessionRow::from).collect(),
        errors,
    };
    Ok(page(status, &template))
}
