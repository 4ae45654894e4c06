//! The perceptual hash of an image.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The perceptual hash of an image: images that look alike have hashes that differ in few bits. Displayed and stored as 16
/// lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PerceptualHash(pub u64);

impl PerceptualHash {
    const DIGITS: usize = 16;

    /// Parses the form that `Display` prints.
    pub fn parse(text: &str) -> Option<Self> {
        let is_lower_hex = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        (text.len() == Self::DIGITS && is_lower_hex).then(|| u64::from_str_radix(text, 16).ok().map(Self)).flatten()
    }

    /// In how many of the 64 bits two hashes differ.
    pub const fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }
}

impl fmt::Display for PerceptualHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for PerceptualHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PerceptualHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not a perceptual hash"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grabs::RenderMetadata;

    #[test]
    fn hash_is_16_lower_case_digits() {
        let hash = PerceptualHash(0x0123_4567_89ab_cdef);
        assert_eq!(hash.to_string(), "0123456789abcdef");
        assert_eq!(PerceptualHash::parse("0123456789abcdef"), Some(hash));
        for text in ["", "0123456789ABCDEF", "123456789abcdef", "00123456789abcdef", "+123456789abcdef"] {
            assert_eq!(PerceptualHash::parse(text), None, "{text}");
        }
        assert_eq!((hash.distance(hash), hash.distance(PerceptualHash(0x0123_4567_89ab_cdee))), (0, 1));
    }

    #[test]
    fn hash_survives_its_stored_form_and_is_left_out_where_there_is_none() {
        let metadata = RenderMetadata { phash: Some(PerceptualHash(7)), ..RenderMetadata::default() };
        let stored = serde_json::to_string(&metadata).unwrap();
        assert!(stored.contains(r#""phash":"0000000000000007""#), "{stored}");
        assert_eq!(serde_json::from_str::<RenderMetadata>(&stored).unwrap(), metadata);
        assert!(!serde_json::to_string(&RenderMetadata::default()).unwrap().contains("phash"));
    }
}
