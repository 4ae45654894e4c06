//! A new network namespace has one interface, which is down.

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// The loopback interface is the first of every namespace.
const LOOPBACK: i32 = 1;

/// Numbers of the route protocol, as in `linux/netlink.h`, `linux/rtnetlink.h` and `linux/if.h`.
const NEW_LINK: u16 = 16;
const REQUEST_WITH_ANSWER: u16 = 1 | 4;
const UP: u32 = 1;

/// The two headers that are the whole request.
const REQUEST_BYTES: u32 = 32;

/// Where the answer's error stands, behind its header.
const ERROR_AT: usize = 16;

/// Raises the loopback interface, which then has 127.0.0.1/8.
pub(super) fn raise() -> io::Result<()> {
    // Of the protocols behind netlink, that of routes and interfaces is number zero, the one that needs no name.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut answer = [0; 256];
    // The kernel has answered before `send` returns, so this does not wait.
    let (bytes, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    let error = answer[..bytes].get(ERROR_AT..).and_then(<[u8]>::first_chunk).map(|code| i32::from_ne_bytes(*code));
    match error {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// "Set the flag `UP` of the loopback interface, and answer."
fn request() -> Vec<u8> {
    let mut request = Vec::new();
    // The message's header: length, kind, flags, number, sender.
    request.extend(REQUEST_BYTES.to_ne_bytes());
    request.extend(NEW_LINK.to_ne_bytes());
    request.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    request.extend(1_u32.to_ne_bytes());
    request.extend(0_u32.to_ne_bytes());
    // The interface: family and padding, type, index, flags, which flags to change.
    request.extend([0; 2]);
    request.extend(0_u16.to_ne_bytes());
    request.extend(LOOPBACK.to_ne_bytes());
    request.extend(UP.to_ne_bytes());
    request.extend(UP.to_ne_bytes());
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_as_long_as_it_says() {
        assert_eq!(request().len(), REQUEST_BYTES as usize);
    }
}
