//! The paths of the OAuth endpoints.

use url::Url;

/// The path of the authorization endpoint.
pub(crate) fn authorize_path(auth_url: &str) -> String {
    format!("{}/oauth/authorize", path(auth_url))
}

/// The path of a well-known document for `url`. The name goes between the host and the path (RFC 8414 section 3).
pub(super) fn well_known(name: &str, url: &str) -> String {
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
