//! The limits of one grab's connections.

/// The limits of one listener, which serves one grab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum size of the header section of a request or response, however many fields it has. At least 8192, the size of
    /// the first read. Browsers take 256 KB.
    pub(crate) header_bytes: usize,
    /// Concurrent connections from the browser.
    pub(crate) connections: usize,
    /// Bytes to and from the browser. If exceeded, all connections of the grab are closed.
    pub(crate) bytes: u64,
    /// Maximum lifetime of a connection from the browser, busy or idle.
    pub(crate) connection_seconds: u64,
}

impl Limits {
    /// The number of fields that fit: the shortest one has a name of one byte, a colon and a line break.
    pub(super) const fn header_fields(self) -> usize {
        self.header_bytes / 4
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { header_bytes: 256 << 10, connections: 256, bytes: 200 << 20, connection_seconds: 30 }
    }
}
