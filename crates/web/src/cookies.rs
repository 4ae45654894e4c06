//! The four cookies: the session of a signed-in user, the visit, which protects forms before sign-in, the pending sign-in,
//! which lacks the code of the second factor, and the device, which exempts a browser that was signed in before from the
//! limit of wrong passwords of others.

use grabd_domain::accounts::{DEVICE_LIFE, SESSION_LIFE, SIGN_IN_LIFE};
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// Lifetime of the visit cookie in seconds, which limits how long a form before sign-in stays valid.
const VISIT_S: u64 = 24 * 60 * 60;

/// Names and attributes of cookies on this deployment.
pub(crate) struct Cookies {
    is_secure: bool,
}

/// The cookies.
#[derive(Clone, Copy)]
pub(crate) enum Cookie {
    Session,
    Visit,
    PendingSignIn,
    Device,
}

impl Cookies {
    /// Cookies for pages under `url`. `Secure` is left out without TLS, because browsers would reject such cookies.
    pub(crate) fn of(url: &str) -> Self {
        Self { is_secure: url.starts_with("https://") }
    }

    /// The value of a cookie. `None` if the request has it twice, because another host may have injected one.
    pub(crate) fn get<'a>(&self, cookie: Cookie, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.name(cookie);
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs.filter(|(named, _)| *named == name).map(|(_, value)| value);
        values.next().filter(|_| values.next().is_none())
    }

    /// The `Set-Cookie` header that sets it. `value` is base64url with an optional prefix.
    pub(crate) fn set(&self, cookie: Cookie, value: &str) -> HeaderValue {
        self.line(cookie, value, cookie.max_age_s())
    }

    /// The `Set-Cookie` header that removes it.
    pub(crate) fn remove(&self, cookie: Cookie) -> HeaderValue {
        self.line(cookie, "", 0)
    }

    fn line(&self, cookie: Cookie, value: &str, max_age_s: u64) -> HeaderValue {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let name = self.name(cookie);
        let line = format!("{name}={value}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::try_from(line).expect("names and tokens are visible ASCII")
    }

    /// The `__Host-` prefix prevents other hosts of the domain from setting the cookie.
    fn name(&self, cookie: Cookie) -> &'static str {
        match (cookie, self.is_secure) {
            (Cookie::Session, true) => "__Host-grabd_session",
            (Cookie::Session, false) => "grabd_session",
            (Cookie::Visit, true) => "__Host-grabd_visit",
            (Cookie::Visit, false) => "grabd_visit",
            (Cookie::PendingSignIn, true) => "__Host-grabd_sign_in",
            (Cookie::PendingSignIn, false) => "grabd_sign_in",
            (Cookie::Device, true) => "__Host-grabd_device",
            (Cookie::Device, false) => "grabd_device",
        }
    }
}

impl Cookie {
    const fn max_age_s(self) -> u64 {
        match self {
            // The session may end sooner on the server.
            Self::Session => SESSION_LIFE.as_secs(),
            Self::Visit => VISIT_S,
            Self::PendingSignIn => SIGN_IN_LIFE.as_secs(),
            Self::Device => DEVICE_LIFE.as_secs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_host_only_and_hidden_from_scripts() {
        let cookies = Cookies::of("https://grabd.example");
        assert_eq!(
            cookies.set(Cookie::Session, "gss_x"),
            "__Host-grabd_session=gss_x; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax; Secure"
        );
        let ended = "__Host-grabd_visit=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(cookies.remove(Cookie::Visit), ended);
        assert_eq!(
            cookies.set(Cookie::Device, "gdv_x"),
            "__Host-grabd_device=gdv_x; Path=/; Max-Age=15552000; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(
            cookies.set(Cookie::PendingSignIn, "x"),
            "__Host-grabd_sign_in=x; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"
        );
        let plain = Cookies::of("http://127.0.0.1:8080");
        assert_eq!(plain.set(Cookie::Visit, "x"), "grabd_visit=x; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax");
    }

    #[test]
    fn cookie_is_matched_by_full_name_and_ignored_when_repeated() {
        let cookies = Cookies::of("https://grabd.example");
        for (lines, expected) in [
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
            assert_eq!(cookies.get(Cookie::Session, &headers), expected, "{lines:?}");
        }
    }
}
