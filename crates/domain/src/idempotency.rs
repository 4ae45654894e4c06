//! Idempotency keys for creates.

use std::time::Duration;

use crate::faults::{Fault, Field};
use crate::grabs::{Class, Status};

/// How long a key is stored after its first use. The key of an open grab is stored until the grab has ended.
pub const LIFE: Duration = Duration::from_secs(24 * 60 * 60);

const KEY_CHARS: usize = 255;

/// An idempotency key: 1 to 255 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Parses a key.
    ///
    /// # Errors
    /// [`Fault::IdempotencyMismatch`] if it is malformed.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let well_formed = (1..=KEY_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if well_formed { Ok(Self(text.to_owned())) } else { Err(malformed(&format!("\"{text}\""))) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The error for a malformed key.
pub fn malformed(seen: &str) -> Fault {
    let allowed = format!("one value of 1 to {KEY_CHARS} visible ASCII characters");
    Fault::IdempotencyMismatch(Field::new("Idempotency-Key", seen, allowed))
}

/// A digest of everything that makes two requests equal: the options with defaults applied, and the class.
pub type Fingerprint = [u8; 32];

/// The stored record of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Fingerprint of the first request.
    pub fingerprint: Fingerprint,
    /// Class of the first request.
    pub class: Class,
    /// Status of the first request's grab.
    pub status: Status,
}

/// How to handle a request with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The key is unused: create the grab.
    Fresh,
    /// Repeat the first response.
    Replay,
    /// The first request has no response yet.
    InFlight,
    /// The key was used for a different request.
    Mismatch,
}

/// Decides how to handle a request. A mismatch takes precedence.
pub fn decide(record: Option<&Record>, fingerprint: &Fingerprint) -> Decision {
    match record {
        None => Decision::Fresh,
        Some(record) if record.fingerprint != *fingerprint => Decision::Mismatch,
        // An asynchronous create responds when the grab is queued, whatever its later status.
        Some(Record { class: Class::Async, .. }) => Decision::Replay,
        Some(Record { class: Class::Sync, status, .. }) if status.is_terminal() => Decision::Replay,
        Some(Record { class: Class::Sync, .. }) => Decision::InFlight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_parse_accepts_visible_ascii_only() {
        for (text, good) in [
            ("a", true),
            (&"k".repeat(255), true),
            ("!~", true),
            ("", false),
            (&"k".repeat(256), false),
            ("a b", false),
            ("a\tb", false),
            ("é", false),
        ] {
            assert_eq!(IdempotencyKey::parse(text).is_ok(), good, "{text:?}");
        }
        assert_eq!(malformed("x").code().as_str(), "idempotency_mismatch");
    }

    #[test]
    fn decide_covers_every_class_and_status() {
        let (same, other) = ([1; 32], [2; 32]);
        assert_eq!(decide(None, &same), Decision::Fresh);
        for class in Class::ALL {
            for status in [Status::Pending, Status::Processing, Status::Done, Status::Failed] {
                let record = Record { fingerprint: same, class, status };
                let expected = match (class, status) {
                    (Class::Async, _) | (Class::Sync, Status::Done | Status::Failed) => Decision::Replay,
                    (Class::Sync, Status::Pending | Status::Processing) => Decision::InFlight,
                };
                assert_eq!(decide(Some(&record), &same), expected, "{class:?} {status:?}");
                assert_eq!(decide(Some(&record), &other), Decision::Mismatch, "{class:?} {status:?}");
            }
        }
    }
}
