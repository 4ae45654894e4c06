//! `/requests?request_id=…`: redirects to the recorded request with this id, in whichever of the user's teams it is.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::permissions::Permission;
use grabd_engine::{accounts, requests};

use super::PAGE;
use super::filter::Filters;
use crate::extract::{QueryForm, SignedInPage};
use crate::paths;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Redirects to the request, or to the list of the first team with the same filters.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    SignedInPage(user): SignedInPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let filters = Filters::of(&query)?;
    let user = user.session.user.id;
    let mut teams = accounts::list_teams(&web.core, user).await?;
    if teams.iter().any(|team| team.role.allows(Permission::ViewRequests)) {
        teams.retain(|team| team.role.allows(Permission::ViewRequests));
    } else {
        // The page of the first team says which role is needed.
        teams.truncate(1);
    }
    let Some(first) = teams.first() else { return Ok(see_other(paths::TEAMS)) };
    if filters.filter.request_id.is_some() {
        for team in &teams {
            let member = accounts::find_team_member(&web.core, user, team.team).await?;
            let permitted = member.filter(|member| member.role.allows(Permission::ViewRequests));
            let Some(member) = permitted else { continue };
            let found = requests::list(&web.core, &member, &filters.filter, None, 1).await?;
            if let Some(request) = found.requests.first() {
                return Ok(see_other(&paths::team_page(team.team, &format!("{PAGE}/{}", request.id))));
            }
        }
    }
    Ok(see_other(&filters.path(&paths::team_page(first.team, PAGE), None)))
}
