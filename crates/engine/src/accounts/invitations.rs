//! Invitations by e-mail. Accepting one takes the link and an account with the invited address, so a link that is
//! forwarded by mistake does not let another account join.

use std::num::NonZeroU32;

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, EmailError, PasswordError, Role, check_password};
use grabd_domain::credentials::{InviteToken, SessionToken};
use grabd_domain::ids::{InvitationId, TeamId, UserId};
use grabd_domain::permissions::Permission;
use grabd_domain::team_limits::TeamLimit;
use grabd_domain::teams::{INVITATION_LIFE, TeamName};
use grabd_store::accounts::{InvitedSignUp, NewInvitation, SignUpOutcome};

use super::membership::require_verified;
use super::passwords::{BUSY_RETRY_S, Busy, HashedFor};
use super::sessions::{User, open_first_session};
use super::trial::grant_trial;
use super::{TeamError, find_team};
use crate::digest;
use crate::error::{Error, internal_from};
use crate::mail::{QueueFull, templates};
use crate::random;
use crate::service::Core;

/// A valid invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Invitation id.
    pub id: InvitationId,
    /// The team to join.
    pub team: TeamId,
    /// Name of the team.
    pub team_name: String,
    /// Invited address.
    pub email: Email,
    /// Role in the team.
    pub role: Role,
    /// Address of the owner who invited.
    pub invited_by: Email,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// How the link reaches the invited user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InviteOutcome {
    /// It was queued as an e-mail.
    Mailed,
    /// The inviting owner passes this link on. It is not stored anywhere else.
    Link(String),
}

