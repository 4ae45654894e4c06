//! The service's side of a jail: the launcher program, and the sockets that the launcher sends.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tokio::net::UnixStream;

use super::{COMMAND, handover};

/// The first descriptor number that a starting browser does not use itself.
const FIRST_FREE: i32 = 10;

/// The launcher program, held open: the browser's user may have no access to its path, and the file may be replaced
/// while the service runs.
pub(crate) struct Launcher {
    program: OwnedFd,
}

/// The sockets that a starting browser's launcher will hand over.
pub(crate) struct Sockets {
    launcher: StdUnixStream,
    expected: usize,
}

impl Launcher {
    /// Opens the program.
    ///
    /// # Errors
    /// When it does not exist.
    pub(crate) fn open(program: &Path) -> io::Result<Self> {
        let opened = rustix::fs::open(program, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { program: rustix::io::fcntl_dupfd_cloexec(opened, FIRST_FREE)? })
    }

    /// The path to execute. Valid while `self` lives.
    pub(crate) fn program(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.program.as_raw_fd()).into()
    }

    /// The arguments that precede the browser's.
    pub(crate) fn arguments(browser: &Path, sockets: usize, max_tasks: u32) -> [OsString; 4] {
        [COMMAND.into(), sockets.to_string().into(), max_tasks.to_string().into(), browser.into()]
    }
}

impl Sockets {
    /// Returns a receiver for `expected` sockets, and the launcher's standard input, over which they are sent.
    ///
    /// # Errors
    /// When no descriptors are left.
    pub(crate) fn expect(expected: usize) -> io::Result<(Self, OwnedFd)> {
        let (launcher, theirs) = StdUnixStream::pair()?;
        launcher.set_nonblocking(true)?;
        Ok((Self { launcher, expected }, theirs.into()))
    }

    /// Waits until the launcher has executed the browser. The first socket is the deny-all proxy's, the others are for
    /// grabs. Sockets that have arrived are closed on cancellation.
    ///
    /// # Errors
    /// When the launcher failed. The text is for operators.
    pub(crate) async fn receive(self) -> Result<Vec<OwnedFd>, String> {
        let launcher = UnixStream::from_std(self.launcher).map_err(|error| error.to_string())?;
        let (sockets, error) = handover::receive(&launcher).await.map_err(|error| error.to_string())?;
        match (error.as_str(), sockets.len() == self.expected) {
            ("", true) => Ok(sockets),
            ("", false) => Err("the launcher ended before it had made the jail".into()),
            (reason, _) => Err(reason.to_owned()),
        }
    }
}
