//! A running service: core, renderer and listeners in one process, connected without sockets.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use axum::middleware;
use axum::response::Response;
use grabd_browser::{Chromium, Health};
use grabd_edge::transport;
use grabd_engine::Core;
use grabd_rpc::{PublicServices, renderer_client, renderer_service};
use grabd_store::{ServiceLock, Store};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listener::{self, ConnectionLimits, Timeouts};
use super::{
    cluster_tls, evidence_keys, grpc, health, http, images, metrics, open_files, pages, renderer_listener, stripe,
    well_known,
};
use crate::config::{Config, Delivery, ProcessRole};
use crate::net::bind;
use crate::{data_dir_lock, wiring};

/// Concurrent connections for metrics. Each scrape queries the database.
const MAX_SCRAPES: usize = 16;
/// The part of the connections to the HTTP listener that one /48 in IPv6 may have: one of this number.
const HTTP_END_SITE_SHARE: usize = 4;

/// Whether a service renders grabs itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rendering {
    /// With Chromium, in as many slots as configured.
    Chromium,
    /// Not at all: grabs of live keys stay queued. Everything else works, and starts without a browser.
    None,
}

/// A running service. End it with [`Service::drain`]. If it is dropped, the kernel ends the browser.
pub struct Service {
    http: SocketAddr,
    grpc: SocketAddr,
    metrics: SocketAddr,
    /// The listener for renderers on other machines.
    renderers: Option<SocketAddr>,
    public_url: String,
    core: Core,
    store: Store,
    public: PublicServices,
    router: axum::Router,
    browser: Option<Chromium>,
    listeners: Listeners,
    renderer_task: RendererTask,
    renderer_listener: RendererTask,
    service_lock: ServiceLock,
    _data_dir_lock: data_dir_lock::DataDirLock,
}

/// The listeners.
struct Listeners {
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The renderer in this process, or the listener for those on other machines.
struct RendererTask {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl RendererTask {
    fn new() -> Self {
        Self { tasks: TaskTracker::new(), stop: CancellationToken::new() }
    }
}

impl Service {
    /// Starts everything. Requests are served when this returns. `launcher` is the program that jails browsers. It must
    /// call [`grabd_browser::launcher`] before anything else. Without it, browsers are not jailed.
    ///
    /// # Errors
    /// The first component that cannot start, with a remedy.
    pub async fn start(config: &Config, launcher: Option<&Path>) -> anyhow::Result<Self> {
        Self::start_with(config, launcher, Timeouts::default(), Rendering::Chromium).await
    }

