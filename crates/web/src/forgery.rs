//! Whether a form was sent by a page of ours, which the person was looking at.
//!
//! Browsers say where a request comes from, but not all, and not always. So every form also carries a token that other
//! sites cannot know: of the session for those who are signed in, of a visit for those who are not yet.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use grabd_engine::chance;
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::cookies::{Cookie, Cookies};
use crate::form::Form;
use crate::problem::Problem;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The field of a form that holds its token.
pub(crate) const FIELD: &str = "form_token";

/// Somebody who looks at a form without being signed in.
pub(crate) struct Visit {
    secret: String,
}

impl Visit {
    /// The visit that the request is part of, or a new one.
    pub(crate) fn of(cookies: &Cookies, headers: &HeaderMap) -> Self {
        let secret = cookies.get(Cookie::Visit, headers).filter(|secret| is_secret(secret));
        Self { secret: secret.map_or_else(|| BASE64.encode(chance::secret()), str::to_owned) }
    }

    /// What its forms carry. It does not tell the cookie.
    pub(crate) fn form_token(&self) -> String {
        BASE64.encode(Sha256::digest(format!("a form of the visit {}", self.secret)))
    }

    /// The header that keeps it.
    pub(crate) fn cookie(&self, cookies: &Cookies) -> HeaderValue {
        cookies.set(Cookie::Visit, &self.secret)
    }
}

fn is_secret(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Lets a form pass that came from here with this token.
///
/// # Errors
/// When it did not.
pub(crate) fn check(headers: &HeaderMap, form: &Form, form_token: &str) -> Result<(), Problem> {
    let is_ours = comes_from_here(headers) && form.one(FIELD).as_bytes().ct_eq(form_token.as_bytes()).into();
    if is_ours { Ok(()) } else { Err(Problem::forged()) }
}

/// The same for the form of somebody who is not signed in.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_visit(cookies: &Cookies, headers: &HeaderMap, form: &Form) -> Result<(), Problem> {
    // A new visit has a token that nobody can have sent.
    check(headers, form, &Visit::of(cookies, headers).form_token())
}

/// Does the browser say that the request comes from elsewhere? Our own pages have no referrer, and therefore the origin
/// `null`, so without `Sec-Fetch-Site` that one says nothing.
fn comes_from_here(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        return site == "same-origin" || site == "none";
    }
    let Some(origin) = headers.get(ORIGIN).filter(|origin| *origin != "null") else { return true };
    let (Some(origin), Some(host)) = (origin.to_str().ok(), headers.get(HOST).and_then(|host| host.to_str().ok()))
    else {
        return false;
    };
    origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_sites_are_told_apart() {
        let own = |headers: &[(HeaderName, &'static str)]| {
            let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            comes_from_here(&headers.collect())
        };
        for (headers, expected) in [
            (&[][..], true),
            (&[(SEC_FETCH_SITE, "same-origin"), (ORIGIN, "null")], true),
            (&[(SEC_FETCH_SITE, "none")], true),
            (&[(SEC_FETCH_SITE, "same-site")], false),
            (&[(SEC_FETCH_SITE, "cross-site")], false),
            (&[(SEC_FETCH_SITE, "cross-site"), (ORIGIN, "https://grabd.example"), (HOST, "grabd.example")], false),
            (&[(ORIGIN, "null"), (HOST, "grabd.example")], true),
            (&[(ORIGIN, "https://grabd.example"), (HOST, "grabd.example")], true),
            (&[(ORIGIN, "http://127.0.0.1:8080"), (HOST, "127.0.0.1:8080")], true),
            (&[(ORIGIN, "https://evil.example"), (HOST, "grabd.example")], false),
            (&[(ORIGIN, "https://grabd.example:444"), (HOST, "grabd.example")], false),
            (&[(ORIGIN, "https://grabd.example.evil.example"), (HOST, "grabd.example")], false),
            (&[(ORIGIN, "https://grabd.example")], false),
        ] {
            assert_eq!(own(headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn the_token_of_a_visit_is_known_to_its_own_forms_alone() {
        let cookies = Cookies::of("https://grabd.example");
        let (visit, other) = (Visit::of(&cookies, &HeaderMap::new()), Visit::of(&cookies, &HeaderMap::new()));
        let line = visit.cookie(&cookies).to_str().unwrap().to_owned();
        let pair = HeaderValue::from_str(line.split(';').next().unwrap()).unwrap();
        let headers = HeaderMap::from_iter([(http::header::COOKIE, pair)]);
        let sent = |token: &str| Form::parse(format!("{FIELD}={token}").as_bytes());
        assert!(!line.contains(&visit.form_token()));
        assert!(check_visit(&cookies, &headers, &sent(&visit.form_token())).is_ok());
        assert!(check_visit(&cookies, &headers, &sent(&other.form_token())).is_err());
        assert!(check_visit(&cookies, &headers, &sent("")).is_err());
        assert!(check_visit(&cookies, &HeaderMap::new(), &sent(&visit.form_token())).is_err());
        let twice = Form::parse(format!("{FIELD}={0}&{FIELD}={0}", visit.form_token()).as_bytes());
        assert!(check_visit(&cookies, &headers, &twice).is_err());
    }
}
