//! `/oauth/authorize`: an app asks, and a person decides.
//!
//! What is wrong with the request itself is said before anybody signs in. Nothing is allowed without a decision of the
//! moment, and nobody is sent to an address that the app has not registered.

use std::sync::Arc;

use axum::extract::{OriginalUri, Request, State};
use axum::response::Response;
use grabd_engine::accounts;
use grabd_engine::oauth::{self, Asked, Refusal};
use http::StatusCode;

use super::consent::{self, Place};
use crate::Web;
use crate::forgery;
use crate::form::{Complaint, Form};
use crate::frame::{Client, see_other};
use crate::problem::Problem;
use crate::session::{SignedIn, sign_in_first};

const CANNOT: &str = "This app cannot be connected";
const GO_BACK: &str = "Go back to the app and connect it again. If it stays, its makers have to look at it.";

/// The page to decide on, behind a sign-in where needed.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    OriginalUri(uri): OriginalUri,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let fields = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let asked = match oauth::check_request(&web.core, fields.fields()).await {
        Ok(asked) => asked,
        Err(refusal) => return refused(refusal),
    };
    match web.signed_in(request.headers()).await? {
        Some(person) => page(&web, &person, &asked, StatusCode::OK, &[]).await,
        None => Ok(see_other(&sign_in_first(uri.path_and_query().map_or("", |own| own.as_str())))),
    }
}

/// The decision. A form without a ticket is an app's request in another dress (RFC 6749 section 3.1).
pub(crate) async fn decide(
    State(web): State<Arc<Web>>,
    client: Client,
    OriginalUri(uri): OriginalUri,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    if !sent.has(consent::TICKET) {
        return Ok(see_other(&format!("{}?{}", uri.path(), sent.to_query())));
    }
    let Some(person) = web.signed_in(&head.headers).await? else { return Err(Problem::signed_out()) };
    forgery::check(&head.headers, &sent, &person.session.csrf)?;
    let user = person.session.person.id;
    let Some(asked) = oauth::redeem(&web.core, user, sent.one(consent::TICKET)).await? else {
        let message = "This page was answered before, or stood open for more than ten minutes.";
        return Err(Problem::bad_request("Too late to decide", message, GO_BACK));
    };
    match (sent.one("decision"), Place::parse(sent.one("place"))) {
        ("allow", Some(Place { team, environment })) => {
            match oauth::allow(&web.core, user, asked, team, environment).await {
                Ok(location) => Ok(see_other(&location)),
                Err(refusal) => refused(refusal),
            }
        }
        ("allow", None) => {
            let message = "Choose what it may use.".to_owned();
            let missing = [Complaint { field: "place", message }];
            page(&web, &person, &asked, StatusCode::UNPROCESSABLE_ENTITY, &missing).await
        }
        (_, _) => Ok(see_other(&oauth::deny(&web.core, &asked))),
    }
}

async fn page(
    web: &Web,
    person: &SignedIn,
    asked: &Asked,
    status: StatusCode,
    errors: &[Complaint],
) -> Result<Response, Problem> {
    let user = person.session.person.id;
    let teams = accounts::list_memberships(&web.core, user).await?;
    let ticket = oauth::ask(&web.core, user, asked).await?;
    Ok(consent::page(web, &person.session, asked, &teams, ticket.expose(), status, errors))
}

fn refused(refusal: Refusal) -> Result<Response, Problem> {
    match refusal {
        Refusal::Page(message) => Err(Problem::bad_request(CANNOT, message, GO_BACK)),
        Refusal::Redirect(location) => Ok(see_other(&location)),
        Refusal::Inside(fault) => Err(fault.into()),
    }
}
