//! `/teams/{team}/invitations` and `/teams/{team}/invitations/{invitation}/withdraw`: creates and withdraws
//! invitations.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::accounts::Role;
use grabd_engine::accounts::{self, InviteError, TeamError};
use http::StatusCode;

use super::members::unknown_role;
use super::users::{UsersView, redirect_with_notice};
use crate::extract::MyTeamForm;
use crate::fields::{EMAIL_MESSAGE, UNVERIFIED_MESSAGE};
use crate::form::FieldError;
use crate::problem::Problem;
use crate::state::Web;

/// Creates an invitation. If no mail is sent, the response shows the link once.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    MyTeamForm { user, team, form, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let email = form.get("email");
    let Some(role) = Role::parse(form.get("role")) else { return Err(unknown_role(form.get("role"))) };
    let mut status = StatusCode::UNPROCESSABLE_ENTITY;
    let message = match accounts::invite(&web.core, &user.session.user, team.team, email, role).await {
        Ok(accounts::InviteOutcome::Mailed) => return Ok(redirect_with_notice(&team, "invited")),
        Ok(accounts::InviteOutcome::Link(link)) => {
            let view = UsersView { link: Some(&link), ..UsersView::default() };
            return view.render(&web, &user.session, team, StatusCode::OK).await;
        }
        Err(InviteError::Email(_)) => EMAIL_MESSAGE.to_owned(),
        Err(InviteError::TooMany) => {
            "Too many invitations: 30 a day for you, 50 for the team, or 5 messages an hour to this address. Try again \
             later."
                .to_owned()
        }
        Err(InviteError::MailUnavailable) => "The e-mail could not be sent. Try again in a few minutes.".to_owned(),
        Err(InviteError::Team(TeamError::AlreadyMember)) => "This person is already a member of the team.".to_owned(),
        Err(InviteError::Team(TeamError::Full)) => {
            "The team has reached its limit of open invitations. Revoke one that is not needed.".to_owned()
        }
        Err(InviteError::Team(TeamError::Unverified)) => {
            status = StatusCode::FORBIDDEN;
            UNVERIFIED_MESSAGE.to_owned()
        }
        Err(InviteError::Team(error)) => return Err(error.into()),
    };
    let errors = [FieldError { field: "email", message }];
    let view = UsersView { email, role, errors: &errors, ..UsersView::default() };
    view.render(&web, &user.session, team, status).await
}

/// Withdraws an invitation.
pub(crate) async fn withdraw(
    State(web): State<Arc<Web>>,
    Path((_, invitation)): Path<(String, String)>,
    MyTeamForm { user, team, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let invitation = invitation.parse().map_err(|_| TeamError::NotFound)?;
    accounts::withdraw_invitation(&web.core, user.session.user.id, team.team, invitation).await?;
    Ok(redirect_with_notice(&team, "withdrawn"))
}
