//! Keeps secrets out of files about requests: what the caller sends to the target or has typed there secretly, and credentials
//! and cookies of anybody.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use grabd_domain::capture::{BasicAuth, Secrets};
use serde::Serialize;
use url::{Url, form_urlencoded};

/// Headers with credentials, cookies and signatures of the service, which are valid for a minute. In lower case.
const SECRET_HEADERS: [&str; 7] =
    ["authorization", "proxy-authorization", "cookie", "cookie2", "set-cookie", "set-cookie2", "signature"];

/// The fewest characters of a secret that is looked for in texts. Shorter ones are in many texts by chance.
const LEAST_CHARS: usize = 4;

/// The fewest bytes of a text that may have been cut when it was recorded, and so may end within a secret: titles have the lowest
/// limit.
const LEAST_CUT_BYTES: usize = 300;

/// How `encodeURIComponent` writes what forms write differently.
const AS_COMPONENT: [(&str, &str); 6] =
    [("+", "%20"), ("%21", "!"), ("%27", "'"), ("%28", "("), ("%29", ")"), ("%7E", "~")];

/// What replaces a secret.
const REMOVED: &str = "removed";

/// A header, or a parameter of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) value: String,
}

/// The secrets of one grab.
pub(in crate::page) struct SecretFilter {
    /// Names of the caller's headers, in lower case.
    names: Vec<String>,
    /// Values of the caller, also as they are written in URLs. Longer ones come first, since they may contain others.
    values: Vec<String>,
}

impl SecretFilter {
    pub(in crate::page) fn of(secrets: &Secrets) -> Self {
        let Secrets { headers, cookies, basic_auth, .. } = secrets;
        let mut plain: Vec<String> = headers.iter().map(|(_, value)| value.clone()).collect();
        // Pages write a token without its scheme.
        let credentials = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        plain.extend(credentials.filter_map(|(_, value)| Some(value.split_once(' ')?.1.trim().to_owned())));
        plain.extend(cookies.iter().map(|cookie| cookie.value.clone()));
        if let Some(BasicAuth { username, password }) = basic_auth {
            plain.push(password.clone());
            plain.push(STANDARD.encode(format!("{username}:{password}")));
        }
        // Forms put what was typed into URLs.
        plain.extend(secrets.hidden_texts().into_iter().map(str::to_owned));
        plain.retain(|value| value.chars().count() >= LEAST_CHARS);
        let encoded = |value: &String| form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>();
        let mut values: Vec<String> = plain.iter().map(encoded).collect();
        let component =
            |value: &String| AS_COMPONENT.iter().fold(value.clone(), |text, (from, to)| text.replace(from, to));
        let components: Vec<String> = values.iter().map(component).collect();
        values.extend(components);
        values.extend(plain);
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { names: headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect(), values }
    }

    /// Headers without those that have a secret.
    pub(super) fn headers(&self, headers: &[(String, String)]) -> Vec<Header> {
        let kept = headers.iter().filter(|(name, value)| !self.is_secret(name, value));
        kept.map(|(name, value)| Header { name: name.clone(), value: without_user(value) }).collect()
    }

    /// A URL without user name, password and values of the caller.
    pub(in crate::page) fn url(&self, url: &str) -> String {
        self.text(&without_user(url))
    }

    /// A text without values of the caller.
    pub(super) fn text(&self, text: &str) -> String {
        // It may be shorter without the values in it.
        let may_be_cut = text.len() >= LEAST_CUT_BYTES;
        let mut text = text.to_owned();
        for value in &self.values {
            if text.contains(value) {
                text = text.replace(value, REMOVED);
            }
        }
        if may_be_cut && let Some(start) = self.incomplete_secret(&text) {
            text.truncate(start);
            text.push_str(REMOVED);
        }
        text
    }

    /// Where a secret begins that a text ends with, and that is not complete.
    fn incomplete_secret(&self, text: &str) -> Option<usize> {
        let latest = text.len().checked_sub(LEAST_CHARS)?;
        let begins = |secret: &String| {
            let earliest = text.len().saturating_sub(secret.len());
            let mut starts = text.char_indices().map(|(at, _)| at).filter(|at| (earliest..=latest).contains(at));
            starts.find(|at| secret.starts_with(&text[*at..]))
        };
        self.values.iter().filter_map(begins).min()
    }

    fn is_secret(&self, name: &str, value: &str) -> bool {
        let name = name.to_ascii_lowercase();
        SECRET_HEADERS.contains(&name.as_str())
            || self.names.contains(&name)
            || self.values.iter().any(|secret| value.contains(secret))
            || (value.len() >= LEAST_CUT_BYTES && self.incomplete_secret(value).is_some())
    }
}

