//! How a call was made over HTTP: what a customer recognises it by. Interfaces send it to the core with the call.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Metadata key of the method and path of an HTTP request, or of the called tool of MCP.
const CALLED_AS: HeaderName = HeaderName::from_static("grabd-called-as");
/// Metadata key of the message of an error that the interface returns after the call.
const REFUSED_WITH: HeaderName = HeaderName::from_static("grabd-refused-with");

/// Methods of HTTP, and what stands for one.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PATCH", "DELETE", "MCP"];
/// Longest path and message, in characters.
const MAX_CHARS: usize = 500;

/// How a call was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalledAs {
    /// The method of HTTP, or `MCP`.
    pub method: &'static str,
    /// The path without the query, or the name of the tool.
    pub path: String,
}

impl CalledAs {
    /// The metadata of a call; `None` if there is none.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let (method, path) = headers.get(CALLED_AS)?.to_str().ok()?.split_once(' ')?;
        let method = METHODS.into_iter().find(|known| *known == method)?;
        // Everybody can send metadata. A query may have secrets.
        let path = path.split(['?', '#']).next().unwrap_or_default();
        Some(Self { method, path: path.chars().take(MAX_CHARS).collect() })
    }
}

/// Names the method and path of an HTTP request, or what was called, to the core.
pub fn set(headers: &mut HeaderMap, method: &str, path: &str) {
    set_text(headers, CALLED_AS, &format!("{method} {path}"));
}

/// Tells the core the message of the error that the interface returns after the call.
pub fn set_refusal(headers: &mut HeaderMap, message: &str) {
    set_text(headers, REFUSED_WITH, message);
}

/// The message of the error that the interface returns after the call.
pub fn refusal(headers: &HeaderMap) -> Option<String> {
    headers.get(REFUSED_WITH)?.to_str().ok().map(str::to_owned)
}

/// Removes what the caller of an interface has sent itself.
pub fn remove(headers: &mut HeaderMap) {
    headers.remove(CALLED_AS);
    headers.remove(REFUSED_WITH);
}

/// Copies what the interface has set.
pub fn copy(from: &HeaderMap, to: &mut HeaderMap) {
    for name in [CALLED_AS, REFUSED_WITH] {
        if let Some(value) = from.get(&name) {
            to.insert(name, value.clone());
        }
    }
}

/// Metadata consists of visible ASCII characters and spaces.
fn set_text(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    let visible = |character: char| if matches!(character, ' '..='~') { character } else { '?' };
    let text: String = text.chars().take(MAX_CHARS).map(visible).collect();
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_and_path_survive_without_the_query() {
        for (method, path, expected) in [
            ("POST", "/v1/grabs", Some(("POST", "/v1/grabs"))),
            ("GET", "/v1/link?key=a&sig=b", Some(("GET", "/v1/link"))),
            ("MCP", "create_grab", Some(("MCP", "create_grab"))),
            ("GET", "/v1/grabs/é\n", Some(("GET", "/v1/grabs/"))),
            ("BREW", "/pot", None),
        ] {
            let mut headers = HeaderMap::new();
            set(&mut headers, method, path);
            let called = CalledAs::of(&headers);
            let seen = called.as_ref().map(|called| (called.method, called.path.as_str()));
            assert_eq!(seen, expected, "{method} {path}");
        }
        assert_eq!(CalledAs::of(&HeaderMap::new()), None);
    }

    #[test]
    fn metadata_of_callers_is_removed_and_that_of_interfaces_is_copied() {
        let (mut received, mut sent) = (HeaderMap::new(), HeaderMap::new());
        set(&mut received, "POST", "/forged");
        set_refusal(&mut received, "forged");
        remove(&mut received);
        assert!(received.is_empty());
        set(&mut received, "MCP", "create_grab");
        set_refusal(&mut received, &"`url` must be “a string”".repeat(100));
        copy(&received, &mut sent);
        assert_eq!(CalledAs::of(&sent).map(|called| called.method), Some("MCP"));
        let refusal = refusal(&sent).unwrap();
        assert!(refusal.starts_with("`url` must be ?a string?") && refusal.len() == MAX_CHARS, "{refusal}");
    }
}
