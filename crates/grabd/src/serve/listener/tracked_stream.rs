//! A socket that records its activity.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::activity::ConnectionActivity;

/// A connection's socket.
pub(super) struct TrackedStream {
    stream: TcpStream,
    activity: Arc<ConnectionActivity>,
    replace_response: fn(&[u8]) -> Option<Vec<u8>>,
    /// The replacement that is being written.
    replacement: VecDeque<u8>,
}

impl TrackedStream {
    pub(super) const fn new(
        stream: TcpStream,
        activity: Arc<ConnectionActivity>,
        replace_response: fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Self {
        Self { stream, activity, replace_response, replacement: VecDeque::new() }
    }

    /// Writes the replacement of `buf`, if there is one. A complete replacement counts as all of `buf`.
    fn replace(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<Option<usize>>> {
        if self.replacement.is_empty() {
            match (self.replace_response)(buf) {
                Some(bytes) => self.replacement = bytes.into(),
                None => return Poll::Ready(Ok(None)),
            }
        }
        while !self.replacement.is_empty() {
            let (next, _) = self.replacement.as_slices();
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, next))?;
            self.replacement.drain(..written);
        }
        Poll::Ready(Ok(Some(buf.len())))
    }

    fn record_write(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(_)) => self.activity.record_written(),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.activity.record_blocked(),
        }
        written
    }
}

impl AsyncRead for TrackedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let [_, ..] = &buf.filled()[before..] {
            self.activity.record_received(&buf.filled()[before..]);
        }
        read
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = match self.replace(cx, buf) {
            Poll::Ready(Ok(None)) => Pin::new(&mut self.stream).poll_write(cx, buf),
            Poll::Ready(Ok(Some(written))) => Poll::Ready(Ok(written)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        self.record_write(written)
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
        self.record_write(written)
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
