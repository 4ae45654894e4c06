//! One browser process: locating the program, starting it as the right user, watching, ending, and cleaning up.

mod cgroup;
mod executable;
mod flags;
mod idle;
mod launch;
mod leftovers;
mod owner;
pub(crate) mod priority;
mod processor_times;
mod program_copy;
mod run_dir;
mod threads;
pub(crate) mod tree;

pub(crate) use cgroup::{Cgroup, Cgroups, Exceeded, Limits, weighs_sessions};
pub use executable::find_executable;
pub(crate) use idle::idle_state;
pub(crate) use launch::{Launch, Network, Process};
pub(crate) use leftovers::remove_leftovers;
pub use owner::BrowserUser;
pub(crate) use owner::{Owner, OwnerError, can_enter};
pub(crate) use processor_times::ProcessorTimes;
pub(crate) use program_copy::{Mapping, ProgramCopy};
pub use run_dir::short_name;
pub(crate) use run_dir::{RunDir, RunDirError};
pub(crate) use threads::ThreadTimes;
pub(crate) use tree::Usage;
