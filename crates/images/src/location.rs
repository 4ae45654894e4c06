//! Where images are stored, as a URL.

use std::fmt;
use std::path::PathBuf;

/// A place for images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// `file:///path`: a directory on this machine.
    Directory(PathBuf),
    /// `s3://bucket/prefix`: the objects of a bucket whose names begin with `prefix/`. The prefix may be empty.
    Bucket {
        /// The name of the bucket.
        bucket: String,
        /// What all names begin with, without slashes at its ends.
        prefix: String,
    },
}

/// The longest prefix. S3 allows names of 1024 bytes.
const MAX_PREFIX: usize = 200;

impl Location {
    /// What [`Location::parse`] allows, for messages.
    pub const ALLOWED: &str = "file:///absolute/path, or s3://bucket/prefix with a bucket name of 3 to 63 lower-case \
                               letters, digits, dots and hyphens and a prefix of letters, digits, dots, hyphens, \
                               underscores and slashes";

    /// Parses a URL. `None` if it is not allowed.
    pub fn parse(url: &str) -> Option<Self> {
        if let Some(path) = url.strip_prefix("file://") {
            let is_plain = path.starts_with('/') && !path.contains(['%', '?', '#', '\0']);
            return is_plain.then(|| Self::Directory(PathBuf::from(path)));
        }
        let rest = url.strip_prefix("s3://")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_end_matches('/');
        let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let is_bucket = (3..=63).contains(&bucket.len())
            && bucket.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte))
            && is_edge(bucket.as_bytes().first())
            && is_edge(bucket.as_bytes().last());
        let is_segment = |segment: &str| {
            !["", ".", ".."].contains(&segment)
                && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        let is_prefix = prefix.is_empty() || (prefix.len() <= MAX_PREFIX && prefix.split('/').all(is_segment));
        (is_bucket && is_prefix).then(|| Self::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

/// The URL. It contains no secret.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "file://{}", path.display()),
            Self::Bucket { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            Self::Bucket { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_directories_and_buckets_are_parsed() {
        let bucket = |bucket: &str, prefix: &str| {
            Some(Location::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
        };
        for (url, expected, shown) in [
            ("file:///var/lib/images", Some(Location::Directory("/var/lib/images".into())), "file:///var/lib/images"),
            ("s3://my.bucket-1", bucket("my.bucket-1", ""), "s3://my.bucket-1"),
            ("s3://bucket/", bucket("bucket", ""), "s3://bucket"),
            ("s3://bucket/a/b_c/", bucket("bucket", "a/b_c"), "s3://bucket/a/b_c"),
        ] {
            let parsed = Location::parse(url);
            assert_eq!(parsed, expected, "{url}");
            assert_eq!(parsed.unwrap().to_string(), shown);
        }
        let long = format!("s3://bucket/{}", "a".repeat(201));
        for url in [
            "",
            "/var/lib",
            "file://relative",
            "file:///a%20b",
            "s3://",
            "s3://ab",
            "s3://Bucket",
            "s3://-bucket",
            "s3://bucket/a//b",
            "s3://bucket/../b",
            "s3://bucket/a b",
            "s3://user:secret@bucket",
            "https://bucket.example.com",
            &long,
        ] {
            assert_eq!(Location::parse(url), None, "{url}");
        }
    }
}
