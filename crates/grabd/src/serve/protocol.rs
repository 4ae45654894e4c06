//! HTTP/2 limits of all listeners.

use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::{Builder, Http2Builder};

/// Maximum size of a header section in bytes.
pub(super) const MAX_HEADER_BYTES: u32 = 16 << 10;
/// Interval of pings to an idle peer.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// Time limit for the response to a ping.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests reset by the peer before they were accepted. More at a time is treated as an attack.
const MAX_PENDING_RESETS: usize = 20;
/// Requests reset by us because of protocol errors, per connection.
const MAX_ERROR_RESETS: usize = 1024;
/// Buffered response bytes of one request.
const MAX_SEND_BUFFER: usize = 64 << 10;

/// Limits the resources that an HTTP/2 peer can occupy.
pub(super) fn apply_limits(builder: &mut Builder<TokioExecutor>) -> Http2Builder<'_, TokioExecutor> {
    let mut http2 = builder.http2();
    http2
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .max_send_buf_size(MAX_SEND_BUFFER);
    http2
}
