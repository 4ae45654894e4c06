//! OAuth 2.1: the page where a person decides, and the endpoints that programs call.

mod answer;
pub(crate) mod authorize;
mod consent;
mod metadata;
mod register;
mod token;

use std::sync::Arc;

use axum::routing::{get, post};
use axum::{Router, middleware};
use url::Url;

use crate::Web;

const READ: &str = "GET, HEAD, OPTIONS";
const WRITE: &str = "POST, OPTIONS";

/// What programs ask, whichever site they come from. Nothing here looks at a cookie.
pub(crate) fn programs(web: &Web) -> Router<Arc<Web>> {
    let settings = web.core.oauth();
    let mut routes = vec![
        ("/v1/oauth/token".to_owned(), WRITE, post(token::token)),
        ("/v1/oauth/revoke".to_owned(), WRITE, post(token::revoke)),
        ("/v1/oauth/register".to_owned(), WRITE, post(register::register)),
        (well_known("oauth-authorization-server", &settings.issuer), READ, get(metadata::server)),
    ];
    // Clients that know no path look at the root, and what they want there is MCP.
    for (url, about) in
        [(&*settings.mcp_url, get(metadata::mcp)), (&*settings.base_url, get(metadata::api)), ("", get(metadata::mcp))]
    {
        let path = well_known("oauth-protected-resource", url);
        if routes.iter().all(|(taken, _, _)| *taken != path) {
            routes.push((path, READ, about));
        }
    }
    let router = routes
        .into_iter()
        .fold(Router::new(), |router, (path, allowed, methods)| router.route(&path, answer::only(allowed, methods)));
    router.layer(middleware::from_fn(answer::open_to_browsers))
}

/// The path at which authorization requests arrive.
pub(crate) fn authorize_path(auth_url: &str) -> String {
    format!("{}/oauth/authorize", path(auth_url))
}

/// The path of a well-known document about `url`: the name goes between the host and the path (RFC 8414 section 3).
fn well_known(name: &str, url: &str) -> String {
    format!("/.well-known/{name}{}", path(url))
}

/// The path of an address, without a slash at its end.
fn path(url: &str) -> String {
    Url::parse(url).map_or_else(|_| String::new(), |url| url.path().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_lie_before_the_path_they_are_about() {
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
