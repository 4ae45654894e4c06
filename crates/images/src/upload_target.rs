//! Where a renderer, which has no credentials, may upload one image: a signed URL of its object.

use std::fmt;
use std::time::Duration;

/// One object that may be written for a time. The URL is secret.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadTarget {
    /// The signed URL.
    pub url: String,
    /// The headers that are signed with it, as names and values.
    pub headers: Vec<(String, String)>,
    /// How long the URL is valid, in whole seconds.
    pub valid: Duration,
}

/// Without the URL.
impl fmt::Debug for UploadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url: _, headers, valid } = self;
        f.debug_struct("UploadTarget").field("headers", headers).field("valid", valid).finish_non_exhaustive()
    }
}

/// What the object store does with uploads to signed URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedUploads {
    /// It accepts them, and refuses a second one for the same object.
    Once,
    /// It accepts them, and ignores `If-None-Match`, so that a second one replaces the object.
    Repeatable,
    /// It accepts them only without `If-None-Match`.
    Unconditional,
    /// It accepts none.
    Refused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_of_a_target_does_not_contain_its_url() {
        let headers = vec![("content-type".to_owned(), "image/png".to_owned())];
        let url = "https://s3.example.com/bucket/key?X-Amz-Signature=secret".to_owned();
        let shown = format!("{:?}", UploadTarget { url, headers, valid: Duration::from_secs(9) });
        assert!(shown.contains("image/png") && !shown.contains("key") && !shown.contains("secret"), "{shown}");
    }
}
