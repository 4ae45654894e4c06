//! The fixture site: pages with known pixels, served over real sockets, with a log of the requests.
//!
//! `files` serves the pages in `tests/site`, [`images`] the images, which are generated on first request, [`behaviour`]
//! paths that fail, wait, redirect or remember, and [`hostile`] pages that attack the service. To add a page, put it
//! there and add its path to the table of its module. [`hard`] serves the pages that are hard to capture, without a
//! table.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::middleware::{self, Next};
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub mod behaviour;
mod files;
pub mod hard;
pub mod hostile;
pub mod images;
mod scenes;

/// The longest wait for a request. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// A running site. It stops when dropped.
pub struct Site {
    address: SocketAddr,
    hits: watch::Sender<Hits>,
    stop: CancellationToken,
}

/// Requested paths without queries: the count per path, and all of them in order.
#[derive(Default)]
struct Hits {
    count: HashMap<String, usize>,
    order: Vec<String>,
}

impl Site {
    /// Serves the site on a free port of this address.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub async fn start(address: IpAddr) -> io::Result<Self> {
        Self::serve(address, None).await
    }

    /// Serves the site on two addresses, which a browser treats as two sites.
    ///
    /// # Errors
    /// If an address cannot be bound.
    pub async fn start_pair(address: IpAddr, other: IpAddr) -> io::Result<Self> {
        Self::serve(address, Some(other)).await
    }

    async fn serve(address: IpAddr, other: Option<IpAddr>) -> io::Result<Self> {
        let mut listeners = vec![TcpListener::bind((address, 0)).await?];
        if let Some(other) = other {
            listeners.push(TcpListener::bind((other, 0)).await?);
        }
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
        let (hits, stop) = (watch::Sender::default(), CancellationToken::new());
        let other = addresses.last().map(|last| format!("http://{last}")).unwrap_or_default();
        let router = router(hits.clone(), other);
        let tasks = TaskTracker::new();
        for listener in listeners {
            let router = router.clone();
            tasks.spawn(stop.clone().run_until_cancelled_owned(async move { axum::serve(listener, router).await }));
        }
        Ok(Self { address: addresses[0], hits, stop })
    }

    /// Scheme, host and port, without a trailing slash.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port that the site listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The URL of a path, which starts with a slash and may have a query.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin())
    }

    /// The number of requests for a path so far, whatever their query.
    pub fn hits(&self, path: &str) -> usize {
        self.hits.borrow().count.get(path).copied().unwrap_or(0)
    }

    /// All requested paths so far, in order.
    pub fn order(&self) -> Vec<String> {
        self.hits.borrow().order.clone()
    }

    /// The number of all requests so far.
    pub fn total_hits(&self) -> usize {
        self.hits.borrow().order.len()
    }

    /// Waits until the site has had this many requests.
    ///
    /// # Panics
    /// If that does not happen within a minute.
    pub async fn wait_for_total_hits(&self, count: usize) {
        let mut hits = self.hits.subscribe();
        let seen = tokio::time::timeout(WAIT_LIMIT, hits.wait_for(|hits| hits.order.len() >= count)).await.is_ok();
        assert!(seen, "the site had {} requests in {WAIT_LIMIT:?}, expected {count}", self.total_hits());
    }

    /// Waits until a path was requested this often.
    ///
    /// # Panics
    /// If that does not happen within a minute.
    pub async fn wait_for_hits(&self, path: &str, count: usize) {
        let mut hits = self.hits.subscribe();
        let enough = hits.wait_for(|hits| hits.count.get(path).copied().unwrap_or(0) >= count);
        let seen = tokio::time::timeout(WAIT_LIMIT, enough).await.is_ok();
        assert!(seen, "{path} had {} requests in {WAIT_LIMIT:?}, expected {count}", self.hits(path));
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn router(hits: watch::Sender<Hits>, other: String) -> Router {
    let routes = Router::new()
        .merge(files::routes())
        .merge(images::routes())
        .merge(behaviour::routes())
        .merge(hard::routes(other))
        .merge(hostile::routes());
    routes.layer(middleware::from_fn_with_state(hits, log))
}

/// Counts before responding, so that a test sees a request that is still in progress.
async fn log(State(hits): State<watch::Sender<Hits>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    hits.send_modify(|hits| {
        *hits.count.entry(path.clone()).or_default() += 1;
        hits.order.push(path);
    });
    let mut response = next.run(request).await;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;
