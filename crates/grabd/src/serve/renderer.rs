//! The role `renderer`: browsers for cores on other machines. It has no database, no keys and no images.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use grabd_browser::Chromium;
use grabd_rpc::direct_uploads::DirectUploads;
use grabd_rpc::renderer_pool::RendererPool;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listener::{self, ConnectionLimits, Timeouts};
use super::{cluster_tls, health, http, metrics, open_files};
use crate::config::Config;
use crate::net::bind;
use crate::{data_dir_lock, wiring};

/// Concurrent connections for health checks and metrics.
const MAX_CONNECTIONS: usize = 64;

/// A running renderer. End it with [`RendererProcess::drain`].
pub struct RendererProcess {
    http: SocketAddr,
    metrics: SocketAddr,
    browser: Chromium,
    tasks: TaskTracker,
    stop: CancellationToken,
    _data_dir_lock: data_dir_lock::DataDirLock,
}

impl RendererProcess {
    /// Starts the browser and attaches to the cores. `launcher` is as in [`super::Service::start`].
    ///
    /// # Errors
    /// The first component that cannot start, with a remedy.
    pub async fn start(config: &Config, launcher: Option<&Path>) -> anyhow::Result<Self> {
        let data_dir_lock = data_dir_lock::lock(&config.data_dir)?;
        let http_listener = bind(config.http.listen, "GRABD_HTTP__LISTEN").await?;
        let metrics_listener = bind(config.metrics.listen, "GRABD_METRICS__LISTEN").await?;
        let (http, metrics) = (http_listener.local_addr()?, metrics_listener.local_addr()?);
        let endpoints = cluster_tls::endpoints(&config.cluster)?;
        let uploads = Arc::new(DirectUploads::new(wiring::uploader(config)?));
        let (memory, lists) = (wiring::image_memory(config), wiring::filter_lists(config));
        let browser = wiring::browser(config, wiring::guard(config)?, memory, lists, launcher).await?;

        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let pool = RendererPool::new(config.renderer.cores.clone(), config.slots(), endpoints);
        let pool = pool.with_uploads(Arc::clone(&uploads));
        let attached = pool.attached();
        tasks.spawn(pool.run(browser.clone(), stop.clone()));

        let limits = ConnectionLimits {
            connections: open_files::connections(config.limits.connections).min(MAX_CONNECTIONS),
            connections_per_address: MAX_CONNECTIONS,
            connections_per_end_site: MAX_CONNECTIONS,
            requests_per_address: MAX_CONNECTIONS,
            proxies: config.http.trusted_proxies.clone(),
        };
        let serve = |listener, router: Router| {
            let service = http::service(router, Timeouts::default());
            tasks.spawn(listener::serve(listener, service, limits.clone(), Timeouts::default(), stop.clone()));
        };
        serve(http_listener, health::renderer_router(attached, browser.clone()));
        serve(metrics_listener, metrics::renderer_router(browser.clone(), uploads));
        Ok(Self { http, metrics, browser, tasks, stop, _data_dir_lock: data_dir_lock })
    }

    /// The address of the health checks.
    pub const fn http(&self) -> SocketAddr {
        self.http
    }

    /// The address of the metrics listener.
    pub const fn metrics(&self) -> SocketAddr {
        self.metrics
    }

    /// The browser.
    pub const fn browser(&self) -> &Chromium {
        &self.browser
    }

    /// Resolves when the process should end and be restarted.
    pub async fn failed(&self) -> anyhow::Error {
        let error = self.browser.failed().await;
        anyhow::Error::new(error).context("the browser is beyond help; leaving")
    }

    /// Finishes the renders in progress, and ends the browser.
    pub async fn drain(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.browser.shutdown().await;
    }
}
