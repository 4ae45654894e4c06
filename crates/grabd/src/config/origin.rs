//! Checks of the URLs in settings.

/// Whether tokens may be sent to this URL.
pub(super) fn is_secure(text: &str) -> bool {
    const LOOPBACK_HOSTS: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];
    url::Url::parse(text).is_ok_and(|url| {
        let host = url.host_str().unwrap_or_default();
        let is_bare =
            url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && !text.contains('@');
        is_bare && (url.scheme() == "https" || url.scheme() == "http" && LOOPBACK_HOSTS.contains(&host))
    })
}

/// Whether it is an http(s) origin, without a path.
pub(super) fn is_origin(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.path() == "/" && url.query().is_none()
    })
}
