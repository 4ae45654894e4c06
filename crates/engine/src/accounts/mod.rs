//! Teams and their keys.

mod keys;
mod teams;

pub use keys::{hash, issue_key};
pub use teams::{NewTeamKeys, create_team, grant_prepaid, start_subscription};
