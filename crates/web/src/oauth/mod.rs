//! OAuth 2.1: the consent page, and the endpoints that programs call.

pub(crate) mod authorize;
mod consent;
pub(crate) mod device;
mod metadata;
mod paths;
mod register;
mod response;
mod token;

use std::sync::Arc;

use axum::routing::{get, post};
use axum::{Router, middleware};

pub(crate) use paths::authorize_path;

use self::paths::well_known;
use crate::response::{READ, WRITE};
use crate::state::Web;

/// The endpoints that programs call, from any origin. They use no cookies.
pub(crate) fn router(web: &Web) -> Router<Arc<Web>> {
    let settings = web.core.oauth();
    let mut routes = vec![
        ("/v1/oauth/token".to_owned(), WRITE, post(token::token)),
        ("/v1/oauth/revoke".to_owned(), WRITE, post(token::revoke)),
        ("/v1/oauth/device_authorization".to_owned(), WRITE, post(token::authorize_device)),
        ("/v1/oauth/register".to_owned(), WRITE, post(register::register)),
        (well_known("oauth-authorization-server", &settings.issuer), READ, get(metadata::server)),
    ];
    // Without a path, the document names the origin (RFC 9728 section 3.3), unless MCP is served there.
    let resources = [
        (&*settings.mcp_url, get(metadata::mcp)),
        (&*settings.base_url, get(metadata::api)),
        ("", get(metadata::service)),
    ];
    for (url, handler) in resources {
        let path = well_known("oauth-protected-resource", url);
        if routes.iter().all(|(taken, _, _)| *taken != path) {
            routes.push((path, READ, handler));
        }
    }
    let router = routes
        .into_iter()
        .fold(Router::new(), |router, (path, allowed, methods)| router.route(&path, response::only(allowed, methods)));
    router.layer(middleware::from_fn(response::allow_cross_origin))
}
