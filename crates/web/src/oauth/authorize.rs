//! `/oauth/authorize`: the authorization endpoint.
//!
//! The request is validated before the user signs in. Each request needs the user's consent, and redirects go only to
//! registered redirect URIs.

use std::sync::Arc;

use axum::extract::{OriginalUri, Request, State};
use axum::response::Response;
use grabd_engine::accounts;
use grabd_engine::oauth::{self, AuthorizationError, AuthorizationRequest};
use http::StatusCode;

use super::consent::{self, TeamEnvironment};
use crate::client_ip::ClientIp;
use crate::extract::{UncheckedForm, take_page};
use crate::form::{FieldError, Form};
use crate::problem::Problem;
use crate::response::see_other;
use crate::session::{SignedIn, sign_in_url};
use crate::state::Web;

const CANNOT_CONNECT: &str = "This app cannot be connected";
const GO_BACK: &str = "Go back to the app and try again. If the problem persists, contact the app’s developer.";

/// Shows the consent page, after a sign-in if needed.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    OriginalUri(uri): OriginalUri,
    request: Request,
) -> Result<Response, Problem> {
    take_page(&web, client, request.headers()).await?;
    let fields = Form::parse(uri.query().unwrap_or_default().as_bytes());
    // The request may name a document of the app, whose server may be slow.
    let turn = web.limits.take_authorization(client.0)?;
    let asked = match oauth::check_request(&web.core, fields.fields()).await {
        Ok(asked) => asked,
        Err(refusal) => return reject(refusal),
    };
    drop(turn);
    match web.signed_in(request.headers()).await? {
        Some(user) => page(&web, &user, &asked, false, StatusCode::OK, &[]).await,
        None => Ok(see_other(&sign_in_url(uri.path_and_query().map_or("", |own| own.as_str())))),
    }
}

/// Handles the decision. A form without a ticket is an authorization request by POST (RFC 6749 section 3.1).
pub(crate) async fn decide(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    OriginalUri(uri): OriginalUri,
    request: Request,
) -> Result<Response, Problem> {
    take_page(&web, client, request.headers()).await?;
    // The request of an app has no token. It is only repeated with GET.
    let sent = UncheckedForm::read(request).await?;
    if !sent.unchecked().has(consent::TICKET_FIELD) {
        return Ok(see_other(&format!("{}?{}", uri.path(), sent.unchecked().to_query())));
    }
    let Some(user) = web.signed_in(sent.headers()).await? else { return Err(Problem::signed_out()) };
    let input = sent.check(&user.session)?;
    let id = user.session.user.id;
    let Some(asked) = oauth::take_consent_request(&web.core, id, input.get(consent::TICKET_FIELD)).await? else {
        let message = "This request was already answered, or the page was open for more than ten minutes.";
        return Err(Problem::bad_request("Request expired", message, GO_BACK));
    };
    let may_manage = input.get(consent::MANAGE_FIELD) == consent::YES;
    match (input.get("decision"), TeamEnvironment::parse(input.get("place"))) {
        ("allow", Some(TeamEnvironment { team, environment })) => {
            web.limits.changes.take(id).map_err(Problem::too_many_changes)?;
            let asked = if may_manage { asked } else { asked.without_manage() };
            match oauth::allow(&web.core, id, asked, team, environment).await {
                Ok(location) => Ok(see_other(&location)),
                Err(refusal) => reject(refusal),
            }
        }
        ("allow", None) => {
            let message = "Choose what the app may use.".to_owned();
            let missing = [FieldError { field: "place", message }];
            page(&web, &user, &asked, may_manage, StatusCode::UNPROCESSABLE_ENTITY, &missing).await
        }
        (_, _) => Ok(see_other(&oauth::deny(&web.core, &asked).await?)),
    }
}

pub(super) async fn page(
    web: &Web,
    user: &SignedIn,
    asked: &AuthorizationRequest,
    may_manage: bool,
    status: StatusCode,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let id = user.session.user.id;
    let teams = accounts::list_memberships(&web.core, id).await?;
    let ticket = oauth::create_consent_request(&web.core, id, asked).await?;
    let form = consent::ConsentForm { ticket: ticket.expose(), may_manage, errors };
    Ok(consent::page(web, &user.session, asked, &teams, &form, status))
}

fn reject(refusal: AuthorizationError) -> Result<Response, Problem> {
    match refusal {
        AuthorizationError::Page(message) => Err(Problem::bad_request(CANNOT_CONNECT, message, GO_BACK)),
        AuthorizationError::Redirect(location) => Ok(see_other(&location)),
        AuthorizationError::Internal(error) => Err(error.into()),
    }
}
