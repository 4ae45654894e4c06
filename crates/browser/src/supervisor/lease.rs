//! A tab lent to one grab, and what becomes of it.

use std::sync::Arc;
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::target::DisposeBrowserContextParams;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::browser::{Browser, Why};
use super::pool::Taken;
use crate::page::Tab;

/// Disposing of a context takes milliseconds, and a tenth of a second with a page that never yields.
const DISPOSE_LIMIT: Duration = Duration::from_secs(5);

/// Lends a tab. Dropping it, however the grab ended, disposes of the tab's context in the background: the picture does
/// not wait for that.
pub(crate) struct Lease {
    browser: Arc<Browser>,
    taken: Option<(Taken, TaskTrackerToken)>,
}

impl Lease {
    pub(super) fn new(browser: Arc<Browser>, taken: Taken, token: TaskTrackerToken) -> Self {
        Self { browser, taken: Some((taken, token)) }
    }

    /// The tab.
    pub(crate) fn tab(&self) -> &Tab {
        &self.taken.as_ref().expect("a lease holds its tab until it is dropped").0.tab
    }

    /// Whose tab it is.
    pub(super) fn browser(&self) -> &Arc<Browser> {
        &self.browser
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some((taken, token)) = self.taken.take() {
            let browser = self.browser.clone();
            self.browser.tracker.spawn(async move {
                dispose(&browser, taken).await;
                drop(token);
            });
        }
    }
}

async fn dispose(browser: &Browser, taken: Taken) {
    let Taken { tab, owes_order } = taken;
    tab.client.unroute(&tab.session);
    let disposed = DisposeBrowserContextParams::new(tab.context.clone());
    let disposed = tab.client.call_within(DISPOSE_LIMIT, None, disposed).await;
    tracing::debug!(traffic_bytes = tab.listener.bytes(), "a tab is given back");
    // Only now: a page whose proxy goes first would see errors, and could act on them.
    drop(tab);
    if owes_order {
        browser.pool.order();
    }
    if let Err(error) = disposed
        && !browser.client.closed().is_cancelled()
    {
        tracing::warn!(%error, "a context cannot be disposed of");
        match browser.answers().await {
            true => browser.replace_for(Why::Stuck),
            false => browser.give_up(),
        }
    }
}
