//! Starts one browser, and guarantees that it ends.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::owner::Owner;
use super::{flags, priority, tree};
use crate::cdp::Client;
use crate::jail::{self, Launcher};
use crate::options::FrameMode;

/// The descriptors on which a browser expects its pipes.
const COMMANDS: i32 = 3;
const ANSWERS: i32 = 4;

/// Pipe buffer size, so that an image arrives in few reads. The kernel's limit for unprivileged users.
const PIPE_BYTES: usize = 1 << 20;

/// Lines of stderr that are kept to explain a crash.
const STDERR_LINES: usize = 20;
const STDERR_LINE_BYTES: usize = 400;

/// How long a browser may take to exit by itself.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);

/// How often the processes of a killed browser are looked at. They end within milliseconds, unless the machine is overloaded.
const DEATH_CHECK_INTERVAL: Duration = Duration::from_millis(20);
const MAX_DEATH_CHECKS: u32 = 100;

/// Parameters of a browser.
pub(crate) struct Launch<'a> {
    /// The program.
    pub(crate) executable: &'a Path,
    /// The browser's directory, which must not exist yet.
    pub(crate) directory: PathBuf,
    /// The user that it runs as.
    pub(crate) owner: Owner,
    /// The network that it runs in.
    pub(crate) network: Network<'a>,
    /// When frames are drawn.
    pub(crate) frames: FrameMode,
    /// The maximum size of one of its responses, in bytes.
    pub(crate) max_response_bytes: usize,
    /// The maximum number of its processes and threads. Enforced in a jail.
    pub(crate) max_tasks: u32,
}

/// The network a browser starts in.
pub(crate) enum Network<'a> {
    /// The host's network.
    Host {
        /// The port of the deny-all proxy.
        deny_port: u16,
    },
    /// A network namespace of its own.
    Jail {
        /// The launcher that creates it.
        launcher: &'a Launcher,
        /// Number of sockets that the launcher sends.
        sockets: usize,
        /// The launcher's standard input, over which it sends them.
        input: OwnedFd,
    },
}

/// A running browser process. Dropping it ends the process and removes its directory; [`Process::end`] waits for that.
pub(crate) struct Process {
    pid: u32,
    stderr: Arc<Mutex<VecDeque<String>>>,
    exited: CancellationToken,
    kill: CancellationToken,
}

impl Launch<'_> {
    /// Starts the browser. Its tasks run on `tracker`.
    ///
    /// # Errors
    /// When the directories, the pipes or the process cannot be created.
    pub(crate) fn start(self, tracker: &TaskTracker) -> io::Result<(Process, Client)> {
        let Self { executable, directory, owner, network, frames, max_response_bytes, max_tasks } = self;
        make_directories(&directory, owner)?;
        let (commands, to_browser) = make_pipe()?;
        let (from_browser, answers) = make_pipe()?;
        let mut command = network.command(executable, &directory.join("profile"), frames, max_tasks);
        command
            .env_clear()
            .envs(environment(&directory))
            .current_dir(&directory)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Owner::Other { uid, gid } = owner {
            // The standard library then also drops all supplementary groups.
            command.gid(gid).uid(uid);
        }
        command
            .fd_mappings(vec![
                FdMapping { parent_fd: commands, child_fd: COMMANDS },
                FdMapping { parent_fd: answers, child_fd: ANSWERS },
            ])
            .map_err(io::Error::other)?;
        let mut child = command.spawn()?;
        // The command holds the browser's ends. Drop it, so that the pipe closes when the browser ends.
        drop(command);

        let pid = child.id().unwrap_or_default();
        priority::lower(pid);
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(output) = child.stderr.take() {
            tracker.spawn(keep_tail(output, stderr.clone()));
        }
        let (exited, kill) = (CancellationToken::new(), CancellationToken::new());
        tracker.spawn(reap(child, directory, exited.clone(), kill.clone()));
        let client = Client::start(
            pipe::Sender::from_owned_fd(to_browser)?,
            pipe::Receiver::from_owned_fd(from_browser)?,
            max_response_bytes,
            tracker,
        );
        Ok((Process { pid, stderr, exited, kill }, client))
    }
}

impl Network<'_> {
    /// The command with its arguments and its standard input.
    fn command(self, executable: &Path, profile: &Path, frames: FrameMode, max_tasks: u32) -> Command {
        match self {
            Self::Host { deny_port } => {
                let mut command = Command::new(executable);
                command.args(flags::command_line(profile, deny_port, frames)).stdin(Stdio::null()).process_group(0);
                command
            }
            Self::Jail { launcher, sockets, input } => {
                let mut command = Command::new(launcher.program());
                // The launcher makes a session of its own, which is a process group.
                command
                    .args(Launcher::arguments(executable, sockets, max_tasks))
                    .args(flags::command_line(profile, jail::DENY_PORT, frames))
                    .stdin(input);
                command
            }
        }
    }
}

