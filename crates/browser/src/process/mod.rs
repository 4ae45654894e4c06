//! One browser process: found, started as the right user, watched, ended, and nothing of it left behind.

mod cgroup;
mod executable;
mod flags;
mod launch;
mod leftovers;
mod owner;
mod run_dir;
mod stillness;
pub(crate) mod tree;

pub(crate) use cgroup::{Cgroup, Cgroups, Limits};
pub use executable::find_executable;
pub(crate) use launch::{Launch, Process, Way};
pub(crate) use leftovers::remove_leftovers;
pub use owner::BrowserUser;
pub(crate) use owner::{Owner, OwnerError, can_enter};
pub use run_dir::short_name;
pub(crate) use run_dir::{RunDir, RunDirError};
pub(crate) use stillness::stillness;
pub(crate) use tree::Usage;
