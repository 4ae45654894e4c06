//! The two cookies: the session of who is signed in, and the visit of who is not yet.

use grabd_domain::accounts::SESSION_LIFE;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// How long a form may stand open before somebody signs in with it, in seconds.
const VISIT_S: u64 = 24 * 60 * 60;

/// How cookies are named and kept on this deployment.
pub(crate) struct Cookies {
    is_secure: bool,
}

/// Which cookie.
#[derive(Clone, Copy)]
pub(crate) enum Cookie {
    Session,
    Visit,
}

impl Cookies {
    /// For pages under `url`. Without TLS, as in development on loopback, browsers would drop what asks for it.
    pub(crate) fn of(url: &str) -> Self {
        Self { is_secure: url.starts_with("https://") }
    }

    /// The cookie's value as the request has it. One that comes twice was planted by somebody, and counts as none.
    pub(crate) fn get<'a>(&self, cookie: Cookie, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.name(cookie);
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs.filter(|(named, _)| *named == name).map(|(_, value)| value);
        values.next().filter(|_| values.next().is_none())
    }

    /// The header that sets it. `value` is base64url with a prefix at most.
    pub(crate) fn set(&self, cookie: Cookie, value: &str) -> HeaderValue {
        self.line(cookie, value, cookie.max_age_s())
    }

    /// The header that ends it.
    pub(crate) fn end(&self, cookie: Cookie) -> HeaderValue {
        self.line(cookie, "", 0)
    }

    fn line(&self, cookie: Cookie, value: &str, max_age_s: u64) -> HeaderValue {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let name = self.name(cookie);
        let line = format!("{name}={value}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::try_from(line).expect("names and tokens are visible ASCII")
    }

    /// The prefix keeps other hosts of the domain from setting it.
    fn name(&self, cookie: Cookie) -> &'static str {
        match (cookie, self.is_secure) {
            (Cookie::Session, true) => "__Host-grabd_session",
            (Cookie::Session, false) => "grabd_session",
            (Cookie::Visit, true) => "__Host-grabd_visit",
            (Cookie::Visit, false) => "grabd_visit",
        }
    }
}

impl Cookie {
    const fn max_age_s(self) -> u64 {
        match self {
            // The session itself may end sooner.
            Self::Session => SESSION_LIFE.as_secs(),
            Self::Visit => VISIT_S,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_belong_to_one_host_and_to_no_script() {
        let cookies = Cookies::of("https://grabd.example");
        assert_eq!(
            cookies.set(Cookie::Session, "gss_x"),
            "__Host-grabd_session=gss_x; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax; Secure"
        );
        let ended = "__Host-grabd_visit=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(cookies.end(Cookie::Visit), ended);
        let plain = Cookies::of("http://127.0.0.1:8080");
        assert_eq!(plain.set(Cookie::Visit, "x"), "grabd_visit=x; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax");
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name_and_only_once() {
        let cookies = Cookies::of("https://grabd.example");
        for (lines, found) in [
            (&["__Host-grabd_session=a"][..], Some("a")),
            (&["x=y; __Host-grabd_session=a; z"], Some("a")),
            (&["x=y", "__Host-grabd_session=a"], Some("a")),
            (&["grabd_session=a"], None),
            (&["x__Host-grabd_session=a"], None),
            (&["__Host-grabd_session=a; __Host-grabd_session=b"], None),
            (&["__Host-grabd_session=a", "__Host-grabd_session=a"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(COOKIE, HeaderValue::from_static(line));
            }
            assert_eq!(cookies.get(Cookie::Session, &headers), found, "{lines:?}");
        }
    }
}
