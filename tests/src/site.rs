//! The fixture site: pages whose pixels are known, served over real sockets, with a log of what was asked for.
//!
//! `files` are the pages that lie in `tests/site`, [`pictures`] the images, made when they are first asked for,
//! [`behaviour`] the paths that do something: fail, wait, redirect, remember, and [`hostile`] those that mean harm. To add a page, put it there and write its
//! path into the table of its module.

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
pub mod hostile;
pub mod pictures;
mod scenes;

/// The longest a test waits for a request. It only bounds a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running site. It ends when it is dropped.
pub struct Site {
    address: SocketAddr,
    hits: watch::Sender<Hits>,
    stop: CancellationToken,
}

/// What was asked for, without queries: how often each path, and all of them in their order.
#[derive(Default)]
struct Hits {
    count: HashMap<String, usize>,
    order: Vec<String>,
}

impl Site {
    /// Serves the site on a free port of this address.
    ///
    /// # Errors
    /// What the operating system says when the address cannot be had.
    pub async fn start(address: IpAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0)).await?;
        let address = listener.local_addr()?;
        let (hits, stop) = (watch::Sender::default(), CancellationToken::new());
        let router = router(hits.clone());
        let tasks = TaskTracker::new();
        tasks.spawn(stop.clone().run_until_cancelled_owned(async move { axum::serve(listener, router).await }));
        Ok(Self { address, hits, stop })
    }

    /// Scheme, host and port, without a slash at the end.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port it was given.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The address of a path, which starts with a slash and may carry a query.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin())
    }

    /// How often a path was asked for until now, whatever its query.
    pub fn hits(&self, path: &str) -> usize {
        self.hits.borrow().count.get(path).copied().unwrap_or(0)
    }

    /// Every path that was asked for until now, in the order of the requests.
    pub fn order(&self) -> Vec<String> {
        self.hits.borrow().order.clone()
    }

    /// How often anything was asked for until now.
    pub fn hits_in_all(&self) -> usize {
        self.hits.borrow().order.len()
    }

    /// Waits until anything was asked for this often.
    ///
    /// # Panics
    /// When that does not happen within a minute.
    pub async fn wait_for_hits_in_all(&self, count: usize) {
        let mut hits = self.hits.subscribe();
        let seen = tokio::time::timeout(PATIENCE, hits.wait_for(|hits| hits.order.len() >= count)).await.is_ok();
        assert!(seen, "the site was asked {} times in {PATIENCE:?}, not {count}", self.hits_in_all());
    }

    /// Waits until a path was asked for this often.
    ///
    /// # Panics
    /// When that does not happen within a minute.
    pub async fn wait_for_hits(&self, path: &str, count: usize) {
        let mut hits = self.hits.subscribe();
        let enough = hits.wait_for(|hits| hits.count.get(path).copied().unwrap_or(0) >= count);
        let seen = tokio::time::timeout(PATIENCE, enough).await.is_ok();
        assert!(seen, "{path} was asked for {} times in {PATIENCE:?}, not {count}", self.hits(path));
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn router(hits: watch::Sender<Hits>) -> Router {
    let routes = Router::new()
        .merge(files::routes())
        .merge(pictures::routes())
        .merge(behaviour::routes())
        .merge(hostile::routes());
    routes.layer(middleware::from_fn_with_state(hits, log))
}

/// Counts before it answers, so that a test sees a request that is still being answered.
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
