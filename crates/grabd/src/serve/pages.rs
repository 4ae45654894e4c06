//! The pages and OAuth as this listener serves them: with the manners of all its answers, and told whose request it is.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use grabd_engine::Core;
use grabd_web::Address;
use ipnet::IpNet;

use crate::config::Config;

/// The routes of the pages.
pub(super) fn router(config: &Config, core: Core, public_url: &str) -> Router {
    let proxies: Arc<[IpNet]> = config.http.trusted_proxies.clone().into();
    let pages = grabd_web::router(core, config.limits.requests_per_minute);
    let pages = pages.layer(middleware::from_fn(move |mut request: Request, next: Next| {
        let address = Address(grabd_edge::client_address(&request, &proxies));
        request.extensions_mut().insert(address);
        next.run(request)
    }));
    grabd_edge::manners(pages, public_url)
}
