//! The web pages and OAuth, with the common headers and the client's address.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::middleware::{self, Next};
use axum::response::Response;
use grabd_engine::Core;
use grabd_proto::reason::ERROR_CAUSE;
use grabd_web::{Address, ClientPackages};
use ipnet::IpNet;

use crate::config::{Config, SelfHosting};

/// Middleware that answers browsers at unknown paths with a page. Programs get the JSON error of the API.
pub(super) async fn html_not_found(
    State(page): State<Arc<dyn Fn() -> Response + Send + Sync>>,
    request: Request,
    next: Next,
) -> Response {
    let accepts = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let is_browser = accepts.contains("text/html") && !request.uri().path().starts_with("/v1/");
    let response = next.run(request).await;
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if !(is_browser && is_json && response.status() == StatusCode::NOT_FOUND) {
        return response;
    }
    let mut page = page();
    if let Some(cause) = response.headers().get(ERROR_CAUSE) {
        page.headers_mut().insert(ERROR_CAUSE, cause.clone());
    }
    page
}

/// The routes of the pages, which offer these packages.
pub(super) fn router(config: &Config, core: Core, public_url: &str, packages: ClientPackages) -> Router {
    let proxies: Arc<[IpNet]> = config.http.trusted_proxies.clone().into();
    let (origin, auth_url) = (public_url.to_owned(), core.oauth().issuer.clone());
    let options = grabd_web::Options {
        requests_per_minute: config.limits.requests_per_minute,
        hides_self_hosting: config.docs.self_hosting == SelfHosting::Hide,
        reference: Box::new(move || {
            grabd_edge::reference_pages(&origin, &auth_url).into_iter().map(page_of_reference).collect()
        }),
        packages,
    };
    let pages = grabd_web::router(core, options);
    let pages = pages.layer(middleware::from_fn(move |mut request: Request, next: Next| {
        let address = Address(grabd_http::client_address(&request, &proxies));
        request.extensions_mut().insert(address);
        next.run(request)
    }));
    grabd_edge::common_headers(pages, public_url)
}

fn page_of_reference(page: grabd_edge::ReferencePage) -> grabd_web::ReferencePage {
    let grabd_edge::ReferencePage { slug, title, summary, html, headings, passages } = page;
    grabd_web::ReferencePage { slug, title, summary, html, headings, passages }
}
