//! Cleans up after an earlier run that was killed.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::flags::PROFILE_FLAG;
use super::run_dir::RunDir;
use super::tree;

/// A killed process ends within milliseconds, unless its disk hangs.
const DEATH_LIMIT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Ends every process whose profile is inside `run_dir`, with its group, and removes the directories in it. Symlinks are not
/// followed.
///
/// # Errors
/// When the directory cannot be cleared.
pub(crate) async fn remove_leftovers(run_dir: &RunDir) -> io::Result<()> {
    for pid in tree::with_path_argument_inside(PROFILE_FLAG, run_dir.path()) {
        tracing::warn!(pid, "ending a browser that an earlier run left behind");
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            end(pid).await;
        }
    }
    let mut entries = tokio::fs::read_dir(run_dir.pinned_path()).await?;
    while let Some(entry) = entries.next_entry().await? {
        if entry.file_type().await?.is_dir() {
            tokio::fs::remove_dir_all(entry.path()).await?;
        }
    }
    Ok(())
}

/// Kills a process and waits until it has ended. A process that does not exist or is not ours is ignored.
async fn end(pid: Pid) {
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if let Err(error) = kill_process(pid, Signal::KILL) {
        tracing::warn!(%error, "a leftover browser cannot be ended");
        return;
    }
    let wait = move || poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&DEATH_LIMIT));
    // Its directory is removed next. A process that does not end only loses its files.
    let _ = tokio::task::spawn_blocking(wait).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};

    #[tokio::test]
    async fn only_browsers_of_the_directory_are_ended() {
        let directory = tempfile::tempdir().unwrap();
        let (ours, other) = (directory.path().join("ours"), directory.path().join("other"));
        std::fs::create_dir_all(ours.join("browser-1/profile")).unwrap();
        std::fs::create_dir(&other).unwrap();
        let start = |profile: &Path| {
            let flag = format!("{PROFILE_FLAG}{}", profile.display());
            let mut shell = Command::new("sh");
            // Its helper, like a browser's, has nothing on its command line that identifies it. The helper reports its
            // own process ID: its command line is empty until it has started.
            let script = r#"exec 3<&0; sh -c 'echo $$; read -r line <&3; exit' & wait"#;
            shell.args(["-c", script, "sh", &flag]).process_group(0);
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
        };
        let helper_of = |shell: &mut Child| {
            let mut line = String::new();
            BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            PathBuf::from(format!("/proc/{}/cmdline", line.trim()))
        };
        let is_running = |helper: &Path| std::fs::read(helper).is_ok_and(|line| !line.is_empty());
        let mut left_behind = start(&ours.join("browser-1/profile"));
        let mut neighbour = start(&other);
        let (helper, others) = (helper_of(&mut left_behind), helper_of(&mut neighbour));
        assert!(is_running(&helper) && is_running(&others));

        // A link that a browser's user made leads to what must stay.
        std::os::unix::fs::symlink(&other, ours.join("link")).unwrap();
        std::os::unix::fs::symlink(&other, ours.join("browser-1/link")).unwrap();

        remove_leftovers(&RunDir::lock_existing(&ours).unwrap()).await.unwrap();

        // Waiting closes the helper's input, which would also end it.
        assert!(!is_running(&helper), "a browser's helper outlived it");
        assert!(!left_behind.wait().unwrap().success());
        assert!(is_running(&others), "a neighbour's helper was ended");
        let left: Vec<_> = std::fs::read_dir(&ours).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["link"]);
        assert!(other.exists());
        assert!(neighbour.try_wait().unwrap().is_none(), "a neighbour was ended");
        neighbour.kill().unwrap();
        neighbour.wait().unwrap();
    }
}
