//! `/account`

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, MySession};
use http::StatusCode;

use super::PATH;
use crate::Web;
use crate::accounts::{PASSWORD_HINT, password_field};
use crate::agent::describe;
use crate::form::{Complaint, Field, Form};
use crate::frame::{Client, see_other};
use crate::moment::Moment;
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::{SignedIn, sign_in_first};

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage<'a> {
    frame: Frame,
    form_token: &'a str,
    email: &'a str,
    notice: &'static str,
    current: Field,
    new: Field,
    sessions: Vec<Shown>,
    errors: &'a [Complaint],
}

/// A session as it is shown.
struct Shown {
    id: String,
    browser: String,
    is_this: bool,
    since: Moment,
    seen: Moment,
}

impl From<MySession> for Shown {
    fn from(session: MySession) -> Self {
        let MySession { id, agent, created_at, seen_at, is_this } = session;
        let browser = describe(agent.as_deref());
        Self { id: id.to_string(), browser, is_this, since: created_at.into(), seen: seen_at.into() }
    }
}

/// What was done, by the word in the address that says it.
const NOTICES: [(&str, &str); 3] = [
    ("changed", "Your password is changed, and you are signed out everywhere else."),
    ("ended", "That session is over."),
    ("alone", "You are signed out everywhere else."),
];

/// The page.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else { return Ok(see_other(&sign_in_first(PATH))) };
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let notice = NOTICES.iter().find(|(word, _)| query.has(word)).map_or("", |(_, notice)| *notice);
    account(&web, &person, StatusCode::OK, notice, &[]).await
}

/// What is answered with this page as a form, and asked for again as an address, leads back to it.
pub(crate) async fn show_again() -> Response {
    see_other(PATH)
}

pub(super) async fn account(
    web: &Web,
    person: &SignedIn,
    status: StatusCode,
    notice: &'static str,
    errors: &[Complaint],
) -> Result<Response, Problem> {
    let me = &person.session.person;
    let sessions = accounts::list_sessions(&web.core, me.id, &person.token).await?;
    let template = AccountPage {
        frame: web.frame_of(&person.session, PATH),
        form_token: &person.session.csrf,
        email: me.email.as_str(),
        notice,
        current: password_field("current-password", "", &[]).named("current", "Current password", errors),
        new: password_field("new-password", PASSWORD_HINT, &[]).named("new", "New password", errors),
        sessions: sessions.into_iter().map(Shown::from).collect(),
        errors,
    };
    Ok(page(status, &template))
}