/// The text, without user name and password if it is a URL.
fn without_user(text: &str) -> String {
    // Most texts are no URLs with a user name, and must stay as they are.
    if !text.contains('@') {
        return text.to_owned();
    }
    let Ok(mut url) = Url::parse(text) else { return text.to_owned() };
    if url.username().is_empty() && url.password().is_none() {
        return text.to_owned();
    }
    match (url.set_username(""), url.set_password(None)) {
        (Ok(()), Ok(())) => url.into(),
        (_, _) => REMOVED.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};

    use super::*;

    fn filter(options: &[(&str, &str)]) -> SecretFilter {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        for (name, json) in options {
            assert!(request.set(name, serde_json::from_str(json).unwrap()), "{name}");
        }
        SecretFilter::of(&CaptureSpec::parse(&request).unwrap().secrets)
    }

    #[test]
    fn headers_with_secrets_are_left_out() {
        let filter = filter(&[
            ("headers", r#"{"X-Token": "token-value", "X-Short": "a"}"#),
            ("cookies", r#"[{"name": "sid", "value": "cookie-value"}]"#),
            ("basic_auth", r#"{"username": "me", "password": "pass-value"}"#),
        ]);
        let kept = |name: &str, value: &str| filter.headers(&[(name.to_owned(), value.to_owned())]);
        for (name, value) in [
            ("Authorization", "Basic abc"),
            ("Proxy-Authorization", "x"),
            ("COOKIE", "a=b"),
            ("Set-Cookie", "a=b"),
            ("Signature", "sig1=:YQ==:"),
            ("x-token", "another"),
            ("x-short", "a"),
            ("x-echo", "got token-value"),
            ("x-echo", "sid=cookie-value"),
            ("x-echo", "pass-value"),
            ("x-echo", "Basic bWU6cGFzcy12YWx1ZQ=="),
        ] {
            assert_eq!(kept(name, value), [], "{name}: {value}");
        }
        assert_eq!(kept("Accept", "a@b")[0].value, "a@b");
        assert_eq!(kept("Location", "https://u:p@example.com/a")[0].value, "https://example.com/a");
    }

    #[test]
    fn urls_have_neither_users_nor_values_of_the_caller() {
        let filter = filter(&[("cookies", r#"[{"name": "sid", "value": "a b/cd"}, {"name": "b", "value": "x"}]"#)]);
        assert_eq!(filter.url("https://u:p@example.com/x?sid=a+b%2Fcd"), "https://example.com/x?sid=removed");
        assert_eq!(filter.url("https://example.com/x@y"), "https://example.com/x@y");
        assert_eq!(filter.url("https://example.com/x?sid=a%20b%2Fcd"), "https://example.com/x?sid=removed");
        assert_eq!(filter.text("a b/cd x"), "removed x");
    }

    #[test]
    fn token_is_found_without_its_scheme_and_as_scripts_write_it() {
        let filter = filter(&[("headers", r#"{"Authorization": "Bearer to~ken/1"}"#)]);
        assert_eq!(filter.url("https://example.com/?t=to~ken%2F1"), "https://example.com/?t=removed");
        assert_eq!(filter.text("sent Bearer to~ken/1 and to~ken/1"), "sent removed and removed");
    }

    #[test]
    fn texts_that_steps_type_secretly_are_removed() {
        let typed = |text: &str, is_secret: bool| {
            format!(r##"{{"type": {{"into": "#a", "text": "{text}", "secret": {is_secret}}}}}"##)
        };
        let steps = format!("[{}, {}]", typed("pass word", true), typed("open text", false));
        let filter = filter(&[("steps", &steps)]);
        assert_eq!(
            filter.url("https://example.com/?p=pass+word&q=open+text"),
            "https://example.com/?p=removed&q=open+text"
        );
        assert_eq!(filter.text("pass word, open text"), "removed, open text");
    }

    #[test]
    fn secret_that_was_cut_with_its_text_is_found() {
        let filter = filter(&[("headers", &format!(r#"{{"x-token": "{}"}}"#, "0123456789".repeat(300)))]);
        let text = format!("{}{}", "a".repeat(1000), &"0123456789".repeat(300)[..1048]);
        assert_eq!(filter.text(&text), format!("{}removed", "a".repeat(1000)));
        assert_eq!(filter.headers(&[("x-echo".to_owned(), text)]), []);
        let line = format!("{}{}", "a".repeat(490), "0123456789");
        assert_eq!(filter.text(&line), format!("{}removed", "a".repeat(490)));
        let twice = format!("{}{}", "0123456789".repeat(300), &"0123456789".repeat(300)[..1048]);
        assert_eq!(filter.text(&twice), "removedremoved", "the text is short without the first one");
        let long = "a".repeat(3000);
        assert_eq!(filter.text(&long), long);
        assert_eq!(filter.text("in 0123456789"), "in 0123456789", "no short text is cut");
    }
}
