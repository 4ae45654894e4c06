//! The pages for operators: the state of the service, all teams and people, recent failures, rules for domains, the audit
//! trail. One file per page.
//!
//! [`require_operator`] protects all paths below [`PATH`]: everybody else gets 404 for each of them, whether or not the
//! page exists. To add a page, add a line in [`routes`], and one in [`navigation`] if it should be a tab.

mod audit;
mod context;
mod cursor;
mod domains;
mod failures;
mod grant;
mod hours;
mod limit_table;
mod navigation;
mod overview;
mod people;
mod service_limits;
mod suspend;
mod team;
mod team_limits;
mod teams;
mod view;

use std::sync::Arc;

use axum::routing::{MethodRouter, any, any_service, get};
use axum::{Router, middleware};

use self::context::{require_operator, unknown};
use self::navigation::{AUDIT, AUDIT_CSV, DOMAINS, FAILURES, LIMITS, PATH, PEOPLE, TEAMS};
use crate::problem::Problem;
use crate::response::{FORM, READ, only};
use crate::state::Web;

/// Path, `Allow` header and handlers of each page.
pub(crate) fn routes() -> [(&'static str, &'static str, MethodRouter<Arc<Web>>); 14] {
    [
        (PATH, READ, get(overview::show)),
        (TEAMS, READ, get(teams::show)),
        ("/operator/teams/{team}", READ, get(team::show)),
        ("/operator/teams/{team}/credits", FORM, get(grant::show).post(grant::submit)),
        ("/operator/teams/{team}/suspend", FORM, get(suspend::confirm).post(suspend::suspend)),
        ("/operator/teams/{team}/restore", FORM, get(grant::show).post(suspend::restore)),
        ("/operator/teams/{team}/limits", FORM, get(grant::show).post(team_limits::submit)),
        (FAILURES, READ, get(failures::show)),
        (DOMAINS, FORM, get(domains::show).post(domains::add)),
        ("/operator/domains/{domain}/remove", FORM, get(domains::redirect_to_page).post(domains::remove)),
        (LIMITS, READ, get(service_limits::show)),
        (AUDIT, READ, get(audit::show)),
        (AUDIT_CSV, READ, get(audit::download)),
        (PEOPLE, READ, get(people::show)),
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

async fn not_found() -> Problem {
    unknown()
}
