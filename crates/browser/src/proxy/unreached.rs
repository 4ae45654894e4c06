//! Records targets that a grab requested and did not reach. Hosts are normalized, since the grab's outcome depends on
//! them.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use grabd_egress::EgressError;

use super::target::{Destination, parse_host};

/// Maximum number of targets recorded in full. A page can request any number, and the first ones matter most.
const LISTED: usize = 256;

/// Maximum number of hosts and ports recorded for [`UnreachedTargets::was_refused`]. Larger, since the page may
/// navigate late.
const REMEMBERED: usize = 4096;

/// A requested target that was not reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreachedTarget {
    /// Lower case, without brackets and trailing dot.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) refusal: EgressError,
}

#[derive(Default)]
pub(super) struct UnreachedTargets {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    listed: Vec<UnreachedTarget>,
    refused: HashSet<(String, u16)>,
    refused_count: u32,
}

impl UnreachedTargets {
    pub(super) fn record(&self, requester: &str, proxy_port: u16, destination: &Destination, refusal: &EgressError) {
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
            tracing::info!(requester, proxy.port = proxy_port, host, port, reason, %refusal, "not connected");
            inner.listed.push(UnreachedTarget { host, port, refusal: refusal.clone() });
        }
    }

    pub(super) fn listed(&self) -> Vec<UnreachedTarget> {
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