    /// Starts with other timeouts, with or without a browser.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub async fn start_with(
        config: &Config,
        launcher: Option<&Path>,
        timeouts: Timeouts,
        rendering: Rendering,
    ) -> anyhow::Result<Self> {
        let data_dir_lock = data_dir_lock::lock(&config.data_dir)?;
        // Bind first, to report a port in use before a browser is started.
        let http_listener = bind(config.http.listen, "GRABD_HTTP__LISTEN").await?;
        let role = config.role;
        let grpc_listener = match role {
            ProcessRole::Edge => None,
            ProcessRole::All | ProcessRole::Core | ProcessRole::Renderer => {
                Some(bind(config.grpc.listen, "GRABD_GRPC__LISTEN").await?)
            }
        };
        let metrics_listener = bind(config.metrics.listen, "GRABD_METRICS__LISTEN").await?;
        let metrics = metrics_listener.local_addr()?;
        let http = http_listener.local_addr()?;
        let grpc = grpc_listener.as_ref().map_or(Ok(config.grpc.listen), TcpListener::local_addr)?;
        let renderer_tls = cluster_tls::server(&config.cluster)?;
        renderer_listener::check(renderer_tls.as_ref())?;
        let renderer_socket = match config.cluster.listen {
            Some(listen) => Some(bind(listen, "GRABD_CLUSTER__LISTEN").await?),
            None => None,
        };
        let renderers = renderer_socket.as_ref().map(TcpListener::local_addr).transpose()?;
        let public_url = config.public_url(http);

        let store = wiring::open_store(config).await?;
        // First, so that a second service changes nothing.
        let service_lock = wiring::lock_service(config, &store).await?;
        store.migrate().await.context("the database schema cannot be brought up to date")?;
        let guard = wiring::guard(config)?;
        let memory = wiring::image_memory(config);
        let lists = wiring::filter_lists(config);
        let packages = wiring::client_packages(config)?;
        let core =
            wiring::start_core(config, store.clone(), guard.clone(), memory.clone(), &lists, &public_url, http).await?;
        let browser = match rendering {
            Rendering::Chromium if role == ProcessRole::All => {
                Some(wiring::browser(config, guard, memory, lists, launcher).await?)
            }
            Rendering::Chromium | Rendering::None => None,
        };

        let renderer_task = RendererTask::new();
        let renderer_listener = RendererTask::new();
        if let Some(socket) = renderer_socket {
            let stop = renderer_listener.stop.clone();
            renderer_listener.tasks.spawn(renderer_listener::serve(socket, core.clone(), renderer_tls, stop));
        }
        if let Some(browser) = browser.clone() {
            core.offer_samples(browser.clone());
            let stop = renderer_task.stop.clone();
            renderer_task.tasks.spawn(renderer_client::run(renderer_service(&core), browser, config.slots(), stop));
        }

        let public = PublicServices::new(&core, config.grpc.reflection).await?;
        let options = grabd_edge::Options {
            public_url: public_url.clone(),
            auth_url: core.oauth().issuer.clone(),
            requests_per_minute: config.limits.requests_per_minute,
            async_queue_limit: config.limits.async_queue,
            trusted_proxies: config.http.trusted_proxies.clone(),
            // It does not follow redirects.
            images: images::router(core.clone(), Delivery::Stream),
            memory: core.image_memory().clone(),
        };
        let listeners = Listeners { tasks: TaskTracker::new(), stop: CancellationToken::new() };
        let images = images::router(core.clone(), config.images.delivery);
        let mcp_options = grabd_edge::mcp::Options {
            public_url: public_url.clone(),
            mcp_url: Some(core.oauth().mcp_url.clone()),
            loopback_port: http.ip().is_loopback().then_some(http.port()),
            allowed_origins: config.mcp.allowed_origins.clone(),
            requests_per_minute: config.limits.requests_per_minute,
            trusted_proxies: config.http.trusted_proxies.clone(),
            // It does not follow redirects.
            images: images::router(core.clone(), Delivery::Stream),
            memory: core.image_memory().clone(),
            tasks: listeners.tasks.clone(),
        };
        let rest = grabd_edge::router(transport::in_process(public.gated()), options);
        let mcp = grabd_edge::mcp::router(transport::in_process(public.gated()), mcp_options);
        let pages = pages::router(config, core.clone(), &public_url, packages);
        let health = health::router(core.clone(), role, browser.clone());
        let router = rest.merge(mcp).merge(pages).merge(grabd_edge::common_headers(
            images
                .merge(health.clone())
                .merge(stripe::router(core.clone()))
                .merge(evidence_keys::router(core.clone()))
                .merge(well_known::router(&config.http.security_contact, &public_url))
                .merge(well_known::keys(core.clone())),
            &public_url,
        ));
        let not_found: Arc<dyn Fn() -> Response + Send + Sync> = Arc::new(grabd_web::not_found_page(core.clone()));
        let router = match role {
            ProcessRole::Core => grabd_edge::common_headers(health.fallback(health::no_api), &public_url),
            ProcessRole::All | ProcessRole::Edge | ProcessRole::Renderer => {
                router.layer(middleware::from_fn_with_state(not_found, pages::html_not_found))
            }
        };

        let connections = open_files::connections(config.limits.connections);
        let limits = |connections_per_address, requests_per_address| {
            let proxies = config.http.trusted_proxies.clone();
            let connections_per_end_site = connections;
            ConnectionLimits {
                connections,
                connections_per_address,
                connections_per_end_site,
                requests_per_address,
                proxies,
            }
        };
        let serve = |listener, service, limits| {
            listeners.tasks.spawn(listener::serve(listener, service, limits, timeouts, listeners.stop.clone()));
        };
        let http_limits = limits(config.http.connections_per_address, config.http.requests_per_address);
        // Only this listener is for strangers. Callers of the others may all be in one private network.
        let connections_per_end_site = (connections / HTTP_END_SITE_SHARE).max(http_limits.connections_per_address);
        let http_limits = ConnectionLimits { connections_per_end_site, ..http_limits };
        serve(http_listener, http::service(router.clone(), timeouts), http_limits);
        let grpc_limits = limits(config.grpc.connections_per_address, config.grpc.calls_per_address);
        if let Some(grpc_listener) = grpc_listener {
            serve(grpc_listener, grpc::service(&public), grpc_limits);
        }
        let metrics_limits = ConnectionLimits { connections: MAX_SCRAPES, ..limits(MAX_SCRAPES, MAX_SCRAPES) };
        let metrics_router = metrics::router(core.clone(), browser.clone());
        serve(metrics_listener, http::service(metrics_router, timeouts), metrics_limits);
        Ok(Self {
            http,
            grpc,
            metrics,
            renderers,
            public_url,
            core,
            store,
            public,
            router,
            browser,
            listeners,
            renderer_task,
            renderer_listener,
            service_lock,
            _data_dir_lock: data_dir_lock,
        })
    }

