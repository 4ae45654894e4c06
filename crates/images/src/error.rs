//! Errors of the image storage.

use std::io::{self, ErrorKind};

/// Error of the image storage.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk is full.
    #[error("the images' disk is full")]
    Full(#[source] io::Error),
    /// Any other I/O error.
    #[error("the images' directory cannot be accessed")]
    Disk(#[source] io::Error),
    /// The object store refuses the credentials, or does not permit the request.
    #[error("the object store denies the request ({0}); check the credentials and the permissions of the bucket")]
    Denied(String),
    /// The bucket does not exist.
    #[error("the object store has no such bucket ({0})")]
    NoBucket(String),
    /// The object does not exist.
    #[error("the object store has no such object")]
    NotFound,
    /// The object store did not respond in time.
    #[error("the object store did not respond within the time limit")]
    TooSlow,
    /// A copy has another size than the original.
    #[error("a copy of an image has another size than the original")]
    Incomplete,
    /// The object has another size than the renderer reported.
    #[error("the object has {found} bytes, although its renderer reported {reported}")]
    OtherSize {
        /// The size of the object in bytes.
        found: u64,
        /// What the renderer reported.
        reported: u64,
    },
    /// Any other failure of the object store, after retries.
    #[error("the object store failed: {0}")]
    ObjectStore(String),
    /// The options of the object store cannot be used.
    #[error("the object store cannot be set up: {0}")]
    Options(String),
}

pub(super) type Result<T> = std::result::Result<T, Error>;

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            true => Self::Full(error),
            false => Self::Disk(error),
        }
    }
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        let summary = summary(&error);
        #[expect(clippy::wildcard_enum_match_arm, reason = "all others are failures of the store")]
        match error {
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                Self::Denied(summary)
            }
            object_store::Error::NotFound { .. } if !summary.contains("NoSuchBucket") => Self::NotFound,
            _ if summary.contains("NoSuchBucket") => Self::NoBucket(summary),
            _ => Self::ObjectStore(summary),
        }
    }
}

/// What is known about an error without the URL and the body of the response, which contain the secret key of an image.
fn summary(error: &object_store::Error) -> String {
    let text = error.to_string();
    let code = code(&text);
    let status: Option<String> = text
        .split_once("status code: ")
        .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect())
        .filter(|status: &String| !status.is_empty());
    match (status, code) {
        (Some(status), Some(code)) => format!("{status} {code}"),
        (Some(status), None) => format!("status {status}"),
        (None, Some(code)) => code,
        (None, None) => deepest(error),
    }
}

/// The error code in a response of an object store.
pub(super) fn code(response: &str) -> Option<String> {
    let (code, _) = response.split_once("<Code>")?.1.split_once("</Code>")?;
    let is_code = (1..=64).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_code.then(|| code.to_owned())
}

/// The innermost error, which is that of the operating system if no connection could be made. Without URLs.
pub(super) fn deepest(error: &dyn std::error::Error) -> String {
    let mut deepest = error.source();
    while let Some(next) = deepest.and_then(std::error::Error::source) {
        deepest = Some(next);
    }
    let text = deepest.map_or_else(|| "no further details".to_owned(), ToString::to_string);
    // The texts of other errors may contain a URL.
    if text.contains("://") || text.contains("/i/") { "the request failed".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn errors_do_not_contain_the_url_of_the_object() {
        let key = "1A2b3C4d5E6f7G8h9I0j1K";
        let url = format!("http://store/bucket/i/1A/2b/{key}.png");
        for (text, expected) in [
            (format!("PUT {url}: status code: 503 Service Unavailable: <Resource>{url}</Resource>"), "status 503"),
            (format!("PUT {url}: status code: 400: <Code>EntityTooLarge</Code><Key>{key}</Key>"), "400 EntityTooLarge"),
            (format!("error sending request for url ({url})"), "the request failed"),
            ("Connection refused (os error 111)".to_owned(), "Connection refused (os error 111)"),
        ] {
            let error = Error::from(generic(&text)).to_string();
            assert!(error.ends_with(expected) && !error.contains(key), "{error}");
        }
    }

    #[test]
    fn denied_requests_and_missing_buckets_are_told_apart() {
        let source = || "status code: 403: <Code>SignatureDoesNotMatch</Code>".into();
        let denied = object_store::Error::PermissionDenied { path: String::new(), source: source() };
        assert!(matches!(Error::from(denied), Error::Denied(text) if text == "403 SignatureDoesNotMatch"));
        let missing = generic("status code: 404 Not Found: <Code>NoSuchBucket</Code>");
        assert!(matches!(Error::from(missing), Error::NoBucket(text) if text == "404 NoSuchBucket"));
    }
}
