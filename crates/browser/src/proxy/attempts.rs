//! What a grab asked for and did not get. The outcome of the grab is decided by it, so hosts are kept in one form.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use grabd_egress::Refusal;

use super::target::{Destination, parse_host};

/// Attempts told in full. A page can make any number, and the first ones tell the story.
const LISTED: usize = 256;

/// Hosts and ports remembered for [`Attempts::was_refused`]: many more, since the page may end at a late one.
const REMEMBERED: usize = 4096;

/// A target that was asked for and not reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Without brackets and trailing dot, in lower case.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) refusal: Refusal,
}

#[derive(Default)]
pub(super) struct Attempts {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    listed: Vec<Attempt>,
    refused: HashSet<(String, u16)>,
    refused_count: u32,
}

impl Attempts {
    pub(super) fn record(&self, asked_by: &str, proxy_port: u16, destination: &Destination, refusal: &Refusal) {
        let (host, port) = (destination.host.to_string(), destination.port);
        let mut inner = self.lock();
        if refusal.is_refused() {
            inner.refused_count = inner.refused_count.saturating_add(1);
            if inner.refused.len() < REMEMBERED {
                inner.refused.insert((host.clone(), port));
            }
        }
        if inner.listed.len() < LISTED {
            let reason = refusal.reason();
            tracing::info!(asked_by, proxy.port = proxy_port, host, port, reason, %refusal, "not connected");
            inner.listed.push(Attempt { host, port, refusal: refusal.clone() });
        }
    }

    pub(super) fn listed(&self) -> Vec<Attempt> {
        self.lock().listed.clone()
    }

    pub(super) fn refused_count(&self) -> u32 {
        self.lock().refused_count
    }

    pub(super) fn was_refused(&self, host: &str, port: u16) -> bool {
        parse_host(host).is_some_and(|host| self.lock().refused.contains(&(host.to_string(), port)))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
