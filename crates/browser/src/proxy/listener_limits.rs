//! The limits of one grab's connections.

/// Maximum number of header fields of a response. Browsers have no limit. Space for this many is filled with each part of a
/// header section that arrives: 64 bytes for each (hyper 1.12).
pub(super) const HEADER_FIELDS: usize = 2000;

/// The limits of one listener, which serves one grab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum size of the header section of a request or response. At least 8192, the size of the first read. Browsers take
    /// 256 KB.
    pub(crate) header_bytes: usize,
    /// Concurrent connections from the browser.
    pub(crate) connections: usize,
    /// Bytes to and from the browser. If exceeded, all connections of the grab are closed.
    pub(crate) bytes: u64,
    /// Maximum lifetime of a connection from the browser, busy or idle.
    pub(crate) connection_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { header_bytes: 256 << 10, connections: 256, bytes: 200 << 20, connection_seconds: 30 }
    }
}
