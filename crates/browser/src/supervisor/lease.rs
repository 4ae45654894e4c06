//! A tab that is leased to one grab.

use std::sync::Arc;
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::target::DisposeBrowserContextParams;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::browser::{Browser, RestartReason};
use super::pool::PooledTab;
use crate::page::Tab;

/// Disposing of a context takes milliseconds, or about 100 ms for a page that keeps its process busy.
const DISPOSE_LIMIT: Duration = Duration::from_secs(5);

/// Holds a tab. Dropping it disposes of the tab's context in the background, so that the image is not delayed.
pub(crate) struct Lease {
    browser: Arc<Browser>,
    pooled: Option<(PooledTab, TaskTrackerToken)>,
}

impl Lease {
    pub(super) fn new(browser: Arc<Browser>, pooled: PooledTab, token: TaskTrackerToken) -> Self {
        Self { browser, pooled: Some((pooled, token)) }
    }

    /// The tab.
    pub(crate) fn tab(&self) -> &Tab {
        &self.pooled.as_ref().expect("a lease holds its tab until it is dropped").0.tab
    }

    /// The browser of the tab.
    pub(super) fn browser(&self) -> &Arc<Browser> {
        &self.browser
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some((pooled, token)) = self.pooled.take() {
            let browser = self.browser.clone();
            self.browser.tracker.spawn(async move {
                dispose(&browser, pooled).await;
                drop(token);
            });
        }
    }
}

async fn dispose(browser: &Browser, pooled: PooledTab) {
    let PooledTab { tab, order_on_return } = pooled;
    tab.client.unroute(&tab.session);
    let disposed = DisposeBrowserContextParams::new(tab.context.clone());
    let disposed = tab.client.call_within(DISPOSE_LIMIT, None, disposed).await;
    tab.frames.end();
    tracing::debug!(traffic_bytes = tab.listener.bytes(), "a tab was returned");
    // After the context: a page that loses its proxy first would see errors and could react to them.
    drop(tab);
    if order_on_return {
        browser.pool.request_tab();
    }
    if let Err(error) = disposed
        && !browser.client.closed().is_cancelled()
    {
        tracing::warn!(%error, "cannot dispose of a browser context");
        match browser.is_responsive().await {
            true => browser.request_replacement(RestartReason::Stuck),
            false => browser.mark_hung(),
        }
    }
}
