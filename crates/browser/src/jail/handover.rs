//! Transfers the launcher's sockets, or its error, to the service.
//!
//! The stream goes from the launcher to the service. Each message is a zero byte with some sockets, or a piece of error
//! text. The stream ends when the launcher executes the browser.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Sockets per message. The kernel's limit is 253.
const BATCH: usize = 128;

/// Maximum length of the error text.
const REASON_BYTES: usize = 1000;

/// Sends `sockets` in order.
pub(super) fn send(service: impl AsFd, sockets: &[OwnedFd]) -> io::Result<()> {
    for batch in sockets.chunks(BATCH) {
        let batch: Vec<BorrowedFd<'_>> = batch.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&batch));
        rustix::net::sendmsg(&service, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// Sends the reason for a failure.
pub(super) fn send_error(service: impl AsFd, reason: &str) {
    // If the service has gone, nobody can be notified.
    let _ = rustix::net::send(service, reason.as_bytes(), SendFlags::NOSIGNAL);
}

/// Reads to the end of the stream. Returns the sockets and the error text, which is empty on success.
pub(super) async fn receive(launcher: &UnixStream) -> io::Result<(Vec<OwnedFd>, String)> {
    let (mut sockets, mut error) = (Vec::new(), Vec::new());
    loop {
        let mut bytes = [0; 256];
        let count = launcher.async_io(Interest::READABLE, || receive_one(launcher, &mut bytes, &mut sockets)).await?;
        if count == 0 {
            return Ok((sockets, String::from_utf8_lossy(&error).into_owned()));
        }
        error.extend(bytes[..count].iter().filter(|byte| **byte != 0));
        error.truncate(REASON_BYTES);
    }
}

fn receive_one(launcher: &UnixStream, bytes: &mut [u8], sockets: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = rustix::net::recvmsg(launcher, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            sockets.extend(more);
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn sockets_arrive_in_order_followed_by_the_error() {
        let (inside, outside) = std::os::unix::net::UnixStream::pair().unwrap();
        outside.set_nonblocking(true).unwrap();
        let sockets: Vec<TcpListener> = (0..BATCH + 2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        let sockets: Vec<OwnedFd> = sockets.into_iter().map(OwnedFd::from).collect();
        send(&inside, &sockets).unwrap();
        send_error(&inside, "no more");
        drop((inside, sockets));

        let (arrived, error) = receive(&UnixStream::from_std(outside).unwrap()).await.unwrap();

        let arrived: Vec<TcpListener> = arrived.into_iter().map(TcpListener::from).collect();
        assert!(arrived.iter().map(|socket| socket.local_addr().unwrap()).eq(addresses));
        TcpStream::connect(arrived[BATCH + 1].local_addr().unwrap()).unwrap();
        assert_eq!(error, "no more");
    }
}
