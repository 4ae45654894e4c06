//! CSRF protection of forms.
//!
//! Not all browsers send the origin of every request, so each form also has a token that other sites cannot know. The
//! token belongs to the session of a signed-in user, or otherwise to the visit cookie.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use grabd_engine::random;
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::cookies::{Cookie, Cookies};
use crate::form::Form;
use crate::problem::Problem;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The form field with the token.
const FIELD: &str = "form_token";

/// A visitor who is not signed in.
pub(crate) struct Visit {
    secret: String,
}

impl Visit {
    /// The visit of the request's cookie, or a new one.
    pub(crate) fn of(cookies: &Cookies, headers: &HeaderMap) -> Self {
        let secret = cookies.get(Cookie::Visit, headers).filter(|secret| is_secret(secret));
        Self { secret: secret.map_or_else(|| BASE64.encode(random::secret()), str::to_owned) }
    }

    /// The token for forms. The cookie cannot be derived from it.
    pub(crate) fn form_token(&self) -> String {
        BASE64.encode(Sha256::digest(format!("a form of the visit {}", self.secret)))
    }

    /// The `Set-Cookie` header of the visit.
    pub(crate) fn cookie(&self, cookies: &Cookies) -> HeaderValue {
        cookies.set(Cookie::Visit, &self.secret)
    }
}

fn is_secret(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Checks the origin and the token of a form. The extractors of forms call it, so that handlers cannot forget it.
///
/// # Errors
/// When either is wrong.
pub(super) fn check(headers: &HeaderMap, form: &Form, form_token: &str) -> Result<(), Problem> {
    let is_valid = is_same_origin(headers) && form.get(FIELD).as_bytes().ct_eq(form_token.as_bytes()).into();
    if is_valid { Ok(()) } else { Err(Problem::csrf_failed()) }
}

/// Checks the form of a visitor who is not signed in.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_visit(cookies: &Cookies, headers: &HeaderMap, form: &Form) -> Result<(), Problem> {
    // Without the cookie this creates a new visit, whose token no form can contain.
    check(headers, form, &Visit::of(cookies, headers).form_token())
}

/// Whether the request may come from our own pages. Their referrer policy makes their origin `null`, so without
/// `Sec-Fetch-Site` that origin is accepted.
fn is_same_origin(headers: &HeaderMap) -> bool {
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
    fn requests_from_other_origins_are_rejected() {
        let check = |headers: &[(HeaderName, &'static str)]| {
            let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            is_same_origin(&headers.collect())
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
            assert_eq!(check(headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn visit_token_is_valid_only_with_its_own_cookie() {
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
