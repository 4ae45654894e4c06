//! The browser as the rest of grabd sees it.

use std::sync::{Arc, OnceLock};

use grabd_domain::address::Policy;
use grabd_domain::render::{Capture, Condition, RenderError, RenderTask, Renderer};
use grabd_egress::Guard;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;
use tracing::Instrument;

use crate::jail::Jail;
use crate::supervisor::{Health, Shared, StartError};
use crate::{Held, Options, SelfTestError, page, selftest};

/// Makes pictures with Chromium. Cheap to clone; when the last clone is dropped, its browsers end.
#[derive(Clone)]
pub struct Chromium {
    shared: Arc<Shared>,
    /// What the self-test found, once it was made.
    held: Arc<OnceLock<Held>>,
    _ends: Arc<DropGuard>,
}

impl Chromium {
    /// Clears `options.run_dir`, starts the first browser, and keeps one running from then on.
    ///
    /// # Errors
    /// When the first browser does not start; the text says what to do.
    pub async fn start(options: Options, guard: Guard) -> Result<Self, StartError> {
        let shared = Shared::start(options, guard).await?;
        let ends = Arc::new(shared.shutdown.clone().drop_guard());
        Ok(Self { shared, held: Arc::default(), _ends: ends })
    }

    /// Tries whether a page gets past the guard, whose policy this is. Takes a tenth of a second and one prepared tab.
    ///
    /// # Errors
    /// When a page does, or nobody can say that it does not: then nothing must be rendered.
    pub async fn self_test(&self, policy: &Policy) -> Result<Held, SelfTestError> {
        let held = selftest::run(&self.shared, policy).await?;
        // The first one is told of; a service makes no other.
        let _ = self.held.set(held);
        Ok(held)
    }

    /// Ends all browsers within seconds and removes their directories. Grabs under way are lost; drain before.
    pub async fn shutdown(&self) {
        self.shared.shut_down().await;
    }

    /// How the browsers are.
    pub fn health(&self) -> Health {
        self.shared.health()
    }

    /// Whether its browsers are jailed, which is decided when the first one starts.
    pub fn jail(&self) -> &Jail {
        &self.shared.jail
    }

    /// Resolves when a browser could not be started three times in a row, which is when the process should end. Never
    /// resolves otherwise.
    pub async fn failed(&self) -> StartError {
        self.shared.failed().await
    }
}

impl Renderer for Chromium {
    fn condition(&self) -> Condition {
        let Health { version, memory_bytes, restarts, .. } = self.health();
        let held = self.held.get();
        Condition {
            browser: version.unwrap_or_default(),
            restarts: restarts.into_iter().map(|(why, count)| (why.to_owned(), count)).collect(),
            memory_bytes,
            is_jailed: *self.jail() == Jail::Jailed,
            jail: self.jail().to_string(),
            is_tested: held.is_some_and(|held| held.canary.is_some()),
            self_test: held.map_or_else(|| "not made".to_owned(), Held::to_string),
        }
    }

    async fn render(&self, task: RenderTask) -> Result<Capture, RenderError> {
        let started = Instant::now();
        let span = tracing::info_span!("browser.render", grab.id = %task.id, alone = task.alone);
        let picture = async {
            tokio::select! {
                biased;
                () = self.shared.shutdown.cancelled() => Err(RenderError::Lost("the service is ending".into())),
                picture = self.shared.render(&task, started + task.budget) => picture,
            }
        };
        let page::Picture { image, facts } = picture.instrument(span).await?;
        let execution_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
        Ok(Capture { image, facts, execution_ms })
    }
}
