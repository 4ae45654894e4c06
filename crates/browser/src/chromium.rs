//! The public interface to the browsers.

use std::sync::{Arc, OnceLock};

use grabd_domain::address::Policy;
use grabd_domain::render::{Capture, RenderError, RenderTask, Renderer, RendererStatus};
use grabd_egress::Guard;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;
use tracing::Instrument;

use crate::jail::Jail;
use crate::supervisor::{Health, Shared, StartError};
use crate::{Options, SelfTestError, SelfTestReport, selftest, writing_systems};

/// Renders images with Chromium. Cheap to clone. Its browsers end when the last clone is dropped.
#[derive(Clone)]
pub struct Chromium {
    shared: Arc<Shared>,
    /// The result of the self-test, once it has run.
    self_test_report: Arc<OnceLock<SelfTestReport>>,
    _shutdown: Arc<DropGuard>,
}

impl Chromium {
    /// Clears `options.run_dir`, starts the first browser, and keeps one running until shutdown.
    ///
    /// # Errors
    /// When the first browser does not start. The text tells the operator what to do.
    pub async fn start(options: Options, guard: Guard) -> Result<Self, StartError> {
        let shared = Shared::start(options, guard).await?;
        let shutdown = Arc::new(shared.shutdown.clone().drop_guard());
        Ok(Self { shared, self_test_report: Arc::default(), _shutdown: shutdown })
    }

    /// Checks whether a page can bypass the guard, whose policy is `policy`. Takes 0.1 s and one prepared tab.
    ///
    /// # Errors
    /// When a page can, or when the test is inconclusive. Nothing must be rendered then.
    pub async fn self_test(&self, policy: &Policy) -> Result<SelfTestReport, SelfTestError> {
        let report = selftest::run(&self.shared, policy).await?;
        // The first report is kept. A service runs the self-test once.
        let _ = self.self_test_report.set(report);
        Ok(report)
    }

    /// The names of the writing systems for which no font of this machine has glyphs. `None` if the browser did not answer.
    pub(crate) async fn systems_without_glyphs(&self) -> Option<Vec<&'static str>> {
        writing_systems::without_glyphs(&self.shared).await
    }

    /// Ends all browsers within seconds and removes their directories. Open grabs are lost, so drain first.
    pub async fn shutdown(&self) {
        self.shared.shut_down().await;
    }

    /// The state of the browsers.
    pub fn health(&self) -> Health {
        self.shared.health()
    }

    /// Whether the browsers are jailed. Decided when the first browser starts.
    pub fn jail(&self) -> &Jail {
        &self.shared.jail
    }

    /// Resolves when a browser failed to start three times in a row, after which the process should end. Otherwise
    /// pending forever.
    pub async fn failed(&self) -> StartError {
        self.shared.failed().await
    }
}

impl Renderer for Chromium {
    fn status(&self) -> RendererStatus {
        let Health { version, memory_bytes, restarts, .. } = self.health();
        let report = self.self_test_report.get();
        RendererStatus {
            browser: version.unwrap_or_default(),
            restarts: restarts.into_iter().map(|(why, count)| (why.to_owned(), count)).collect(),
            memory_bytes,
            is_jailed: *self.jail() == Jail::Jailed,
            jail: self.jail().to_string(),
            is_tested: report.is_some_and(|report| report.canary.is_some()),
            self_test: report.map_or_else(|| "not made".to_owned(), SelfTestReport::to_string),
        }
    }

    async fn render(&self, task: RenderTask) -> Result<Capture, RenderError> {
        let started = Instant::now();
        let span = tracing::info_span!("browser.render", grab.id = %task.id, alone = task.alone);
        let capture = async {
            tokio::select! {
                biased;
                () = self.shared.shutdown.cancelled() => Err(RenderError::Lost("the service is ending".into())),
                capture = self.shared.render(&task, started + task.time_limit()) => capture,
            }
        };
        let capture = capture.instrument(span).await?;
        // With the wait for a browser.
        let execution_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
        Ok(Capture { execution_ms, ..capture })
    }
}
