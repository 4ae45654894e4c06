//! The pages for operators: the state of the service, all teams, recent failures. One file per page.
//!
//! [`require_operator`] protects all paths below [`PATH`]: everybody else gets 404 for each of them, whether or not the
//! page exists. To add a page, add a line in [`router`], and one in [`PAGES`] if the navigation should link to it.

mod audit;
mod cursor;
mod failures;
mod grant;
mod overview;
mod suspend;
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

use crate::page::Layout;
use crate::problem::Problem;
use crate::response::{ClientIp, only};
use crate::{FORM, READ, Web};

/// The overview. All other pages are below it.
pub(crate) const PATH: &str = "/operator";

/// The pages in the order of the navigation: path and label.
const PAGES: [(&str, &str); 4] = [
    (PATH, "Overview"),
    ("/operator/teams", "Teams"),
    ("/operator/failures", "Recent failures"),
    (audit::PATH, "Audit trail"),
];

/// Path, `Allow` header and handlers of each page.
pub(crate) fn routes() -> [(&'static str, &'static str, MethodRouter<Arc<Web>>); 8] {
    [
        (PATH, READ, get(overview::show)),
        ("/operator/teams", READ, get(teams::show)),
        ("/operator/teams/{team}", READ, get(team::show)),
        ("/operator/teams/{team}/credits", FORM, get(grant::show).post(grant::submit)),
        ("/operator/teams/{team}/suspend", FORM, get(grant::show).post(suspend::suspend)),
        ("/operator/teams/{team}/restore", FORM, get(grant::show).post(suspend::restore)),
        ("/operator/failures", READ, get(failures::show)),
        (audit::PATH, READ, get(audit::show)),
    ]
}

/// All pages, protected by [`require_operator`].
pub(crate) fn router(web: &Arc<Web>) -> Router<Arc<Web>> {
    // Each route accepts any method, so that the 405 response comes after the check.
    let of = |allowed, methods: MethodRouter<Arc<Web>>| any_service(only(allowed, methods).with_state(Arc::clone(web)));
    routes()
        .into_iter()
        .fold(Router::new(), |router, (path, allowed, methods)| router.route(path, of(allowed, methods)))
        .route("/operator/", any(not_found))
        .route("/operator/{*rest}", any(not_found))
        .layer(middleware::from_fn_with_state(Arc::clone(web), require_operator))
}

/// A signed-in operator.
#[derive(Clone)]
struct OperatorContext {
    operator: Operator,
    session: Session,
}

/// Middleware that rejects everybody but operators.
async fn require_operator(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else { return Err(unknown()) };
    let Some(operator) = Operator::from_session(&person.session) else { return Err(unknown()) };
    request.extensions_mut().insert(OperatorContext { operator, session: person.session });
    Ok(next.run(request).await)
}

async fn not_found() -> Problem {
    unknown()
}

fn unknown() -> Problem {
    Problem::not_found("This page does not exist, or you do not have access to it.")
}

impl<S: Sync> FromRequestParts<S> for OperatorContext {
    type Rejection = Problem;

    /// The operator that [`require_operator`] added to the request.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get().cloned().ok_or_else(unknown)
    }
}

/// A link of the navigation.
struct Link {
    path: &'static str,
    label: &'static str,
    is_here: bool,
}

/// The navigation. `here` is the path of the current page or of its parent.
fn navigation(here: &str) -> Vec<Link> {
    PAGES.into_iter().map(|(path, label)| Link { path, label, is_here: path == here }).collect()
}

impl OperatorContext {
    fn layout(&self, web: &Web) -> Layout {
        web.user_layout(&self.session, PATH)
    }
}
