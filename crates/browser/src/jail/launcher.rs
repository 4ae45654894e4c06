//! The process that creates the jail, and then executes the browser inside it.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::{SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use nix::sched::{CloneFlags, unshare};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, setrlimit, setsid};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::{COMMAND, DENY_PORT, handover, loopback};
use crate::process::priority;
use crate::{jail, proxy};

/// Why the jail could not be created.
#[derive(Debug, thiserror::Error)]
enum LauncherError {
    #[error("the launcher must be called as `{COMMAND} SOCKETS TASKS PROGRAM [ARGUMENT]...`")]
    Usage,
    #[error("the kernel grants no user and network namespace ({0})")]
    Namespaces(#[source] io::Error),
    #[error("the user cannot be mapped into its namespace ({0})")]
    Map(#[source] io::Error),
    #[error("the namespace's loopback interface cannot be brought up ({0})")]
    Loopback(#[source] io::Error),
    #[error("the proxy's sockets cannot be created in the namespace ({0})")]
    Sockets(#[source] io::Error),
    #[error("the proxy's sockets cannot be handed over ({0})")]
    Handover(#[source] io::Error),
    #[error("capabilities cannot be dropped ({0})")]
    Capabilities(#[source] io::Error),
    #[error("the browser's program cannot be executed ({0})")]
    Execute(#[source] io::Error),
}

/// Runs the launcher if the program was started as one, otherwise returns `None`. A program that is configured as the
/// launcher must call this first: before it starts a thread, since the kernel moves only single-threaded processes into
/// another user namespace, and before it parses its arguments.
///
/// Returns an exit code only on error. The reason is sent to the service.
pub fn launcher(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != COMMAND {
        return None;
    }
    // Standard input is the socket to the service. The browser's own standard input replaces it, which closes it.
    let service = io::stdin().as_fd().try_clone_to_owned();
    if let Ok(service) = service {
        let Err(error) = become_browser(&service, arguments);
        handover::send_error(&service, &error.to_string());
    }
    Some(ExitCode::FAILURE)
}

fn become_browser(
    service: &OwnedFd,
    mut arguments: impl Iterator<Item = OsString>,
) -> Result<Infallible, LauncherError> {
    let sockets = arguments.next().and_then(|text| text.to_str()?.parse().ok()).ok_or(LauncherError::Usage)?;
    let max_tasks = arguments.next().and_then(|text| text.to_str()?.parse().ok()).ok_or(LauncherError::Usage)?;
    let program = arguments.next().ok_or(LauncherError::Usage)?;
    // Refused only if the process leads a group already, as when it was started by hand.
    let _ = setsid();
    priority::lower_session();
    enter_namespaces()?;
    limit_tasks(max_tasks);
    loopback::bring_up().map_err(LauncherError::Loopback)?;
    let sockets = bind(sockets).map_err(LauncherError::Sockets)?;
    handover::send(service, &sockets).map_err(LauncherError::Handover)?;
    drop(sockets);
    drop_capabilities().map_err(LauncherError::Capabilities)?;
    // `exec` closes everything that was opened here. The browser's pipes were inherited and stay open.
    Err(LauncherError::Execute(Command::new(program).args(arguments).stdin(Stdio::null()).exec()))
}

/// Moves into a new user and network namespace, keeping the user and group IDs.
fn enter_namespaces() -> Result<(), LauncherError> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)
        .map_err(|error| LauncherError::Namespaces(error.into()))?;
    // The kernel allows mapping a group only after `setgroups` is denied.
    fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")))
        .map_err(LauncherError::Map)
}

/// Limits the number of processes and threads of the user in the namespace, which are those of the browser. Older kernels count
/// all processes of the user on the machine, so there the service watches their number.
fn limit_tasks(max: u64) {
    if jail::counts_tasks() {
        let limit = Rlimit { current: Some(max), maximum: Some(max) };
        // It can only fail if a lower limit is in force already.
        let _ = setrlimit(Resource::Nproc, limit);
    }
}

/// Binds the deny-all proxy's socket, which listens, and the sockets for grabs, which do not yet listen: a connection
/// made before the grab starts would be attributed to it.
fn bind(count: usize) -> io::Result<Vec<OwnedFd>> {
    let deny = TcpListener::bind((proxy::ADDRESS, DENY_PORT))?;
    let grabs = (1..count).map(|_| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(proxy::ADDRESS, 0))?;
        Ok(socket)
    });
    std::iter::once(Ok(deny.into())).chain(grabs).collect()
}

/// The creator of a user namespace has all capabilities in it. The browser needs none, and makes its own sandbox.
fn drop_capabilities() -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_commands_are_not_handled() {
        for arguments in [&["grabd"][..], &[], &["grabd", "serve"], &["grabd", "serve", COMMAND]] {
            assert!(launcher(arguments.iter().map(OsString::from)).is_none(), "{arguments:?}");
        }
    }
}
