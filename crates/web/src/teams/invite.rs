//! `/teams/{team}/invitations` and `/teams/{team}/invitations/{invitation}/withdraw`

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::accounts::Role;
use grabd_engine::accounts::{self, InviteError, TeamError};
use http::StatusCode;

use super::people::{Shown, back};
use crate::Web;
use crate::accounts::sign_up::WANTED_EMAIL;
use crate::form::Complaint;
use crate::frame::Client;
use crate::problem::Problem;
use crate::sent::Sent;

/// Invites somebody. Where no mail is sent, the answer is the page with the link, this once.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let Sent { person, form } = web.sent(&web.limits.pages, client, request).await?;
    let team = web.my_team(&person.session, &team).await?;
    let email = form.one("email");
    let role = if form.one("role") == Role::Owner.as_str() { Role::Owner } else { Role::Member };
    let complaint = match accounts::invite(&web.core, &person.session.person, team.team, email, role).await {
        Ok(accounts::Sent::Mailed) => return Ok(back(&team, "invited")),
        Ok(accounts::Sent::ByHand(link)) => {
            let shown = Shown { link: Some(&link), ..Shown::default() };
            return shown.page(&web, &person.session, team, StatusCode::OK).await;
        }
        Err(InviteError::Email(_)) => WANTED_EMAIL.to_owned(),
        Err(InviteError::TooMany) => {
            "Many invitations were sent in the last hour, by this team or to this address. Try again in an hour."
                .to_owned()
        }
        Err(InviteError::Team(TeamError::AlreadyIn)) => "Whoever has this address is in the team already.".to_owned(),
        Err(InviteError::Team(TeamError::Full)) => {
            "As many invitations are open as there may be. Take one back that is not needed any more.".to_owned()
        }
        Err(InviteError::Team(error)) => return Err(error.into()),
    };
    let errors = [Complaint { field: "email", message: complaint }];
    let shown = Shown { email, errors: &errors, ..Shown::default() };
    shown.page(&web, &person.session, team, StatusCode::UNPROCESSABLE_ENTITY).await
}

/// Takes one back.
pub(crate) async fn withdraw(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, invitation)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let Sent { person, form: _ } = web.sent(&web.limits.pages, client, request).await?;
    let team = web.my_team(&person.session, &team).await?;
    let invitation = invitation.parse().map_err(|_| TeamError::Unknown)?;
    accounts::withdraw(&web.core, person.session.person.id, team.team, invitation).await?;
    Ok(back(&team, "withdrawn"))
}
