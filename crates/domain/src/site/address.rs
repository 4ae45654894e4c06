//! The form in which addresses of pages are compared, and which belong to the same site.

use url::Url;

use crate::target::{TargetHost, TargetUrl};

/// The longest address of a page of a job, in bytes.
pub const ADDRESS_BYTES: usize = 2048;

/// The address in the form in which a page is captured at most once: without a fragment, a default port and a final dot of the
/// host, whose letters are small. `None` if it is not a valid address of the web, or too long.
pub fn normal_address(text: &str) -> Option<TargetUrl> {
    let mut url = Url::parse(text.trim()).ok()?;
    url.set_fragment(None);
    if let Some(host) = url.host_str().and_then(|host| host.strip_suffix('.')).map(str::to_owned) {
        url.set_host(Some(&host)).ok()?;
    }
    if url.as_str().len() > ADDRESS_BYTES {
        return None;
    }
    TargetUrl::parse(url.as_str()).ok()
}

/// The address in normal form that a reference on another one leads to, as that of a redirect. `None` as for [`normal_address`].
pub fn joined_address(base: &TargetUrl, reference: &str) -> Option<TargetUrl> {
    let joined = Url::parse(base.as_str()).ok()?.join(reference).ok()?;
    normal_address(joined.as_str())
}

/// The scheme, the host and the port of an address.
pub fn origin_of(url: &TargetUrl) -> String {
    let path = path_and_query(url);
    let text = url.as_str();
    let text = text.split_once('#').map_or(text, |(text, _)| text);
    text.strip_suffix(path).unwrap_or(text).to_owned()
}

/// The path and the query of an address.
pub(super) fn path_and_query(url: &TargetUrl) -> &str {
    let text = url.as_str();
    let after_scheme = text.split_once("://").map_or(text, |(_, rest)| rest);
    let path = after_scheme.find(['/', '?', '#']).map_or("/", |at| &after_scheme[at..]);
    path.split_once('#').map_or(path, |(path, _)| path)
}

/// The addresses of a site: those of the same registrable domain. A host without one, such as an IP address, is a site of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    host: TargetHost,
    domain: Option<String>,
}

impl Scope {
    /// The site of an address.
    pub fn of(url: &TargetUrl) -> Self {
        let host = url.host();
        let domain = registrable(&host);
        Self { host, domain }
    }

    /// Whether an address is of the site.
    pub fn contains(&self, url: &TargetUrl) -> bool {
        let host = url.host();
        if host == self.host {
            return true;
        }
        self.domain.is_some() && registrable(&host) == self.domain
    }
}

/// The registrable domain of a host.
fn registrable(host: &TargetHost) -> Option<String> {
    match host {
        TargetHost::Name(name) => psl::domain_str(name).map(str::to_owned),
        TargetHost::Address(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_same_page_have_one_form() {
        for (text, expected) in [
            ("https://Example.com", Some("https://example.com/")),
            ("https://example.com:443/a#b", Some("https://example.com/a")),
            ("http://example.com:80/?a=1&b=2", Some("http://example.com/?a=1&b=2")),
            ("https://example.com./a", Some("https://example.com/a")),
            (" https://example.com/a/../b ", Some("https://example.com/b")),
            ("https://example.com/\u{fc}", Some("https://example.com/%C3%BC")),
            ("https://example.com:8443/", Some("https://example.com:8443/")),
            ("https://user@example.com/", None),
            ("mailto:a@example.com", None),
            ("ftp://example.com/", None),
            ("/a", None),
            ("https://example.com:22/", None),
        ] {
            let found = normal_address(text);
            assert_eq!(found.as_ref().map(TargetUrl::as_str), expected, "{text}");
        }
        let long = |bytes: usize| format!("https://example.com/{}", "a".repeat(bytes - "https://example.com/".len()));
        assert!(normal_address(&long(ADDRESS_BYTES)).is_some() && normal_address(&long(ADDRESS_BYTES + 1)).is_none());
    }

    #[test]
    fn site_is_the_registrable_domain() {
        for (start, other, expected) in [
            ("https://example.com/", "http://example.com:8080/a", true),
            ("https://example.com/", "https://www.example.com/", true),
            ("https://shop.example.co.uk/", "https://example.co.uk/", true),
            ("https://example.co.uk/", "https://other.co.uk/", false),
            ("https://example.com/", "https://notexample.com/", false),
            ("https://a.github.io/", "https://b.github.io/", false),
            ("http://192.0.2.1/", "http://192.0.2.1:8080/", true),
            ("http://192.0.2.1/", "http://192.0.2.2/", false),
            ("http://a.localhost/", "http://b.a.localhost/", true),
            ("http://a.localhost/", "http://b.localhost/", false),
        ] {
            let (start, other) = (normal_address(start).unwrap(), normal_address(other).unwrap());
            assert_eq!(Scope::of(&start).contains(&other), expected, "{start} {other}");
        }
    }

    #[test]
    fn redirects_and_origins_are_those_of_the_address() {
        let base = normal_address("https://example.com:8443/a/b?c#d").unwrap();
        assert_eq!(origin_of(&base), "https://example.com:8443");
        for (reference, expected) in [
            ("/x", Some("https://example.com:8443/x")),
            ("x?y#z", Some("https://example.com:8443/a/x?y")),
            ("//example.org", Some("https://example.org/")),
            ("http://example.org/", Some("http://example.org/")),
            ("javascript:alert(1)", None),
            ("https://a:b@example.com/", None),
        ] {
            let joined = joined_address(&base, reference);
            assert_eq!(joined.as_ref().map(TargetUrl::as_str), expected, "{reference}");
        }
    }

    #[test]
    fn path_has_the_query() {
        for (url, expected) in [
            ("https://example.com", "/"),
            ("https://example.com/a/b?c=/d", "/a/b?c=/d"),
            ("https://example.com:8443/?a=https://b", "/?a=https://b"),
        ] {
            assert_eq!(path_and_query(&normal_address(url).unwrap()), expected, "{url}");
        }
    }
}
