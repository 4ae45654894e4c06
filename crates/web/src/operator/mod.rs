//! What operators see: how the service is, all its teams, what failed. One file per page.
//!
//! Everything below [`PATH`] passes [`gate`]: to anybody else it is as if there were nothing, whatever they ask and
//! whether or not it exists. To add a page, give it a line in [`router`], and one in [`PAGES`] when the navigation leads
//! to it.

mod failures;
mod grant;
mod overview;
mod place;
mod team;
mod teams;
mod view;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{MethodRouter, any, any_service, get};
use grabd_engine::accounts::Session;
use grabd_engine::operator::Operator;
use http::request::Parts;

use crate::frame::{Client, only};
use crate::page::Frame;
use crate::problem::Problem;
use crate::{FORM, READ, Web};

/// The overview; all other pages lie below it.
pub(crate) const PATH: &str = "/operator";

/// The pages in the order of their navigation: the path, and what people call it.
const PAGES: [(&str, &str); 3] =
    [(PATH, "Overview"), ("/operator/teams", "Teams"), ("/operator/failures", "Recent failures")];

/// All routes, behind the gate.
pub(crate) fn router(web: &Arc<Web>) -> Router<Arc<Web>> {
    // As a service of any method: what a path allows is said behind the gate.
    let of = |allowed, methods: MethodRouter<Arc<Web>>| any_service(only(allowed, methods).with_state(Arc::clone(web)));
    Router::new()
        .route(PATH, of(READ, get(overview::show)))
        .route("/operator/teams", of(READ, get(teams::show)))
        .route("/operator/teams/{team}", of(READ, get(team::show)))
        .route("/operator/teams/{team}/credits", of(FORM, get(grant::show).post(grant::submit)))
        .route("/operator/failures", of(READ, get(failures::show)))
        .route("/operator/", any(nothing))
        .route("/operator/{*rest}", any(nothing))
        .layer(middleware::from_fn_with_state(Arc::clone(web), gate))
}

/// An operator in front of a browser.
#[derive(Clone)]
struct AtOperator {
    operator: Operator,
    session: Session,
}

/// Lets operators alone through.
async fn gate(
    State(web): State<Arc<Web>>,
    client: Client,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else { return Err(unknown()) };
    let Some(operator) = Operator::of(&person.session) else { return Err(unknown()) };
    request.extensions_mut().insert(AtOperator { operator, session: person.session });
    Ok(next.run(request).await)
}

async fn nothing() -> Problem {
    unknown()
}

fn unknown() -> Problem {
    Problem::not_found("There is nothing at this address for you.")
}

impl<S: Sync> FromRequestParts<S> for AtOperator {
    type Rejection = Problem;

    /// Whom the gate let through.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get().cloned().ok_or_else(unknown)
    }
}

/// A link of the pages' navigation.
struct Link {
    path: &'static str,
    label: &'static str,
    is_here: bool,
}

/// The navigation of the pages; `here` is the path of the one that is shown, or of the one above it.
fn navigation(here: &str) -> Vec<Link> {
    PAGES.into_iter().map(|(path, label)| Link { path, label, is_here: path == here }).collect()
}

impl AtOperator {
    fn frame(&self, web: &Web) -> Frame {
        web.frame_of(&self.session, PATH)
    }
}
