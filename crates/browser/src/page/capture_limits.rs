//! The limits of every capture.

use std::sync::Arc;
use std::time::Duration;

use grabd_egress::ClientTls;
use grabd_memory::MemoryBudget;

use crate::FilterLists;

/// The capture limits that the operator configures.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// How long a page may take to settle after its load event.
    pub(crate) settle_budget: Duration,
    /// The maximum height of an image, in pixels.
    pub(crate) full_page_max_height: u32,
    /// The maximum size of an image, in bytes.
    pub(crate) image_max_bytes: u64,
    /// The memory in which an image is received.
    pub(crate) memory: MemoryBudget,
    /// Whether a page is not captured if its site asks for that with `X-Robots-Tag`.
    pub(crate) respect_opt_out: bool,
    /// The lists by which ads and trackers are blocked.
    pub(crate) lists: Arc<FilterLists>,
    /// For proxies of teams that are spoken to over TLS.
    pub(crate) proxy_tls: ClientTls,
}