impl Process {
    /// The process ID, which is also the process group ID.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Cancelled when the process has exited.
    pub(crate) fn exited(&self) -> &CancellationToken {
        &self.exited
    }

    /// The last lines that the browser wrote to stderr.
    pub(crate) fn stderr_tail(&self) -> String {
        let lines = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }

    /// Kills the process and its group, without waiting for their end.
    pub(crate) fn kill(&self) {
        self.kill.cancel();
    }

    /// Waits until the process exits by itself, or kills it. Its directory is removed afterwards.
    pub(crate) async fn end(&self, graceful: bool) {
        if graceful {
            // On a timeout it is killed below.
            let _ = tokio::time::timeout(CLOSE_LIMIT, self.exited.cancelled()).await;
        }
        self.kill.cancel();
        if tokio::time::timeout(2 * CLOSE_LIMIT, self.exited.cancelled()).await.is_err() {
            tracing::error!(pid = self.pid, "a browser did not end after it was killed");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill.cancel();
    }
}

/// Cleans up after a process: ends its group, collects its status, removes its directory.
async fn reap(mut child: Child, directory: PathBuf, exited: CancellationToken, kill: CancellationToken) {
    let pid = child.id().unwrap_or_default();
    if kill.run_until_cancelled(child.wait()).await.is_none() {
        // The launcher may not have made the group yet.
        if let Some(leader) = to_pid(pid) {
            let _ = kill_process(leader, Signal::KILL);
        }
        kill_group(pid);
        // A second wait only fails if the first one has collected the status.
        let _ = child.wait().await;
    }
    // Helper processes that outlived the browser.
    kill_group(pid);
    group_ended(pid).await;
    if let Err(error) = tokio::fs::remove_dir_all(&directory).await
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "a browser's directory cannot be removed");
    }
    exited.cancel();
}

fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Waits until the killed processes of a group have released their memory and processors. Those that process 1 does not
/// collect stay in the group.
async fn group_ended(pid: u32) {
    let Some(group) = to_pid(pid) else { return };
    // There is no event for the end of a process that is not a child.
    let mut ticks = tokio::time::interval(DEATH_CHECK_INTERVAL);
    for _ in 0..MAX_DEATH_CHECKS {
        ticks.tick().await;
        let is_empty = test_kill_process_group(group).is_err();
        if is_empty || tokio::task::spawn_blocking(move || !tree::has_living_member(pid)).await.unwrap_or(true) {
            return;
        }
    }
    tracing::error!(pid, "some processes of a browser did not end after they were killed");
}

fn kill_group(pid: u32) {
    if let Some(group) = to_pid(pid) {
        // `ESRCH` means that the group has ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The browser's environment. Nothing is inherited from the service.
fn environment(directory: &Path) -> [(&'static str, PathBuf); 8] {
    [
        ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
        ("LANG", "C.UTF-8".into()),
        ("HOME", directory.join("home")),
        ("TMPDIR", directory.join("tmp")),
        ("XDG_CACHE_HOME", directory.join("home/cache")),
        ("XDG_CONFIG_HOME", directory.join("home/config")),
        ("XDG_DATA_HOME", directory.join("home/data")),
        ("XDG_RUNTIME_DIR", directory.join("tmp")),
    ]
}

fn make_directories(directory: &Path, owner: Owner) -> io::Result<()> {
    for path in [directory.to_owned(), directory.join("profile"), directory.join("home"), directory.join("tmp")] {
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        if let Owner::Other { uid, gid } = owner {
            chown(&path, Some(uid), Some(gid))?;
        }
    }
    Ok(())
}

/// Creates a pipe as (read end, write end), with close-on-exec.
fn make_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // A smaller pipe also works, but is slower.
    let _ = rustix::pipe::fcntl_setpipe_size(&write, PIPE_BYTES);
    Ok((read, write))
}

async fn keep_tail(output: impl AsyncRead + Unpin, tail: Arc<Mutex<VecDeque<String>>>) {
    let mut reader = BufReader::with_capacity(STDERR_LINE_BYTES * 4, output);
    loop {
        // A long line is split into several, which bounds memory use.
        let (line, taken) = match reader.fill_buf().await {
            Ok([]) | Err(_) => return,
            Ok(bytes) => {
                let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |newline| newline + 1);
                let shown = &bytes[..end.min(STDERR_LINE_BYTES)];
                (String::from_utf8_lossy(shown).trim().to_owned(), end)
            }
        };
        reader.consume(taken);
        if line.is_empty() {
            continue;
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        if tail.len() == STDERR_LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tail_of_an_endless_stream_is_bounded() {
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let mut text = "first\n".repeat(100);
        text.push_str(&"x".repeat(100_000));
        text.push_str("\nlast\n");
        keep_tail(text.as_bytes(), tail.clone()).await;
        let tail = tail.lock().unwrap();
        assert_eq!(tail.len(), STDERR_LINES);
        assert_eq!(tail.back().map(String::as_str), Some("last"));
        assert!(tail.iter().all(|line| line.len() <= STDERR_LINE_BYTES));
    }
}
