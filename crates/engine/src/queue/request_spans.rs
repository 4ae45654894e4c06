//! The requests that created open grabs, so that the log of a grab's end names its request.

use std::collections::BTreeMap;

use grabd_domain::ids::GrabId;
use parking_lot::Mutex;
use tracing::Span;

/// Requests that are remembered. Beyond, the oldest one is forgotten.
const MAX: usize = 10_000;

/// The spans of requests. Those of a restarted process, or of another one of a cluster, are not known.
#[derive(Default)]
pub(crate) struct RequestSpans(Mutex<BTreeMap<GrabId, Span>>);

impl RequestSpans {
    /// Remembers the current request as the one that creates the grab.
    pub(crate) fn remember(&self, grab: GrabId) {
        let span = Span::current();
        if span.is_none() {
            return;
        }
        let mut spans = self.0.lock();
        spans.insert(grab, span);
        // Ids begin with the time of their creation.
        if spans.len() > MAX {
            spans.pop_first();
        }
    }

    /// Forgets the request, and returns its span, or a disabled one.
    pub(crate) fn take(&self, grab: GrabId) -> Span {
        let taken = self.0.lock().remove(&grab);
        taken.unwrap_or_else(Span::none)
    }
}
