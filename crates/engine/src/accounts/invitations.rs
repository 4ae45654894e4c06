//! Owners invite people by e-mail. Coming in takes the link and the invited address: an account under another one does not
//! do, so a link that is passed on by mistake lets no stranger in under their own name.

use grabd_domain::accounts::{Email, EmailError, PasswordError, Role, check_password};
use grabd_domain::credentials::{InviteToken, SessionToken};
use grabd_domain::ids::{InvitationId, TeamId, UserId};
use grabd_domain::teams::INVITATION_LIFE;
use grabd_domain::{Fault, Timestamp};
use grabd_store::{Arrival, Arrived, NewInvitation};

use super::membership::told;
use super::passwords::Busy;
use super::people::{BUSY_RETRY_S, Person, open_session};
use super::{TeamError, find_team};
use crate::chance;
use crate::core::{Core, inside};
use crate::digest;
use crate::mail::letters;

/// An invitation that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Its id.
    pub id: InvitationId,
    /// Into which team.
    pub team: TeamId,
    /// What people call it.
    pub team_name: String,
    /// For whom.
    pub email: Email,
    /// As what.
    pub role: Role,
    /// Who gave it.
    pub invited_by: Email,
    /// Until when it counts.
    pub expires_at: Timestamp,
}

/// How the link gets to whoever is invited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// By mail.
    Mailed,
    /// By whoever invited them: this is the link, and it is in no other place.
    ByHand(String),
}

