//! Teams, members, keys, users, passwords, passkeys, second factors and sessions.

mod access;
mod access_cache;
mod authenticator_app;
mod change_password;
mod code_check;
mod code_sign_in;
mod deletion;
mod devices;
mod first_steps;
mod invitations;
mod keys;
mod known_secrets;
mod last_use;
mod membership;
mod operator_sign_in;
mod passkeys;
mod passwords;
mod pending_sign_in;
mod rate_limits;
mod recovery_codes;
mod second_factor;
mod second_factor_mail;
mod second_factor_setup;
mod sessions;
mod suspension;
mod team_keys;
mod team_members;
mod teams;
mod totp;
mod trial;
mod tries;
mod users;
mod verification;
mod waits;

use std::sync::Arc;

use grabd_domain::team_limits::TeamLimit;
use tokio::sync::Semaphore;

use crate::limits::{SharedLimits, TeamLimits};
use crate::mail::{Mailer, Quotas};

pub(crate) use access::requests_per_minute;
pub use access::{
    Access, authenticate, begin_wait, open_wait, open_waits, own_async_queue, record_use, take_request, take_requests,
};
pub use access_cache::ACCEPTED_FOR;
use access_cache::AccessCache;
pub use authenticator_app::set_authenticator_app;
pub use change_password::{
    ChangePasswordError, PasswordConfirmationError, ResetError, change_password, is_reset_valid,
    request_password_reset, reset_password,
};
pub use code_check::{CodeError, FactorAnswer};
pub use code_sign_in::{CodeSignInError, PendingSignInInfo, find_pending_sign_in, sign_in_with_code};
pub use deletion::{DeletionError, delete_account, delete_team, delete_team_as_operator, delete_user_as_operator};
pub use devices::{SignInSource, is_known_device, remember_device};
pub use first_steps::{find_first_steps, hide_first_steps};
pub use grabd_store::accounts::{FirstSteps, TeamSecret};
pub use invitations::{
    Invitation, InvitationSignUpError, InviteError, InviteOutcome, accept_invitation, find_invitation, invite,
    list_invitations, sign_up_with_invitation, withdraw_invitation,
};
pub use keys::{KeyLimits, issue_key, issue_restricted_key};
pub use known_secrets::{RemainingSecret, list_member_secrets, list_secrets_known_to, list_secrets_of_former_members};
pub(crate) use last_use::LastUse;
pub use membership::{
    Member, TeamError, UserTeam, create_own_team, find_permitted_team, find_team, leave, list_members, list_teams,
    remove_member, rename_team, set_role,
};
pub use passkeys::add::{AddPasskeyError, NewPasskeyChallenge, add_passkey, confirm_new_passkey};
pub use passkeys::manage::{PasskeyInfo, RenamePasskeyError, list_passkeys, remove_passkey, rename_passkey};
pub use passkeys::relying_party::has_passkeys;
pub use passkeys::sign_in::{PasskeySignInError, sign_in_with_passkey};
pub use passkeys::verify::{PasskeyAnswer, PasskeyChallenge, PasskeyError, new_passkey_challenge};
pub(crate) use passwords::Passwords;
pub use pending_sign_in::{PendingSignIn, SignInOutcome};
pub(crate) use rate_limits::RateLimits;
pub use rate_limits::{Bucket, RateLimitDecision};
pub use second_factor::{
    SecondFactorError, SecondFactorStatus, find_second_factor, replace_recovery_codes, turn_off_second_factor,
    turn_on_second_factor,
};
pub use second_factor_setup::{SecondFactorSetup, find_second_factor_setup, new_second_factor_setup};
pub use sessions::{
    Session, SessionInfo, User, end_other_sessions, end_session, find_session, list_sessions, record_user_agent,
    sign_out,
};
pub use suspension::{SUSPENSION_REASON_CHARS, list_suspended_teams, suspend_team, suspension_reason};
pub use team_keys::{KEY_USAGE_PERIOD, TeamKey, create_key, key_names, list_keys, revoke_key};
pub use team_members::{TeamMember, find_team_member};
pub use teams::{NewTeamKeys, create_team, grant_prepaid, start_subscription};
pub use users::{
    CreateUserError, Membership, SignInError, SignUpError, SignedUp, create_user, list_memberships, personal_team,
    sign_in, sign_up,
};
pub use verification::{
    Verification, VerificationError, VerificationRequest, find_verification, is_verified, request_verification,
    take_over_account, verify_email,
};
pub(crate) use waits::Waits;
pub use waits::{OPEN_WAITS_PER_REQUEST, WAITS_PER_REQUEST};

/// Password resets processed at the same time.
const MAX_CONCURRENT_RESETS: usize = 64;

/// The state of the use-cases of accounts.
pub(crate) struct Accounts {
    pub(crate) passwords: Passwords,
    /// `None` when no mail is sent.
    pub(crate) mailer: Option<Mailer>,
    pub(crate) quotas: Quotas,
    pub(crate) resets: Arc<Semaphore>,
    pub(crate) rate_limits: RateLimits,
    pub(crate) waits: Waits,
    pub(crate) last_use: LastUse,
    pub(crate) accepted: AccessCache,
}

impl Accounts {
    pub(crate) fn new(mailer: Option<Mailer>, requests_per_minute: u32, is_cluster: bool) -> Self {
        Self {
            passwords: Passwords::default(),
            mailer,
            quotas: Quotas::default(),
            resets: Arc::new(Semaphore::new(MAX_CONCURRENT_RESETS)),
            rate_limits: RateLimits::new(requests_per_minute, is_cluster.then(SharedLimits::default)),
            waits: Waits::new(requests_per_minute),
            last_use: LastUse::default(),
            accepted: AccessCache::default(),
        }
    }

    /// Forgets the rate limits of teams that have none of their own any more.
    pub(crate) fn forget_former_limits(&self, limits: &TeamLimits) {
        self.rate_limits.retain_own(|team| limits.of(team, TeamLimit::RequestsPerMinute).is_some());
        self.waits.retain_own(|team| limits.of(team, TeamLimit::RequestsPerMinute).is_some());
        self.quotas.retain_own(|team| limits.of(team, TeamLimit::InvitationsPerDay).is_some());
    }
}
