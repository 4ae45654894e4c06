//! Counts what a grab moves, and cuts it off when that is too much.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::listener::Door;

pub(super) struct Meter {
    bytes: AtomicU64,
    limit: u64,
    cut: CancellationToken,
}

impl Meter {
    pub(super) fn new(limit: u64, cut: CancellationToken) -> Self {
        Self { bytes: AtomicU64::new(0), limit, cut }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn over_limit(&self) -> bool {
        self.bytes() > self.limit
    }

    fn count(&self, moved: usize) -> io::Result<()> {
        let moved = moved as u64;
        let total = self.bytes.fetch_add(moved, Ordering::Relaxed) + moved;
        if total <= self.limit {
            return Ok(());
        }
        self.cut.cancel();
        Err(io::Error::other("the grab moved too many bytes"))
    }
}

/// The browser's side of a connection: what passes here, either way, is what the grab moves.
pub(super) struct Metered {
    stream: TcpStream,
    door: Arc<Door>,
}

impl Metered {
    pub(super) fn new(stream: TcpStream, door: Arc<Door>) -> Self {
        Self { stream, door }
    }

    fn counted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        written.map(|written| written.and_then(|bytes| self.door.meter.count(bytes).map(|()| bytes)))
    }
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        read.map(|read| read.and_then(|()| self.door.meter.count(buf.filled().len() - before)))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.counted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.counted(written)
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
