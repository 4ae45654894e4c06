//! A tab that is leased to one grab.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::target::DisposeBrowserContextParams;
use tokio::task::JoinHandle;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::browser::Browser;
use super::occupancy::Occupancy;
use super::restart::RestartReason;
use crate::page::Tab;

/// Disposing of a context takes milliseconds, or about 100 ms for a page that keeps its process busy. In a browser that has
/// no other grab, nothing is lost by ending it instead.
const DISPOSE_LIMIT: Duration = Duration::from_secs(1);

/// The same in a browser that all slots share, whose other grabs would be lost.
const SHARED_DISPOSE_LIMIT: Duration = Duration::from_secs(5);

/// Holds a tab. Dropping it disposes of the tab's context in the background, so that the image is not delayed.
pub(crate) struct Lease {
    browser: Arc<Browser>,
    tab: Option<(Tab, TaskTrackerToken)>,
    /// Whether the tab that replaces this one in the pool is requested.
    is_replaced: AtomicBool,
    /// Keeps the slot of the grab until the tab is disposed of.
    occupancy: Option<Arc<Occupancy>>,
}

impl Browser {
    /// Leases a tab. Returns `None` if the browser dies first, has no more sockets, or is being closed. Cancel-safe.
    pub(super) async fn lease(self: &Arc<Self>) -> Option<Lease> {
        let lease = loop {
            // Take the token first: a browser that is not closed yet then waits for this tab.
            let token = self.leased.token();
            if self.leased.is_closed() {
                return None;
            }
            let (tab, has_more) = tokio::select! {
                biased;
                () = self.client.closed().cancelled() => return None,
                taken = self.pool.take() => taken,
                () = self.sockets_exhausted.cancelled() => return None,
            };
            let lease = Lease::new(self.clone(), tab, token);
            if !has_more && !self.is_exclusive {
                // Another grab may begin at any time.
                lease.request_replacement();
            }
            // The page may have crashed while it waited in the pool. Dropping the lease replaces it.
            if !lease.tab().has_crashed() {
                break lease;
            }
        };
        if self.grabs.fetch_add(1, Ordering::Relaxed) + 1 >= self.limits.grabs {
            self.request_replacement(RestartReason::Grabs);
        }
        Some(lease)
    }
}

impl Lease {
    fn new(browser: Arc<Browser>, tab: Tab, token: TaskTrackerToken) -> Self {
        Self { browser, tab: Some((tab, token)), is_replaced: AtomicBool::new(false), occupancy: None }
    }

    /// Has another tab prepared for the pool, unless that was done before. It takes a processor for some time: before the image is
    /// taken, the grab would take longer, and after the tab is disposed of, the next one.
    pub(super) fn request_replacement(&self) {
        if !self.is_replaced.swap(true, Ordering::Relaxed) {
            self.browser.pool.request_tab();
        }
    }

    /// The same for a grab, whose slot is in use until the tab is disposed of.
    pub(super) fn of_grab(self, occupancy: &Arc<Occupancy>) -> Self {
        let mut lease = self;
        lease.occupancy = Some(occupancy.clone());
        lease
    }

    /// The tab.
    pub(crate) fn tab(&self) -> &Tab {
        &self.tab.as_ref().expect("a lease holds its tab until it is dropped").0
    }

    /// Disposes of the tab. In a browser that serves one grab at a time, returns when that is done, or when it took so long that the
    /// browser was ended: a capture that begins before would share the browser with the page of this tab, and be lost with it.
    pub(super) async fn returned(mut self) {
        if let Some(disposal) = self.dispose().filter(|_| self.browser.is_exclusive) {
            // It fails only while the runtime shuts down.
            let _ = disposal.await;
        }
    }

    /// Begins to dispose of the tab. `None` if that was done before.
    fn dispose(&mut self) -> Option<JoinHandle<()>> {
        let (tab, token) = self.tab.take()?;
        let (browser, occupancy) = (self.browser.clone(), self.occupancy.take());
        let is_replaced = self.is_replaced.swap(true, Ordering::Relaxed);
        Some(self.browser.tracker.spawn(async move {
            dispose(&browser, tab, is_replaced).await;
            drop(token);
            drop(occupancy);
        }))
    }

    /// The browser of the tab.
    pub(super) fn browser(&self) -> &Arc<Browser> {
        &self.browser
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The task goes on by itself.
        drop(self.dispose());
    }
}

async fn dispose(browser: &Browser, tab: Tab, is_replaced: bool) {
    for session in tab.watch.worker_sessions().iter().chain([&tab.session]) {
        tab.client.unroute(session);
    }
    let disposed = DisposeBrowserContextParams::new(tab.context.clone());
    let limit = if browser.is_exclusive { DISPOSE_LIMIT } else { SHARED_DISPOSE_LIMIT };
    let disposed = tab.client.call_within(limit, None, disposed).await;
    tab.frames.end();
    tracing::debug!(traffic_bytes = tab.listener.bytes(), "a tab was returned");
    // After the context: a page that loses its proxy first would see errors and could react to them.
    drop(tab);
    if !is_replaced {
        browser.pool.request_tab();
    }
    if let Err(error) = disposed
        && !browser.client.closed().is_cancelled()
    {
        tracing::warn!(%error, "cannot dispose of a browser context");
        if browser.is_exclusive {
            return browser.end_at_once(RestartReason::Excess);
        }
        match browser.is_responsive().await {
            true => browser.request_replacement(RestartReason::Stuck),
            false => browser.mark_hung(),
        }
    }
}
