//! Attachments of a grab.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::image_key::base62;
use crate::capture::FileKind;

const FILE_KEY_CHARS: usize = 22;

/// The secret part of a file's URL: 22 base62 characters. It tells nothing about the URL of the image, nor the other way
/// round, so that one can be passed on without the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileKey(String);

impl FileKey {
    /// Creates a key from 128 random bits.
    pub fn new(random: u128) -> Self {
        Self(base62(random, FILE_KEY_CHARS))
    }

    /// Parses a key from the store or a URL. Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let is_key = text.len() == FILE_KEY_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_key.then(|| Self(text.to_owned()))
    }

    /// The 22 characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for FileKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for FileKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not the key of a file"))
    }
}

/// An attachment of a grab, which `also` asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrabFile {
    /// What it is.
    pub kind: FileKind,
    /// The key of its URL.
    pub key: FileKey,
    /// Its size.
    pub bytes: u64,
}

impl GrabFile {
    /// The path of its URL, without a leading slash: `f/{key}/{name}`.
    pub fn path(&self) -> String {
        format!("f/{}/{}", self.key.as_str(), self.kind.file_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grabs::RenderMetadata;

    #[test]
    fn file_key_parse_rejects_malformed_text() {
        let key = FileKey::new(u128::MAX);
        assert_eq!(FileKey::parse(key.as_str()), Some(key.clone()));
        assert_ne!(key, FileKey::new(u128::MAX - 1));
        for text in
            ["", "012345678901234567890", "01234567890123456789012", "012345678901234567890/", "../../../etc/passwd.."]
        {
            assert_eq!(FileKey::parse(text), None, "{text}");
        }
    }

    #[test]
    fn files_survive_their_stored_form_and_unknown_kinds_are_skipped() {
        let file = GrabFile { kind: FileKind::Markdown, key: FileKey::new(7), bytes: 12 };
        let metadata = RenderMetadata { files: vec![file], ..RenderMetadata::default() };
        let stored = serde_json::to_string(&metadata).unwrap();
        assert_eq!(serde_json::from_str::<RenderMetadata>(&stored).unwrap(), metadata);
        let later = stored.replace("markdown", "hologram");
        assert!(serde_json::from_str::<RenderMetadata>(&later).unwrap().files.is_empty());
        assert!(!serde_json::to_string(&RenderMetadata::default()).unwrap().contains("files"));
    }
}
