//! The task of each lane, which replaces the lane's browser.

use std::sync::Arc;

use super::browser::Browser;
use super::shared::Shared;
use super::start::{StartAttempts, StartError};

impl Shared {
    /// Keeps a browser running, beginning with `browser`, until the service shuts down, the lane is stopped, or no
    /// browser can be started.
    pub(super) async fn supervise(self: Arc<Self>, lane: usize, mut browser: Arc<Browser>) {
        let current = &self.lanes.lane(lane).current;
        let stop = self.lanes.stop_token(lane);
        loop {
            let why = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => break,
                () = stop.cancelled() => break,
                why = browser.replacement_requested() => why,
            };
            tracing::info!(browser.pid = browser.pid(), why = why.as_str(), "replacing a browser");
            self.count_restart(why);
            if !why.may_finish() {
                current.send_replace(None);
                // First, since it may keep all processors busy.
                self.end(&browser, false).await;
            }
            // A worn browser takes grabs until its successor runs.
            let Some(started) = self.shutdown.run_until_cancelled(self.start_successor(lane, &browser)).await else {
                break;
            };
            let successor = started.as_ref().ok().cloned();
            // Publish the successor first: a tab that is still leased from the worn browser is then counted before it
            // closes.
            current.send_replace(successor);
            if why.may_finish() {
                self.retire(browser);
            }
            browser = match started {
                Ok(successor) => successor,
                Err(error) => {
                    tracing::error!(%error, "browsers can no longer be started");
                    self.failed.send_replace(Some(error));
                    return;
                }
            };
        }
        current.send_replace(None);
        self.end(&browser, false).await;
        if !self.shutdown.is_cancelled() {
            tracing::info!(lane, "stopped an idle lane");
            self.lanes.stopped(lane);
        }
    }

    /// Starts a browser for a stopped lane. A grab waits for it, and the other lanes may be in use for long.
    pub(super) async fn start_lane(self: Arc<Self>, lane: usize) {
        let starting = self.start_repeatedly(|| {});
        match self.shutdown.run_until_cancelled(starting).await {
            Some(Ok(browser)) => {
                self.lanes.lane(lane).current.send_replace(Some(browser.clone()));
                self.setup.tracker.spawn(self.clone().supervise(lane, browser));
                self.lanes.started(lane);
            }
            Some(Err(error)) => {
                tracing::warn!(%error, lane, "cannot start an additional browser; running browsers are not affected");
                self.lanes.start_failed(lane);
            }
            None => {}
        }
    }

    async fn start_successor(&self, lane: usize, worn: &Browser) -> Result<Arc<Browser>, StartError> {
        let on_failure = || {
            if worn.client.closed().is_cancelled() {
                // The worn browser died meanwhile, so nothing takes new grabs.
                self.lanes.lane(lane).current.send_replace(None);
            }
        };
        self.start_repeatedly(on_failure).await
    }

    /// Starts a browser, in several attempts. `on_failure` is called after each one that failed.
    async fn start_repeatedly(&self, on_failure: impl Fn()) -> Result<Arc<Browser>, StartError> {
        let mut attempts = StartAttempts::default();
        loop {
            let error = match self.start_browser(self.setup.frames, self.spare_contexts, self.setup.max_grabs).await {
                Ok(browser) => return Ok(browser),
                Err(error) => error,
            };
            on_failure();
            if !attempts.retry_after(&error).await {
                return Err(error);
            }
        }
    }
}
