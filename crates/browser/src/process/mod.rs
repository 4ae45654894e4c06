//! One browser process: found, started as the right user, watched, ended, and nothing of it left behind.

mod executable;
mod flags;
mod launch;
mod leftovers;
mod owner;
pub(crate) mod tree;

pub use executable::find_executable;
pub(crate) use launch::{Launch, Process, Way};
pub(crate) use leftovers::remove_leftovers;
pub use owner::BrowserUser;
pub(crate) use owner::{Owner, OwnerError, can_enter};
