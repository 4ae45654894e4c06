//! OAuth 2.1: the consent page, and the endpoints that programs call.

pub(crate) mod authorize;
mod consent;
mod metadata;
mod register;
mod response;
mod token;

use std::sync::Arc;

use axum::routing::{get, post};
use axum::{Router, middleware};
use url::Url;

use crate::Web;

const READ: &str = "GET, HEAD, OPTIONS";
const WRITE: &str = "POST, OPTIONS";

/// The endpoints that programs call, from any origin. They use no cookies.
pub(crate) fn router(web: &Web) -> Router<Arc<Web>> {
    let settings = web.core.oauth();
    let mut routes = vec![
        ("/v1/oauth/token".to_owned(), WRITE, post(token::token)),
        ("/v1/oauth/revoke".to_owned(), WRITE, post(token::revoke)),
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

/// The path of the authorization endpoint.
pub(crate) fn authorize_path(auth_url: &str) -> String {
    format!("{}/oauth/authorize", path(auth_url))
}

/// The path of a well-known document for `url`. The name goes between the host and the path (RFC 8414 section 3).
fn well_known(name: &str, url: &str) -> String {
    format!("/.well-known/{name}{}", path(url))
}

/// The path of a URL, without a trailing slash.
fn path(url: &str) -> String {
    Url::parse(url).map_or_else(|_| String::new(), |url| url.path().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_name_goes_before_the_path() {
        for (name, url, path) in [
            ("oauth-authorization-server", "https://auth.grabd.example", "/.well-known/oauth-authorization-server"),
            ("oauth-authorization-server", "https://grabd.example/a/b", "/.well-known/oauth-authorization-server/a/b"),
            ("oauth-protected-resource", "https://mcp.grabd.example/mcp", "/.well-known/oauth-protected-resource/mcp"),
            ("oauth-protected-resource", "https://mcp.grabd.example", "/.well-known/oauth-protected-resource"),
            ("oauth-protected-resource", "https://mcp.grabd.example/", "/.well-known/oauth-protected-resource"),
        ] {
            assert_eq!(well_known(name, url), path);
        }
        assert_eq!(authorize_path("https://auth.grabd.example"), "/oauth/authorize");
        assert_eq!(authorize_path("https://grabd.example/auth"), "/auth/oauth/authorize");
    }
}
