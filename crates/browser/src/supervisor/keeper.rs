//! The one task that decides which browser takes new grabs.

use std::sync::Arc;
use std::time::Duration;

use super::browser::Browser;
use super::shared::Shared;
use super::start::StartError;

/// Starts that fail in a row before it is said that browsers cannot be started here.
const ATTEMPTS: u32 = 3;

/// Between two attempts: a moment's lack of memory or processes may pass.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

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
            let Some(started) = self.shutdown.run_until_cancelled(self.start_again(&browser)).await else { break };
            self.retire(browser.clone(), why);
            browser = match started {
                Ok(browser) => {
                    self.current.send_replace(Some(browser.clone()));
                    browser
                }
                Err(error) => {
                    tracing::error!(%error, "browsers cannot be started any more");
                    self.current.send_replace(None);
                    self.failed.send_replace(Some(error));
                    return;
                }
            };
        }
        self.current.send_replace(None);
        self.end(&browser, false).await;
    }

    async fn start_again(&self, worn: &Browser) -> Result<Arc<Browser>, StartError> {
        let mut attempt = 1;
        loop {
            let error = match self.start_browser(self.spare_contexts, self.setup.grabs_of_a_life).await {
                Ok(browser) => return Ok(browser),
                Err(error) => error,
            };
            tracing::warn!(%error, attempt, "a browser does not start");
            if worn.client.closed().is_cancelled() {
                // It died while its successor was tried: nothing takes new grabs.
                self.current.send_replace(None);
            }
            if attempt == ATTEMPTS {
                return Err(error);
            }
            attempt += 1;
            tokio::time::sleep(BETWEEN_ATTEMPTS).await;
        }
    }
}
