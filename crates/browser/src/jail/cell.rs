//! What the service knows of a jail: the program that makes it, and the sockets that come out of it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tokio::net::UnixStream;

use super::{COMMAND, handover};

/// Below lie the descriptors that a starting browser is given as its own.
const FIRST_FREE: i32 = 10;

/// The opened program that makes jails. The browser's user may be unable to walk to where it lies, and what lies there
/// may be replaced while the service runs.
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
    /// When it is not there.
    pub(crate) fn open(program: &Path) -> io::Result<Self> {
        let opened = rustix::fs::open(program, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { program: rustix::io::fcntl_dupfd_cloexec(opened, FIRST_FREE)? })
    }

    /// What to execute, for as long as `self` lives.
    pub(crate) fn program(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.program.as_raw_fd()).into()
    }

    /// Its arguments before those of the browser.
    pub(crate) fn arguments(browser: &Path, sockets: usize) -> [OsString; 3] {
        [COMMAND.into(), sockets.to_string().into(), browser.into()]
    }
}

impl Sockets {
    /// Room for `expected` sockets, and the standard input for the launcher that sends them.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub(crate) fn expect(expected: usize) -> io::Result<(Self, OwnedFd)> {
        let (launcher, theirs) = StdUnixStream::pair()?;
        launcher.set_nonblocking(true)?;
        Ok((Self { launcher, expected }, theirs.into()))
    }

    /// Waits until the launcher has become the browser: the deny socket first, then one for each grab. Cancel-safe in
    /// that sockets which have arrived are closed.
    ///
    /// # Errors
    /// What stood in the launcher's way, for operators.
    pub(crate) async fn receive(self) -> Result<Vec<OwnedFd>, String> {
        let launcher = UnixStream::from_std(self.launcher).map_err(|error| error.to_string())?;
        let (sockets, said) = handover::receive(&launcher).await.map_err(|error| error.to_string())?;
        match (said.as_str(), sockets.len() == self.expected) {
            ("", true) => Ok(sockets),
            ("", false) => Err("the launcher ended before it had made the jail".into()),
            (reason, _) => Err(reason.to_owned()),
        }
    }
}
