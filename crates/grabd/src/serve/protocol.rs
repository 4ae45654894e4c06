//! The bounds that both listeners put on HTTP/2 itself.

use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::{Builder, Http2Builder};

/// The largest header, in bytes.
pub(super) const MAX_HEADER_BYTES: u32 = 16 << 10;
/// A peer that says nothing is asked this often whether it is still there.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// And is given this long to answer.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests that a peer may take back before anybody has seen them. More of that at a time is an attack.
const MAX_UNSEEN_RESETS: usize = 20;
/// Requests that we may have to break off for errors of the peer's, in the life of a connection.
const MAX_ERROR_RESETS: usize = 1024;
/// Bytes of answers that wait on one request for its peer to take them.
const MAX_SEND_BUFFER: usize = 64 << 10;

/// Bounds what an HTTP/2 peer may make us keep.
pub(super) fn bound(builder: &mut Builder<TokioExecutor>) -> Http2Builder<'_, TokioExecutor> {
    let mut http2 = builder.http2();
    http2
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_pending_accept_reset_streams(MAX_UNSEEN_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .max_send_buf_size(MAX_SEND_BUFFER);
    http2
}