    /// The address of the HTTP listener.
    pub const fn http(&self) -> SocketAddr {
        self.http
    }

    /// The address of the listener for renderers on other machines, if there is one.
    pub const fn renderers(&self) -> Option<SocketAddr> {
        self.renderers
    }

    /// The address of the gRPC listener. An edge has none; then it is the configured address.
    pub const fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// The address of the metrics listener.
    pub const fn metrics(&self) -> SocketAddr {
        self.metrics
    }

    /// The origin of REST and image URLs.
    pub fn public_url(&self) -> &str {
        &self.public_url
    }

    /// The core, for callers in this process.
    pub const fn core(&self) -> &Core {
        &self.core
    }

    /// The database.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The HTTP routes, for callers in this process.
    pub fn router(&self) -> axum::Router {
        self.router.clone()
    }

    /// The browser. `None` with [`Rendering::None`].
    pub const fn browser(&self) -> Option<&Chromium> {
        self.browser.as_ref()
    }

    /// The state of the browser.
    pub fn health(&self) -> Health {
        self.browser.as_ref().map(Chromium::health).unwrap_or_default()
    }

    /// Resolves when the process should end and be restarted.
    pub async fn failed(&self) -> anyhow::Error {
        let browser_failed = async {
            match &self.browser {
                Some(browser) => browser.failed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            error = browser_failed => anyhow::Error::new(error).context("the browser is beyond help; leaving"),
            () = self.service_lock.lost() => anyhow::anyhow!(
                "another grabd has taken over the database while it could not be reached; leaving it to that one"
            ),
        }
    }

    /// Shuts down in order: stops accepting requests, finishes open requests, finishes and records renders, closes the
    /// database, and ends the browser and removes its directories.
    pub async fn drain(self) {
        self.public.set_not_serving().await;
        self.core.drain();
        self.listeners.stop.cancel();
        self.listeners.tasks.close();
        self.listeners.tasks.wait().await;
        self.renderer_task.stop.cancel();
        self.renderer_task.tasks.close();
        self.renderer_task.tasks.wait().await;
        if self.renderers.is_some() {
            self.core.finish_leases().await;
        }
        self.core.stop().await;
        self.renderer_listener.stop.cancel();
        self.renderer_listener.tasks.close();
        self.renderer_listener.tasks.wait().await;
        self.store.close().await;
        self.service_lock.release().await;
        if let Some(browser) = self.browser {
            browser.shutdown().await;
        }
    }
}
