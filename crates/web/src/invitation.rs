//! `/invitation`: where the link leads that an owner has sent. Who is signed in under the invited address joins; who is
//! not signed in makes an account, or signs in first. Whether there is an account already is not told.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, ArriveError, Invitation, TeamError};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use crate::Web;
use crate::accounts::sign_up::wanted;
use crate::accounts::{PASSWORD_HINT, SIGN_IN, let_in, password_field};
use crate::forgery::{self, Visit};
use crate::form::{Complaint, Field, Form};
use crate::frame::{Client, see_other};
use crate::limits::Spent;
use crate::moment::Moment;
use crate::next::Next;
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::SignedIn;
use crate::teams;
use crate::teams::people::role_name;

/// The path of the page.
pub(crate) const PATH: &str = "/invitation";

const ASK_AGAIN: &str = "Ask whoever invited you for another one.";

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage<'a> {
    frame: Frame,
    form_token: String,
    token: &'a str,
    team: &'a str,
    invited_by: &'a str,
    email: &'a str,
    role: &'static str,
    until: Moment,
    /// Who is signed in, if anybody is.
    signed_in: Option<&'a str>,
    /// Is it whom the invitation is for?
    is_invited: bool,
    sign_in: String,
    password: Field,
    errors: &'a [Complaint],
}

/// The question.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let person = web.signed_in(request.headers()).await?;
    let found = accounts::find_invitation(&web.core, query.one("token")).await?;
    let invitation = found.ok_or_else(|| Problem::link_is_over(ASK_AGAIN))?;
    Ok(form(&web, request.headers(), person.as_ref(), &invitation, &query, StatusCode::OK, &[]))
}

/// Lets them in.
pub(crate) async fn submit(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    if let Some(person) = web.signed_in(request.headers()).await? {
        return accept(&web, client, &person, request).await;
    }
    web.limits.sign_ups.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    forgery::check_visit(&web.cookies, &head.headers, &sent)?;
    let complaint = match accounts::arrive(&web.core, sent.one("token"), sent.one("password")).await {
        Ok((session, team)) => {
            let next = Next::parse(&format!("{}?joined", teams::people_path(team)), teams::PATH);
            return let_in(&web, &head.headers, &session, &next).await;
        }
        Err(ArriveError::Unknown) => return Err(Problem::link_is_over(ASK_AGAIN)),
        Err(ArriveError::Full) => return Err(TeamError::Full.into()),
        Err(ArriveError::Password(error)) => Complaint { field: "password", message: wanted(error) },
        Err(ArriveError::EmailTaken) => Complaint {
            field: "",
            message: "No account can be made with this e-mail address. If it is yours, sign in.".to_owned(),
        },
        Err(ArriveError::TooMany { retry_after_s }) => return Err(Spent { retry_after_s }.into()),
        Err(ArriveError::Inside(fault)) => return Err(fault.into()),
    };
    let found = accounts::find_invitation(&web.core, sent.one("token")).await?;
    let invitation = found.ok_or_else(|| Problem::link_is_over(ASK_AGAIN))?;
    Ok(form(&web, &head.headers, None, &invitation, &sent, StatusCode::UNPROCESSABLE_ENTITY, &[complaint]))
}

async fn accept(web: &Web, client: Client, person: &SignedIn, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    forgery::check(&head.headers, &sent, &person.session.csrf)?;
    match accounts::accept(&web.core, &person.session.person, sent.one("token")).await {
        Ok(team) => Ok(see_other(&format!("{}?joined", teams::people_path(team)))),
        Err(TeamError::Unknown) => Err(Problem::link_is_over(ASK_AGAIN)),
        Err(error) => Err(error.into()),
    }
}

fn form(
    web: &Web,
    headers: &HeaderMap,
    person: Option<&SignedIn>,
    invitation: &Invitation,
    sent: &Form,
    status: StatusCode,
    errors: &[Complaint],
) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let Invitation { id: _, team: _, team_name, email, role, invited_by, expires_at } = invitation;
    let token = sent.one("token");
    let here = Form::from_iter([("token", token)]).to_query();
    let way = Form::from_iter([("next", &*format!("{PATH}?{here}"))]).to_query();
    let template = InvitationPage {
        // Whoever is signed in as somebody else needs the way out that the navigation has.
        frame: person.map_or_else(|| web.plain_frame(), |person| web.frame_of(&person.session, "")),
        form_token: person.map_or_else(|| visit.form_token(), |person| person.session.csrf.clone()),
        token,
        team: team_name,
        invited_by: invited_by.as_str(),
        email: email.as_str(),
        role: role_name(*role),
        until: (*expires_at).into(),
        signed_in: person.map(|person| person.session.person.email.as_str()),
        is_invited: person.is_some_and(|person| person.session.person.email == *email),
        sign_in: format!("{SIGN_IN}?{way}"),
        password: password_field("new-password", PASSWORD_HINT, errors),
        errors,
    };
    let mut response = page(status, &template);
    if person.is_none() {
        response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    }
    response
}