/// Why nobody was invited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InviteError {
    /// The address is none.
    #[error(transparent)]
    Email(#[from] EmailError),
    /// They, or this team, have had many letters in the last hour.
    #[error("too many letters")]
    TooMany,
    /// As with every change of a team.
    #[error(transparent)]
    Team(#[from] TeamError),
}

/// Why nobody came in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArriveError {
    /// The invitation counts no more, or never did.
    #[error("no such invitation")]
    Unknown,
    /// The team has as many people as it may have.
    #[error("the team is full")]
    Full,
    /// The password will not do.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// There is an account already, which they have to sign in to.
    #[error("somebody has that e-mail address")]
    EmailTaken,
    /// Too many at once.
    #[error("too many at once; retry in {retry_after_s} s")]
    TooMany {
        /// When to come back.
        retry_after_s: u64,
    },
    /// Our own failure.
    #[error(transparent)]
    Inside(#[from] Fault),
}

/// Invites somebody into a team and, where letters are sent, writes to them.
///
/// # Errors
/// For a bad address, for whoever is no owner, and for those who write too many letters.
pub async fn invite(core: &Core, by: &Person, team: TeamId, email: &str, role: Role) -> Result<Sent, InviteError> {
    let email = Email::parse(email)?;
    let team_name = match find_team(core, by.id, team).await? {
        mine if mine.role == Role::Owner => mine.name,
        _ => return Err(TeamError::NotOwner.into()),
    };
    if core.sends_mail() && !(core.quotas.may_invite(team) && core.quotas.may_write_to(&email)) {
        return Err(InviteError::TooMany);
    }
    let token = InviteToken::new(&chance::secret_text()).expect("32 bytes are 43 base64url characters");
    let now = core.clock.now();
    let new = NewInvitation {
        id: chance::invitation_id(now),
        hash: digest::of(token.expose()),
        team,
        email: email.clone(),
        role,
        by: by.id,
        now,
        expires_at: now + INVITATION_LIFE,
    };
    told("accounts.invite", core.store.invite(new).await)?;
    tracing::info!(team.id = %team, user.id = %by.id, role = role.as_str(), "somebody was invited");
    let link = format!("{}/invitation?token={}", core.settings.oauth.issuer, token.expose());
    let letter = letters::invitation(email, &by.email, &team_name, &core.host(), &link);
    match core.letterbox.as_ref().map(|letterbox| letterbox.post(letter)) {
        Some(Ok(())) => Ok(Sent::Mailed),
        Some(Err(_)) | None => Ok(Sent::ByHand(link)),
    }
}

/// The invitations into a team that count, for whoever is in it; the newest first.
///
/// # Errors
/// [`TeamError::NotIn`] for everybody else.
pub async fn list_invitations(core: &Core, user: UserId, team: TeamId) -> Result<Vec<Invitation>, TeamError> {
    find_team(core, user, team).await?;
    let listed = core.store.list_invitations(team, core.clock.now()).await;
    Ok(listed.map_err(inside("accounts.list_invitations"))?.into_iter().map(Invitation::from).collect())
}

/// Takes an invitation back: its link opens nothing any more.
///
/// # Errors
/// For whoever is no owner, and when the team has no such invitation.
pub async fn withdraw(core: &Core, by: UserId, team: TeamId, invitation: InvitationId) -> Result<(), TeamError> {
    told("accounts.withdraw", core.store.withdraw(team, invitation, by).await)
}

/// What a link is about; `None` when it counts no more, or never did.
///
/// # Errors
/// Only our own.
pub async fn find_invitation(core: &Core, token: &str) -> Result<Option<Invitation>, Fault> {
    let Some(token) = InviteToken::parse(token) else { return Ok(None) };
    let found = core.store.find_invitation(&digest::of(token.expose()), core.clock.now()).await;
    Ok(found.map_err(inside("accounts.find_invitation"))?.map(Invitation::from))
}

/// Lets somebody with an account come in; into which team.
///
/// # Errors
/// [`TeamError::Unknown`] when the link counts no more, or is for another address.
pub async fn accept(core: &Core, person: &Person, token: &str) -> Result<TeamId, TeamError> {
    let token = InviteToken::parse(token).ok_or(TeamError::Unknown)?;
    let accepted = core.store.accept(digest::of(token.expose()), person.id, person.email.clone(), core.clock.now());
    let team = told("accounts.accept", accepted.await)?;
    tracing::info!(team.id = %team, user.id = %person.id, "an invitation was accepted");
    Ok(team)
}

/// Creates an account for whoever has none, lets them come in, and signs them in; into which team. An invitation is enough
/// for that where nobody may sign up by themselves.
///
/// # Errors
/// What keeps them from it.
pub async fn arrive(core: &Core, token: &str, password: &str) -> Result<(SessionToken, TeamId), ArriveError> {
    check_password(password)?;
    let token = InviteToken::parse(token).ok_or(ArriveError::Unknown)?;
    let hash = digest::of(token.expose());
    let found = core.store.find_invitation(&hash, core.clock.now()).await.map_err(inside("accounts.arrive"))?;
    if found.is_none() {
        return Err(ArriveError::Unknown);
    }
    let busy = |Busy| ArriveError::TooMany { retry_after_s: BUSY_RETRY_S };
    let password_hash = core.passwords.hash(&core.tasks, password).await.map_err(busy)?;
    let now = core.clock.now();
    let user = chance::user_id(now);
    let arrived = core.store.arrive(Arrival { hash, user, password_hash, now }).await;
    match arrived.map_err(inside("accounts.arrive"))? {
        Arrived::Yes(team) => {
            tracing::info!(team.id = %team, user.id = %user, "an invitation was accepted with a new account");
            Ok((open_session(core, user).await?, team))
        }
        Arrived::EmailTaken => Err(ArriveError::EmailTaken),
        Arrived::Refused(grabd_store::Refusal::Full) => Err(ArriveError::Full),
        Arrived::Refused(_) => Err(ArriveError::Unknown),
    }
}

impl From<grabd_store::Invitation> for Invitation {
    fn from(invitation: grabd_store::Invitation) -> Self {
        let grabd_store::Invitation { id, team, team_name, email, role, invited_by, expires_at } = invitation;
        Self { id, team, team_name, email, role, invited_by, expires_at }
    }
}
