//! `/invitation`: the target of an invitation link. A user who is signed in with the invited address joins the team. A
//! visitor creates an account or signs in first. The page does not reveal whether an account exists.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, Invitation, InvitationSignUpError, Session, TeamError};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use crate::access::{role_name, role_summary};
use crate::client_ip::ClientIp;
use crate::extract::{UncheckedForm, Visit, VisitorPage};
use crate::fields::{PASSWORD_HINT, password_field, password_message};
use crate::form::{Field, FieldError, Form};
use crate::next::NextPath;
use crate::page::{Layout, page};
use crate::paths::{self, SIGN_IN};
use crate::problem::Problem;
use crate::rate_limits::RateLimited;
use crate::response::see_other;
use crate::session::SignedIn;
use crate::sign_in::start_session;
use crate::state::Web;
use crate::time_format::Moment;

/// The path of the page.
pub(crate) const PATH: &str = "/invitation";

const ASK_AGAIN: &str = "Ask the person who invited you for a new invitation.";

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage<'a> {
    layout: Layout,
    form_token: String,
    token: &'a str,
    team: &'a str,
    invited_by: &'a str,
    email: &'a str,
    role: &'static str,
    role_about: &'static str,
    until: Moment,
    /// The address of the signed-in user.
    signed_in: Option<&'a str>,
    /// Whether the invitation is for the signed-in user.
    is_invited: bool,
    sign_in: String,
    password: Field,
    errors: &'a [FieldError],
}

/// Shows the invitation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    VisitorPage { headers, query, .. }: VisitorPage,
) -> Result<Response, Problem> {
    let user = web.signed_in(&headers).await?;
    let found = accounts::find_invitation(&web.core, query.get("token")).await?;
    let invitation = found.ok_or_else(|| Problem::invalid_link(ASK_AGAIN))?;
    Ok(form(&web, &headers, user.as_ref(), &invitation, &query, StatusCode::OK, &[]))
}

/// Accepts the invitation, for a visitor with a new account.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    request: Request,
) -> Result<Response, Problem> {
    // The session decides which limit applies, and whether the form has the token of the session or that of the visit.
    let user = web.signed_in(request.headers()).await?;
    let limit = if user.is_some() { &web.limits.pages } else { &web.limits.sign_ups };
    limit.take(client.0)?;
    let sent = UncheckedForm::read(request).await?;
    if let Some(user) = user {
        return accept(&web, &user.session, sent.check(&user.session)?).await;
    }
    let input = sent.check_visit(&web.cookies)?;
    let field_error =
        match accounts::sign_up_with_invitation(&web.core, input.get("token"), input.get("password")).await {
            Ok((session, team)) => {
                let next = NextPath::parse(&format!("{}?joined", paths::users(team)), paths::TEAMS);
                return start_session(&web, client, sent.headers(), &session, &next).await;
            }
            Err(InvitationSignUpError::InvalidLink) => return Err(Problem::invalid_link(ASK_AGAIN)),
            Err(InvitationSignUpError::TeamFull) => return Err(TeamError::Full.into()),
            Err(InvitationSignUpError::Password(error)) => {
                FieldError { field: "password", message: password_message(error) }
            }
            Err(InvitationSignUpError::EmailTaken) => FieldError {
                field: "",
                message: "An account cannot be created with this e-mail address. If you already have one, sign in."
                    .to_owned(),
            },
            Err(InvitationSignUpError::TooMany { retry_after_s }) => return Err(RateLimited { retry_after_s }.into()),
            Err(InvitationSignUpError::Internal(error)) => return Err(error.into()),
        };
    let found = accounts::find_invitation(&web.core, input.get("token")).await?;
    let invitation = found.ok_or_else(|| Problem::invalid_link(ASK_AGAIN))?;
    Ok(form(&web, sent.headers(), None, &invitation, input, StatusCode::UNPROCESSABLE_ENTITY, &[field_error]))
}

async fn accept(web: &Web, session: &Session, input: &Form) -> Result<Response, Problem> {
    match accounts::accept_invitation(&web.core, &session.user, input.get("token")).await {
        Ok(team) => Ok(see_other(&format!("{}?joined", paths::users(team)))),
        Err(TeamError::NotFound) => Err(Problem::invalid_link(ASK_AGAIN)),
        Err(error) => Err(error.into()),
    }
}

fn form(
    web: &Web,
    headers: &HeaderMap,
    user: Option<&SignedIn>,
    invitation: &Invitation,
    input: &Form,
    status: StatusCode,
    errors: &[FieldError],
) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let Invitation { id: _, team: _, team_name, email, role, invited_by, expires_at } = invitation;
    let token = input.get("token");
    let here = Form::from_iter([("token", token)]).to_query();
    let sign_in_query = Form::from_iter([("next", &*format!("{PATH}?{here}"))]).to_query();
    let template = InvitationPage {
        // A user who is signed in with another address needs the sign-out button of the navigation.
        layout: user.map_or_else(|| web.plain_layout(), |user| web.user_layout(&user.session, "")),
        form_token: user.map_or_else(|| visit.form_token(), |user| user.session.csrf.clone()),
        token,
        team: team_name,
        invited_by: invited_by.as_str(),
        email: email.as_str(),
        role: role_name(*role),
        role_about: role_summary(*role),
        until: (*expires_at).into(),
        signed_in: user.map(|user| user.session.user.email.as_str()),
        is_invited: user.is_some_and(|user| user.session.user.email == *email),
        sign_in: format!("{SIGN_IN}?{sign_in_query}"),
        password: password_field("new-password", PASSWORD_HINT, errors),
        errors,
    };
    let mut response = page(status, &template);
    if user.is_none() {
        response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    }
    response
}