/// Why an invitation was not created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InviteError {
    /// The address is malformed.
    #[error(transparent)]
    Email(#[from] EmailError),
    /// The limit of letters to the address, or of invitations by the user or the team, is used up.
    #[error("too many e-mails")]
    TooMany,
    /// Too many messages are waiting: the mail server does not take them.
    #[error("the mail server takes no messages")]
    MailUnavailable,
    /// As for every change of a team.
    #[error(transparent)]
    Team(#[from] TeamError),
}

/// Why an invitation was not accepted with a new account.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvitationSignUpError {
    /// The invitation is unknown, expired or already used.
    #[error("no such invitation")]
    InvalidLink,
    /// The team has the maximum number of members.
    #[error("the team is full")]
    TeamFull,
    /// The password breaks a rule.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// The address has an account, which has to sign in and accept.
    #[error("somebody has that e-mail address")]
    EmailTaken,
    /// Too many concurrent requests.
    #[error("too many concurrent requests; retry in {retry_after_s} s")]
    TooMany {
        /// Seconds until the next try can succeed.
        retry_after_s: u64,
    },
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(InvitationSignUpError);

/// Invites an address to a team and, if mail is configured, sends the link. The link is then shown to nobody else, so
/// that its use verifies the address.
///
/// # Errors
/// For a malformed address, when `by` is not an owner or not verified, and beyond the mail limits.
#[tracing::instrument(name = "accounts.invite", skip_all)]
pub async fn invite(
    core: &Core,
    by: &User,
    team: TeamId,
    email: &str,
    role: Role,
) -> Result<InviteOutcome, InviteError> {
    let email = Email::parse(email)?;
    let team_name = match find_team(core, by.id, team).await? {
        team if team.role.allows(Permission::ManageMembers) => team.name,
        _ => return Err(TeamError::NotOwner.into()),
    };
    require_verified(core, by.id).await?;
    let own = core.limits.of(team, TeamLimit::InvitationsPerDay).and_then(NonZeroU32::new);
    let place = match &core.accounts.mailer {
        Some(_) if !(core.accounts.quotas.may_invite(by.id, team, own) && core.accounts.quotas.may_mail(&email)) => {
            return Err(InviteError::TooMany);
        }
        Some(mailer) => Some(mailer.reserve().map_err(|QueueFull| InviteError::MailUnavailable)?),
        None => None,
    };
    let token = InviteToken::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let now = core.clock.now();
    let new = NewInvitation {
        id: random::invitation_id(now),
        hash: digest::of(token.expose()),
        team,
        email: email.clone(),
        role,
        by: by.id,
        now,
        expires_at: now + INVITATION_LIFE,
        mailed: place.is_some(),
    };
    let invited = core.store_as(by.id).accounts().invite(new).await.map_err(TeamError::from)?;
    invited.map_err(TeamError::from)?;
    tracing::info!(team.id = %team, user.id = %by.id, role = role.as_str(), "invitation created");
    let link = format!("{}/invitation?token={}", core.oauth.settings.issuer, token.expose());
    match place {
        Some(place) => {
            // Names from before this rule may be unfit for letters.
            let team_name = TeamName::parse(&team_name).ok();
            place.send(templates::invitation(email, &by.email, team_name.as_ref(), &core.host(), &link));
            Ok(InviteOutcome::Mailed)
        }
        None => Ok(InviteOutcome::Link(link)),
    }
}

/// The valid invitations to a team, newest first. Visible to members.
///
/// # Errors
/// [`TeamError::NotMember`] when `user` is not in the team.
#[tracing::instrument(name = "accounts.list_invitations", skip_all)]
pub async fn list_invitations(core: &Core, user: UserId, team: TeamId) -> Result<Vec<Invitation>, TeamError> {
    find_team(core, user, team).await?;
    let listed = core.store.accounts().list_invitations(team, core.clock.now()).await;
    Ok(listed?.into_iter().map(Invitation::from).collect())
}

/// Withdraws an invitation, which invalidates its link.
///
/// # Errors
/// When `by` is not an owner, and when the team has no such invitation.
#[tracing::instrument(name = "accounts.withdraw_invitation", skip_all)]
pub async fn withdraw_invitation(
    core: &Core,
    by: UserId,
    team: TeamId,
    invitation: InvitationId,
) -> Result<(), TeamError> {
    Ok(core.store_as(by).accounts().withdraw_invitation(team, invitation, by).await??)
}

/// The invitation behind a link; `None` when it is unknown, expired or already used.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.find_invitation", skip_all)]
pub async fn find_invitation(core: &Core, token: &str) -> Result<Option<Invitation>, Error> {
    let Some(token) = InviteToken::parse(token) else { return Ok(None) };
    let found = core.store.accounts().find_invitation(&digest::of(token.expose()), core.clock.now()).await;
    Ok(found?.map(Invitation::from))
}

/// Adds a user with an account to the team of an invitation. Returns the team.
///
/// # Errors
/// [`TeamError::NotFound`] when the link is not valid or is for another address.
#[tracing::instrument(name = "accounts.accept_invitation", skip_all)]
pub async fn accept_invitation(core: &Core, user: &User, token: &str) -> Result<TeamId, TeamError> {
    let token = InviteToken::parse(token).ok_or(TeamError::NotFound)?;
    let store = core.store_as(user.id);
    let now = core.clock.now();
    let accepted = store.accounts().accept_invitation(digest::of(token.expose()), user.id, user.email.clone(), now);
    let team = accepted.await??;
    tracing::info!(team.id = %team, user.id = %user.id, "invitation accepted");
    grant_trial(core, user.id, now).await?;
    Ok(team)
}

/// Creates an account for the invited address, adds it to the team and opens a session. Works even when open sign-up is
/// disabled.
///
/// # Errors
/// See [`InvitationSignUpError`].
#[tracing::instrument(name = "accounts.sign_up_with_invitation", skip_all)]
pub async fn sign_up_with_invitation(
    core: &Core,
    token: &str,
    password: &str,
) -> Result<(SessionToken, TeamId), InvitationSignUpError> {
    check_password(password)?;
    let token = InviteToken::parse(token).ok_or(InvitationSignUpError::InvalidLink)?;
    let hash = digest::of(token.expose());
    // Checked first, so that a guessed token does not cost a password hash.
    let found = core.store.accounts().find_invitation(&hash, core.clock.now()).await?;
    if found.is_none() {
        return Err(InvitationSignUpError::InvalidLink);
    }
    let busy = |Busy| InvitationSignUpError::TooMany { retry_after_s: BUSY_RETRY_S };
    let password_hash =
        core.accounts.passwords.hash(&core.tasks, HashedFor::Known(hash), password).await.map_err(busy)?;
    let now = core.clock.now();
    let user = random::user_id(now);
    let sign_up = InvitedSignUp { hash, user, password_hash, verified: !core.sends_mail(), now };
    let arrived = core.store_as(user).accounts().sign_up_invited(sign_up).await;
    match arrived? {
        SignUpOutcome::Joined { team, user } => {
            tracing::info!(team.id = %team, user.id = %user, "invitation accepted with a new account");
            Ok((open_first_session(core, user).await?, team))
        }
        SignUpOutcome::EmailTaken => Err(InvitationSignUpError::EmailTaken),
        SignUpOutcome::Refused(grabd_store::accounts::TeamRuleError::LimitReached) => {
            Err(InvitationSignUpError::TeamFull)
        }
        SignUpOutcome::Refused(_) => Err(InvitationSignUpError::InvalidLink),
    }
}

impl From<grabd_store::accounts::Invitation> for Invitation {
    fn from(invitation: grabd_store::accounts::Invitation) -> Self {
        let grabd_store::accounts::Invitation { id, team, team_name, email, role, invited_by, expires_at, mailed: _ } =
            invitation;
        Self { id, team, team_name, email, role, invited_by, expires_at }
    }
}
