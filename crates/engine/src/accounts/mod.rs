//! Teams and their keys, people and their sessions.

mod change_password;
mod insiders;
mod invitations;
mod keys;
mod membership;
mod passwords;
mod people;
mod sessions;
mod team_keys;
mod teams;

pub use change_password::{ChangePasswordError, ResetError, ask_for_reset, change_password, may_reset, reset_password};
pub use insiders::{Insider, find_insider};
pub use invitations::{
    ArriveError, Invitation, InviteError, Sent, accept, arrive, find_invitation, invite, list_invitations, withdraw,
};
pub use keys::issue_key;
pub use membership::{
    Member, MyTeam, TeamError, appoint, dismiss, find_team, found_team, leave, list_members, list_teams, rename_team,
};
pub(crate) use passwords::Passwords;
pub use people::{
    CreatePersonError, Membership, Person, Session, SignInError, SignUpError, create_person, find_session,
    list_memberships, own_team, sign_in, sign_out, sign_up,
};
pub use sessions::{MySession, end_other_sessions, end_session, list_sessions, note_agent};
pub use team_keys::{TeamKey, list_keys, make_key, revoke_key};
pub use teams::{NewTeamKeys, create_team, grant_prepaid, start_subscription};
