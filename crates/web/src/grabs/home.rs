//! `/grabs` and `/capture`: redirect to pages of the team that the user joined first.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::permissions::Permission;
use grabd_engine::accounts::{self, Membership};
use http::{HeaderMap, Uri};

use crate::client_ip::ClientIp;
use crate::extract::{QueryForm, SignedInPage, take_page};
use crate::paths::{self, VERIFIED};
use crate::problem::Problem;
use crate::response::see_other;
use crate::session::{SignedIn, sign_in_url_for};
use crate::state::Web;
use crate::team::first_page;

/// Redirects to the gallery, or to the first page that the user may see if their roles allow no gallery. A user without a team,
/// who may have been removed from the last one, is redirected to the page that creates one.
pub(crate) async fn show(State(web): State<Arc<Web>>, SignedInPage(user): SignedInPage) -> Result<Response, Problem> {
    let found = first_team(&web, &user, Permission::ViewCaptures).await?;
    Ok(match found {
        Some(Membership { team, role, .. }) => see_other(&paths::team_page(team, first_page(role))),
        None => see_other(paths::TEAMS),
    })
}

/// Redirects to the form for a new capture, with the options of the query. A visitor is redirected to the sign-in page,
/// which redirects back with the query.
pub(crate) async fn capture(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    QueryForm(options): QueryForm,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    take_page(&web, client, &headers).await?;
    let Some(user) = web.signed_in(&headers).await? else { return Ok(see_other(&sign_in_url_for(&uri))) };
    let Membership { team, .. } = match first_team(&web, &user, Permission::Capture).await {
        Ok(Some(found)) => found,
        // An account without a team, whose address was just verified.
        _ if options.has(VERIFIED) => return Ok(see_other(&format!("{}?{VERIFIED}", paths::ACCOUNT))),
        Ok(None) => return Ok(see_other(paths::TEAMS)),
        Err(problem) => return Err(problem),
    };
    let path = paths::team_page(team, "capture");
    let query = options.to_query();
    Ok(see_other(&if query.is_empty() { path } else { format!("{path}?{query}") }))
}

/// The team that the user joined first of those in which they have the permission, or of all if there is none. `None` if they
/// are in no team.
///
/// # Errors
/// When all teams of the user are suspended, and when the database fails.
pub(crate) async fn first_team(
    web: &Web,
    user: &SignedIn,
    permission: Permission,
) -> Result<Option<Membership>, Problem> {
    let mut teams = accounts::list_memberships(&web.core, user.session.user.id).await?;
    if let Some(permitted) = teams.iter().position(|team| team.role.allows(permission)) {
        return Ok(Some(teams.swap_remove(permitted)));
    }
    match teams.into_iter().next() {
        Some(first) => Ok(Some(first)),
        None if web.has_only_suspended_teams(&user.session).await? => Err(Problem::team_suspended()),
        None => Ok(None),
    }
}
