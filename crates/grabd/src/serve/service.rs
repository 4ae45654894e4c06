//! A running service: core, renderer and faces in one process, with no socket between them.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use grabd_browser::{Chromium, Health};
use grabd_edge::transport;
use grabd_engine::rpc::{self, Public};
use grabd_engine::{Core, renderer};
use grabd_store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listener::{self, Bounds, Patience};
use super::{grpc, health, http, images, metrics, open_files, pages, stripe, well_known};
use crate::config::Config;
use crate::{single, wiring};

/// Readers of metrics at a time. Each reading asks the database.
const MAX_READERS: usize = 16;

/// Everything that runs. Ended by [`Service::drain`]; dropping it leaves the browser to the operating system.
pub struct Service {
    http: SocketAddr,
    grpc: SocketAddr,
    metrics: SocketAddr,
    public_url: String,
    core: Core,
    store: Store,
    public: Public,
    router: axum::Router,
    browser: Chromium,
    faces: Faces,
    rendering: Rendering,
    _hold: single::Hold,
}

/// The listeners.
struct Faces {
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The renderer in this process.
struct Rendering {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Service {
    /// Starts everything; when this returns, requests are answered. `launcher` is the program that jails browsers, which
    /// calls [`grabd_browser::launcher`] before anything else; without it they are not jailed.
    ///
    /// # Errors
    /// The first thing that cannot start, with what to do about it.
    pub async fn start(config: &Config, launcher: Option<&Path>) -> anyhow::Result<Self> {
        Self::start_with(config, launcher, Patience::default()).await
    }

    /// The same with another patience.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub async fn start_with(config: &Config, launcher: Option<&Path>, patience: Patience) -> anyhow::Result<Self> {
        let hold = single::take(&config.data_dir)?;
        // Ports first: a taken one should be told before a browser has been started for nothing.
        let http_listener = bind(config.http.listen, "GRABD_HTTP__LISTEN").await?;
        let grpc_listener = bind(config.grpc.listen, "GRABD_GRPC__LISTEN").await?;
        let metrics_listener = bind(config.metrics.listen, "GRABD_METRICS__LISTEN").await?;
        let metrics = metrics_listener.local_addr()?;
        let (http, grpc) = (http_listener.local_addr()?, grpc_listener.local_addr()?);
        let public_url = config.public_url(http);

        let store = wiring::open_store(config).await?;
        store.migrate().await.context("the database's schema cannot be brought up to date")?;
        let guard = wiring::guard(config)?;
        let core = wiring::core(config, store.clone(), guard.clone(), &public_url).await?;
        let browser = wiring::browser(config, guard, launcher).await?;

        let rendering = Rendering { tasks: TaskTracker::new(), stop: CancellationToken::new() };
        rendering.tasks.spawn(renderer::run(
            rpc::internal(&core),
            browser.clone(),
            config.slots(),
            rendering.stop.clone(),
        ));

        let public = Public::new(&core, config.grpc.reflection).await?;
        let options = grabd_edge::Options {
            public_url: public_url.clone(),
            requests_per_minute: config.limits.requests_per_minute,
            async_queue_limit: config.limits.async_queue,
            trusted_proxies: config.http.trusted_proxies.clone(),
        };
        let faces = Faces { tasks: TaskTracker::new(), stop: CancellationToken::new() };
        let images = images::router(core.clone());
        let agents = grabd_edge::mcp::Options {
            public_url: public_url.clone(),
            mcp_url: Some(core.oauth().mcp_url.clone()),
            allowed_origins: config.mcp.allowed_origins.clone(),
            requests_per_minute: config.limits.requests_per_minute,
            trusted_proxies: config.http.trusted_proxies.clone(),
            images: images.clone(),
            tasks: faces.tasks.clone(),
        };
        let rest = grabd_edge::router(transport::in_process(public.gated()), options);
        let mcp = grabd_edge::mcp::router(transport::in_process(public.gated()), agents);
        let pages = pages::router(config, core.clone(), &public_url);
        let router = rest.merge(mcp).merge(pages).merge(grabd_edge::manners(
            images
                .merge(health::router(core.clone(), browser.clone()))
                .merge(stripe::router(core.clone()))
                .merge(well_known::router(&config.http.security_contact, &public_url)),
            &public_url,
        ));

        let connections = open_files::connections(config.limits.connections);
        let bounds = |connections_per_address, requests_per_address| {
            let proxies = config.http.trusted_proxies.clone();
            Bounds { connections, connections_per_address, requests_per_address, proxies }
        };
        let serve = |listener, face, bounds| {
            faces.tasks.spawn(listener::serve(listener, face, bounds, patience, faces.stop.clone()));
        };
        let of_http = bounds(config.http.connections_per_address, config.http.requests_per_address);
        serve(http_listener, http::face(router.clone(), patience), of_http);
        let of_grpc = bounds(config.grpc.connections_per_address, config.grpc.calls_per_address);
        serve(grpc_listener, grpc::face(&public), of_grpc);
        let of_metrics = Bounds { connections: MAX_READERS, ..bounds(MAX_READERS, MAX_READERS) };
        let measured = metrics::router(core.clone(), browser.clone());
        serve(metrics_listener, http::face(measured, patience), of_metrics);
        Ok(Self {
            http,
            grpc,
            metrics,
            public_url,
            core,
            store,
            public,
            router,
            browser,
            faces,
            rendering,
            _hold: hold,
        })
    }

    /// Where REST is served.
    pub const fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where gRPC is served.
    pub const fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// Where metrics are served.
    pub const fn metrics(&self) -> SocketAddr {
        self.metrics
    }

    /// The origin under which callers reach REST and images.
    pub fn public_url(&self) -> &str {
        &self.public_url
    }

    /// The use-cases, for callers in this process.
    pub const fn core(&self) -> &Core {
        &self.core
    }

    /// The database.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The HTTP faces, for callers in this process.
    pub fn router(&self) -> axum::Router {
        self.router.clone()
    }

    /// The browser.
    pub const fn browser(&self) -> &Chromium {
        &self.browser
    }

    /// How the browser is.
    pub fn health(&self) -> Health {
        self.browser.health()
    }

    /// Resolves when this process should rather end and be started anew.
    pub async fn failed(&self) -> anyhow::Error {
        anyhow::Error::new(self.browser.failed().await).context("the browser is beyond help; leaving")
    }

    /// Ends in the order that loses nothing: no new requests, open ones are answered, renders are finished and
    /// recorded, the database is closed, the browser and its directories go last.
    pub async fn drain(self) {
        self.public.not_serving().await;
        self.core.drain();
        self.faces.stop.cancel();
        self.faces.tasks.close();
        self.faces.tasks.wait().await;
        self.rendering.stop.cancel();
        self.rendering.tasks.close();
        self.rendering.tasks.wait().await;
        self.core.stop().await;
        self.store.close().await;
        self.browser.shutdown().await;
    }
}

async fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("{address} cannot be listened on; is it in use? Set {setting} to another address"))
}
