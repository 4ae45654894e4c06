//! `/billing`: redirects to the page of the first team for which the user may buy credits. The price list links to it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::permissions::Permission;
use grabd_engine::accounts::Membership;

use super::HERE;
use crate::extract::SignedInPage;
use crate::grabs::home::first_team;
use crate::paths;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// The fragment of the packages on the page.
const PACKAGES: &str = "buy";

/// Redirects to the packages. A visitor is redirected to the sign-in page, which redirects back.
pub(crate) async fn show(State(web): State<Arc<Web>>, SignedInPage(user): SignedInPage) -> Result<Response, Problem> {
    let found = first_team(&web, &user, Permission::BuyCredits).await?;
    Ok(match found {
        Some(Membership { team, .. }) => see_other(&format!("{}#{PACKAGES}", paths::team_page(team, HERE))),
        None => see_other(paths::TEAMS),
    })
}
