//! The routes, and the middleware that all of them pass.

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::{MethodRouter, get, post};
use grabd_proto::v1::ErrorCode;

use super::common_headers::common_headers;
use super::error::ApiError;
use super::methods::allow_methods;
use super::state::{Edge, Options};
use super::{
    batch, create, delete, docs, events, fetch, links, list, monitors, openapi, paths, pricing, proxies, read,
    request_layer, sites, usage, webhooks,
};
use crate::transport::Transport;

/// The REST API, and the JSON 404 response for unknown paths. The peer address is taken from the request extension
/// `ConnectInfo<SocketAddr>`.
pub fn router(transport: Transport, options: Options) -> Router {
    let edge = Arc::new(Edge::new(transport, options, openapi::document));
    let mut router = Router::new();
    for (path, allowed, methods) in routes() {
        router = router.route(path, allow_methods(allowed, methods));
    }
    let router = router
        .fallback(async || ApiError::new(ErrorCode::NotFound, "Nothing is served at this path."))
        .layer(middleware::from_fn_with_state(Arc::clone(&edge), request_layer::handle))
        .with_state(Arc::clone(&edge));
    common_headers(router, &edge.origin)
}

/// A path, the value of its `Allow` header, and its handlers.
pub(super) type Route = (&'static str, &'static str, MethodRouter<Arc<Edge>>);

/// All routes. Those below `/v1` must also be described in `openapi`; a test compares the two.
pub(super) fn routes() -> Vec<Route> {
    vec![
        ("/v1/grabs", "GET, HEAD, POST, OPTIONS", get(list::list).post(create::create)),
        (batch::PATH, "POST, OPTIONS", post(batch::create)),
        ("/v1/grabs/{id}", "GET, HEAD, DELETE, OPTIONS", get(fetch::fetch).delete(delete::delete)),
        (read::PATH, "GET, HEAD, OPTIONS", get(read::read)),
        ("/v1/grabs/{id}/events", "GET, HEAD, OPTIONS", get(events::events)),
        ("/v1/monitors", "GET, HEAD, POST, OPTIONS", get(monitors::list).post(monitors::create)),
        ("/v1/monitors/batch", "POST, OPTIONS", post(monitors::create_batch)),
        (
            "/v1/monitors/{id}",
            "GET, HEAD, PATCH, DELETE, OPTIONS",
            get(monitors::fetch).patch(monitors::update).delete(monitors::delete),
        ),
        ("/v1/monitors/{id}/runs", "GET, HEAD, OPTIONS", get(monitors::runs)),
        ("/v1/monitors/{id}/history.zip", "GET, HEAD, OPTIONS", get(monitors::history)),
        ("/v1/monitors/{id}/feed", "POST, DELETE, OPTIONS", post(monitors::open_feed).delete(monitors::close_feed)),
        ("/v1/monitors/{id}/accept", "POST, OPTIONS", post(monitors::accept)),
        ("/v1/sites", "GET, HEAD, POST, OPTIONS", get(sites::list).post(sites::create)),
        ("/v1/sites/{id}", "GET, HEAD, DELETE, OPTIONS", get(sites::fetch).delete(sites::delete)),
        ("/v1/sites/{id}/pages", "GET, HEAD, OPTIONS", get(sites::pages)),
        ("/v1/sites/{id}/cancel", "POST, OPTIONS", post(sites::cancel)),
        ("/v1/webhooks", "GET, HEAD, POST, OPTIONS", get(webhooks::list).post(webhooks::create)),
        (
            "/v1/webhooks/{id}",
            "GET, HEAD, PATCH, DELETE, OPTIONS",
            get(webhooks::fetch).patch(webhooks::update).delete(webhooks::delete),
        ),
        ("/v1/webhooks/{id}/rotate_secret", "POST, OPTIONS", post(webhooks::rotate_secret)),
        ("/v1/webhooks/{id}/test", "POST, OPTIONS", post(webhooks::test)),
        ("/v1/webhooks/{id}/deliveries", "GET, HEAD, OPTIONS", get(webhooks::deliveries)),
        ("/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver", "POST, OPTIONS", post(webhooks::redeliver)),
        ("/v1/proxies", "GET, HEAD, POST, OPTIONS", get(proxies::list).post(proxies::create)),
        (
            "/v1/proxies/{id}",
            "GET, HEAD, PATCH, DELETE, OPTIONS",
            get(proxies::fetch).patch(proxies::update).delete(proxies::delete),
        ),
        (paths::LINKS, "GET, HEAD, OPTIONS", get(links::open)),
        ("/v1/usage", "GET, HEAD, OPTIONS", get(usage::usage)),
        (paths::PRICING, "GET, HEAD, OPTIONS", get(pricing::pricing)),
        (paths::OPENAPI, "GET, HEAD, OPTIONS", get(docs::document)),
        (docs::ROOT_OPENAPI_PATH, "GET, HEAD, OPTIONS", get(docs::document)),
    ]
}
