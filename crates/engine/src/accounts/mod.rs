//! Teams and their keys, people and their sessions.

mod insiders;
mod keys;
mod passwords;
mod people;
mod teams;

pub use insiders::{Insider, find_insider};
pub use keys::issue_key;
pub(crate) use passwords::Passwords;
pub use people::{
    CreatePersonError, Membership, Person, Session, SignInError, SignUpError, create_person, find_session,
    list_memberships, own_team, sign_in, sign_out, sign_up,
};
pub use teams::{NewTeamKeys, create_team, grant_prepaid, start_subscription};
