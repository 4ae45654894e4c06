//! What is deleted: grabs and images after the operator's retention, people and teams by their own request, and accounts
//! that were never used. Before anything is deleted by its age, the database's clock confirms the program's.

mod clock;
pub(crate) mod erase;
mod expire_users;
pub(crate) mod purge;
mod shorten;

pub use erase::{DeleteUserOutcome, Erasure};
pub use expire_users::{ExpiredUsers, UnverifiedCursor};
pub use purge::{EndedGrabRef, EndedGrabs, PurgedGrabs};
pub use shorten::{RequestProgress, Visited};
