//! Rules of the device authorization grant (RFC 8628): a program without a browser shows a code, and a user types it on
//! another device.

use std::fmt;
use std::time::Duration;

/// Lifetime of a device code and its user code.
pub const DEVICE_LIFE: Duration = Duration::from_secs(10 * 60);
/// Seconds between two token requests of a waiting app.
pub const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Requests may be sooner by as much, because of the network.
pub const POLL_TOLERANCE: Duration = Duration::from_secs(1);
/// Requests that may be open at the same time, of all apps.
pub const DEVICE_REQUESTS: u64 = 1000;

/// The letters of user codes: no vowels, so that they are no words (RFC 8628 section 6.1).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const LENGTH: usize = 8;

/// The code that a user types: eight letters, which are 34 bits. Shown as `BCDF-GHJK`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCode(String);

impl UserCode {
    /// Makes a code from random numbers. Each letter takes one; their number is a multiple of 20 closely enough.
    pub fn new(random: [u32; LENGTH]) -> Self {
        Self(random.map(|number| char::from(LETTERS[number as usize % LETTERS.len()])).iter().collect())
    }

    /// Reads what a user typed, in any case and with any separators. `None` if it is no code.
    pub fn parse(text: &str) -> Option<Self> {
        let is_separator = |letter: &char| *letter == '-' || letter.is_whitespace();
        let code: String = text
            .chars()
            .take(4 * LENGTH)
            .filter(|letter| !is_separator(letter))
            .map(|of| of.to_ascii_uppercase())
            .collect();
        let is_valid = code.len() == LENGTH && code.bytes().all(|letter| LETTERS.contains(&letter));
        is_valid.then_some(Self(code))
    }

    /// As it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = self.0.split_at(LENGTH / 2);
        write!(f, "{first}-{last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_code_is_read_as_people_type_it() {
        let code = UserCode::new([0, 1, 2, 3, 4, 5, 6, 27]);
        assert_eq!((code.to_string().as_str(), code.as_str()), ("BCDF-GHJK", "BCDFGHJK"));
        for text in ["BCDF-GHJK", "bcdfghjk", " bcdf ghjk ", "b-c-d-f-g-h-j-k"] {
            assert_eq!(UserCode::parse(text), Some(code.clone()), "{text}");
        }
        for text in ["", "BCDF-GHJ", "BCDF-GHJKL", "ACDF-GHJK", "BCDF-GHJ\u{130}", "12345678"] {
            assert_eq!(UserCode::parse(text), None, "{text}");
        }
    }
}
