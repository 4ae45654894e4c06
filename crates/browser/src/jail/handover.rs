//! How the launcher's sockets come to the service, or the reason why they do not.
//!
//! One stream from the launcher to the service: each message is a zero byte with a few sockets, or a piece of text that
//! says what went wrong. The launcher becoming the browser closes its end; what has arrived by then is all.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Sockets in a message; the kernel takes 253.
const BATCH: usize = 128;

/// A reason is one line; more is not kept.
const REASON_BYTES: usize = 1000;

/// Sends `sockets`, in their order.
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

/// Says why nothing comes of it.
pub(super) fn complain(service: impl AsFd, reason: &str) {
    // Nobody to hear it is nobody to tell.
    let _ = rustix::net::send(service, reason.as_bytes(), SendFlags::NOSIGNAL);
}

/// Everything up to the end of the stream: the sockets, and what was said, which is nothing when all is well.
pub(super) async fn receive(launcher: &UnixStream) -> io::Result<(Vec<OwnedFd>, String)> {
    let (mut sockets, mut said) = (Vec::new(), Vec::new());
    loop {
        let mut bytes = [0; 256];
        let count = launcher.async_io(Interest::READABLE, || receive_one(launcher, &mut bytes, &mut sockets)).await?;
        if count == 0 {
            return Ok((sockets, String::from_utf8_lossy(&said).into_owned()));
        }
        said.extend(bytes[..count].iter().filter(|byte| **byte != 0));
        said.truncate(REASON_BYTES);
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
    async fn sockets_arrive_in_their_order_and_a_reason_behind_them() {
        let (inside, outside) = std::os::unix::net::UnixStream::pair().unwrap();
        outside.set_nonblocking(true).unwrap();
        let sockets: Vec<TcpListener> = (0..BATCH + 2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        let sockets: Vec<OwnedFd> = sockets.into_iter().map(OwnedFd::from).collect();
        send(&inside, &sockets).unwrap();
        complain(&inside, "no more");
        drop((inside, sockets));

        let (arrived, said) = receive(&UnixStream::from_std(outside).unwrap()).await.unwrap();

        let arrived: Vec<TcpListener> = arrived.into_iter().map(TcpListener::from).collect();
        assert!(arrived.iter().map(|socket| socket.local_addr().unwrap()).eq(addresses));
        TcpStream::connect(arrived[BATCH + 1].local_addr().unwrap()).unwrap();
        assert_eq!(said, "no more");
    }
}
