//! Brings up the loopback interface of a new network namespace, which is down at first.

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Index of the loopback interface, which is the first in every namespace.
const LOOPBACK: i32 = 1;

/// Constants of rtnetlink, from `linux/netlink.h`, `linux/rtnetlink.h` and `linux/if.h`.
const NEW_LINK: u16 = 16;
const REQUEST_WITH_ACK: u16 = 1 | 4;
const UP: u32 = 1;

/// Length of the request, which consists of two headers.
const REQUEST_BYTES: u32 = 32;

/// Offset of the error code in the reply, after the header.
const ERROR_OFFSET: usize = 16;

/// Brings up the loopback interface, which then has the address 127.0.0.1/8.
pub(super) fn bring_up() -> io::Result<()> {
    // Protocol zero is `NETLINK_ROUTE`, which is the default.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut reply = [0; 256];
    // The kernel replies before `send` returns, so this does not block.
    let (bytes, _) = rustix::net::recv(&socket, &mut reply, RecvFlags::empty())?;
    let error = reply[..bytes].get(ERROR_OFFSET..).and_then(<[u8]>::first_chunk).map(|code| i32::from_ne_bytes(*code));
    match error {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// `RTM_NEWLINK` that sets the flag `IFF_UP` on the loopback interface, with acknowledgement.
fn request() -> Vec<u8> {
    let mut request = Vec::new();
    // nlmsghdr: length, type, flags, sequence number, sender.
    request.extend(REQUEST_BYTES.to_ne_bytes());
    request.extend(NEW_LINK.to_ne_bytes());
    request.extend(REQUEST_WITH_ACK.to_ne_bytes());
    request.extend(1_u32.to_ne_bytes());
    request.extend(0_u32.to_ne_bytes());
    // ifinfomsg: family and padding, type, index, flags, change mask.
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
    fn request_length_matches_its_header() {
        assert_eq!(request().len(), REQUEST_BYTES as usize);
    }
}
