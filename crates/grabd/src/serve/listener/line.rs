//! The bytes of one connection, with its pulse told.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::pulse::Pulse;

/// A connection's socket.
pub(super) struct Line {
    stream: TcpStream,
    pulse: Arc<Pulse>,
    instead: fn(&[u8]) -> Option<Vec<u8>>,
    /// What is being written instead of what was asked for.
    replacing: VecDeque<u8>,
}

impl Line {
    pub(super) const fn new(stream: TcpStream, pulse: Arc<Pulse>, instead: fn(&[u8]) -> Option<Vec<u8>>) -> Self {
        Self { stream, pulse, instead, replacing: VecDeque::new() }
    }

    /// Writes the replacement of `buf`, if it has one. As a whole it counts as the whole of `buf`.
    fn replace(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<Option<usize>>> {
        if self.replacing.is_empty() {
            match (self.instead)(buf) {
                Some(bytes) => self.replacing = bytes.into(),
                None => return Poll::Ready(Ok(None)),
            }
        }
        while !self.replacing.is_empty() {
            let (next, _) = self.replacing.as_slices();
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, next))?;
            self.replacing.drain(..written);
        }
        Poll::Ready(Ok(Some(buf.len())))
    }

    fn told(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(_)) => self.pulse.moved(),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.pulse.blocked(),
        }
        written
    }
}

impl AsyncRead for Line {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let [_, ..] = &buf.filled()[before..] {
            self.pulse.heard(&buf.filled()[before..]);
        }
        read
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = match self.replace(cx, buf) {
            Poll::Ready(Ok(None)) => Pin::new(&mut self.stream).poll_write(cx, buf),
            Poll::Ready(Ok(Some(written))) => Poll::Ready(Ok(written)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        self.told(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = bufs {
            return self.poll_write(cx, only);
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.told(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
