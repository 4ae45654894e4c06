//! The one task that decides which browser takes new grabs.

use std::sync::Arc;

use super::browser::Browser;
use super::shared::Shared;
use super::start::{Attempts, StartError};

impl Shared {
    /// Keeps a browser running, beginning with the one that takes new grabs now, until the service ends or none can be
    /// started.
    pub(super) async fn keep(self: Arc<Self>, mut browser: Arc<Browser>) {
        loop {
            let Some(why) = self.shutdown.run_until_cancelled(browser.needs_replacing()).await else { break };
            tracing::info!(browser.pid = browser.pid(), why = why.as_str(), "a browser is replaced");
            self.count_restart(why);
            if !why.may_finish() {
                self.current.send_replace(None);
            }
            // A worn browser serves on until its successor is there.
            let Some(started) = self.shutdown.run_until_cancelled(self.start_successor(&browser)).await else {
                break;
            };
            let successor = started.as_ref().ok().cloned();
            // In this order: who still finds the worn one has its tab counted before it is closed.
            self.current.send_replace(successor);
            self.retire(browser, why);
            browser = match started {
                Ok(successor) => successor,
                Err(error) => {
                    tracing::error!(%error, "browsers cannot be started any more");
                    self.failed.send_replace(Some(error));
                    return;
                }
            };
        }
        self.current.send_replace(None);
        self.end(&browser, false).await;
    }

    async fn start_successor(&self, worn: &Browser) -> Result<Arc<Browser>, StartError> {
        let mut attempts = Attempts::default();
        loop {
            let error = match self.start_browser(self.spare_contexts, self.setup.grabs_of_a_life).await {
                Ok(browser) => return Ok(browser),
                Err(error) => error,
            };
            if worn.client.closed().is_cancelled() {
                // It died while its successor was tried: nothing takes new grabs.
                self.current.send_replace(None);
            }
            if !attempts.go_on_after(&error).await {
                return Err(error);
            }
        }
    }
}
