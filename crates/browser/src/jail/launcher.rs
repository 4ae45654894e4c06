//! The process that makes the jail, and then becomes the browser inside it.

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
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::{COMMAND, DENY_PORT, handover, loopback};
use crate::proxy;

/// What went wrong on the way in.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the launcher was called in another way than `{COMMAND} SOCKETS PROGRAM [ARGUMENT]...`")]
    Called,
    #[error("the kernel grants no user and network namespace ({0})")]
    Namespaces(#[source] io::Error),
    #[error("the user cannot be mapped into its namespace ({0})")]
    Map(#[source] io::Error),
    #[error("the namespace's loopback interface cannot be raised ({0})")]
    Loopback(#[source] io::Error),
    #[error("the proxy's sockets cannot be made inside ({0})")]
    Sockets(#[source] io::Error),
    #[error("the proxy's sockets cannot be handed over ({0})")]
    Handover(#[source] io::Error),
    #[error("capabilities cannot be given up ({0})")]
    Capabilities(#[source] io::Error),
    #[error("the browser's program cannot be executed ({0})")]
    Execute(#[source] io::Error),
}

/// Becomes a jailed browser when the program was called for that, and returns `None` when it was not. A program whose
/// path is given as the launcher calls this first thing: before it starts a thread, since the kernel moves only
/// processes of one thread into another user namespace, and before it reads its arguments, which mean something else.
///
/// Returns an exit code only when it failed; why is told to the service that called.
pub fn launcher(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != COMMAND {
        return None;
    }
    // The service's socket is the standard input: the browser's own replaces it, so that it cannot be left open.
    let service = io::stdin().as_fd().try_clone_to_owned();
    if let Ok(service) = service {
        let Err(failure) = become_browser(&service, arguments);
        handover::complain(&service, &failure.to_string());
    }
    Some(ExitCode::FAILURE)
}

fn become_browser(service: &OwnedFd, mut arguments: impl Iterator<Item = OsString>) -> Result<Infallible, Failure> {
    let sockets = arguments.next().and_then(|text| text.to_str()?.parse().ok()).ok_or(Failure::Called)?;
    let program = arguments.next().ok_or(Failure::Called)?;
    enter()?;
    loopback::raise().map_err(Failure::Loopback)?;
    let sockets = bind(sockets).map_err(Failure::Sockets)?;
    handover::send(service, &sockets).map_err(Failure::Handover)?;
    drop(sockets);
    give_up_capabilities().map_err(Failure::Capabilities)?;
    // Everything that was opened here is closed by this; the browser's pipes were inherited and stay.
    Err(Failure::Execute(Command::new(program).args(arguments).stdin(Stdio::null()).exec()))
}

/// Moves into a user and a network namespace of our own, in which we are who we were.
fn enter() -> Result<(), Failure> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(|error| Failure::Namespaces(error.into()))?;
    // The kernel lets nobody map a group who could still drop others.
    fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")))
        .map_err(Failure::Map)
}

/// The socket of the proxy that refuses everything, which listens, and those of grabs, which only have their ports: what
/// came before its grab would be taken for a part of it.
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

/// Who makes a user namespace may do everything in it. The browser needs none of that, and makes its own sandbox.
fn give_up_capabilities() -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_calls_are_none_of_its_business() {
        for arguments in [&["grabd"][..], &[], &["grabd", "serve"], &["grabd", "serve", COMMAND]] {
            assert!(launcher(arguments.iter().map(OsString::from)).is_none(), "{arguments:?}");
        }
    }
}
