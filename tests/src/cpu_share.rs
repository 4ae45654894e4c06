//! A fixed share of the processor for a process and its descendants, by a control group.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::io::Errno;

/// Length of a period in microseconds.
const PERIOD_US: u64 = 100_000;

/// A control group. It is removed when dropped, if its processes have ended.
pub struct CpuShare {
    directory: PathBuf,
}

impl CpuShare {
    /// A group that may use this percentage of one processor. `None` if this machine has no control groups for that, or
    /// this user must not make one.
    ///
    /// # Errors
    /// If the share is not accepted.
    pub fn create(name: &str, percent: u64) -> Result<Option<Self>> {
        let quota = PERIOD_US * percent / 100;
        let version_2 = Path::new("/sys/fs/cgroup");
        let has_controller = std::fs::read_to_string(version_2.join("cgroup.subtree_control"))
            .is_ok_and(|controllers| controllers.split_whitespace().any(|controller| controller == "cpu"));
        let (parent, settings) = match has_controller {
            true => (version_2.to_owned(), vec![("cpu.max", format!("{quota} {PERIOD_US}"))]),
            false => {
                let quotas = [("cpu.cfs_period_us", PERIOD_US), ("cpu.cfs_quota_us", quota)];
                (version_2.join("cpu"), quotas.map(|(file, value)| (file, value.to_string())).to_vec())
            }
        };
        let directory = parent.join(format!("{name}-{}", std::process::id()));
        if !parent.join("cgroup.procs").exists() || std::fs::create_dir(&directory).is_err() {
            return Ok(None);
        }
        let group = Self { directory };
        for (file, value) in settings {
            let path = group.directory.join(file);
            std::fs::write(&path, value).with_context(|| format!("{} is not accepted", path.display()))?;
        }
        Ok(Some(group))
    }

    /// Moves a process into the group, unless it has ended. Its later children are in it, too.
    ///
    /// # Errors
    /// If this user must not move it.
    pub fn add(&self, pid: u32) -> Result<()> {
        match std::fs::write(self.directory.join("cgroup.procs"), pid.to_string()) {
            Err(error) if Errno::from_io_error(&error) != Some(Errno::SRCH) => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Drop for CpuShare {
    fn drop(&mut self) {
        // Fails while a process is ending. An empty group costs nothing.
        let _ = std::fs::remove_dir(&self.directory);
    }
}
