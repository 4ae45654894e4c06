//! The share of the processors that browsers get while others want them, too: less than the service and the database.
//!
//! Niceness weighs threads, so a page with many of them still takes most of the processors. A control group weighs whole
//! browsers. So does, without one, the session that the launcher makes: Linux groups the threads of each session
//! (`sched_autogroup_enabled`), unless a control group for processors contains the service.

use std::fs;

use rustix::process::{Pid, setpriority_pgrp, setpriority_process};

/// A third of the share of a process with the usual niceness.
pub(crate) const NICENESS: i32 = 5;

/// The least share: about a twentieth of that of other browsers.
const LEAST: i32 = 19;

/// Lowers the priority of a browser's process, and of those that it starts from now on.
pub(super) fn lower(pid: u32) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    // A process that has ended needs none. It may have begun to start others.
    let _ = setpriority_process(Some(pid), NICENESS);
    let _ = setpriority_pgrp(Some(pid), NICENESS);
}

/// Lowers the priority of all processes of a browser as far as possible. It cannot be raised again.
pub(crate) fn minimize(pid: u32) {
    if let Some(group) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = setpriority_pgrp(Some(group), LEAST);
    }
}

/// Lowers the share of the calling process's session. It is not allowed everywhere, and sometimes only later.
pub(crate) fn lower_session() {
    let _ = fs::write("/proc/self/autogroup", NICENESS.to_string());
}
