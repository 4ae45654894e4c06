//! Creating something once although it is asked for twice.

use std::time::Duration;

use crate::faults::{Fault, Field};
use crate::grabs::{Class, Status};

/// How long a key is remembered after its first use. One whose grab is still open is remembered until it has ended.
pub const LIFE: Duration = Duration::from_secs(24 * 60 * 60);

const KEY_CHARS: usize = 255;

/// A caller's key: 1 to 255 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key as it came over a wire.
    ///
    /// # Errors
    /// [`Fault::IdempotencyMismatch`] for what cannot be one.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let shaped = (1..=KEY_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if shaped { Ok(Self(text.to_owned())) } else { Err(malformed(&format!("\"{text}\""))) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a key that is none is answered with.
pub fn malformed(seen: &str) -> Fault {
    let allowed = format!("one value of 1 to {KEY_CHARS} visible ASCII characters");
    Fault::IdempotencyMismatch(Field::new("Idempotency-Key", seen, allowed))
}

/// A digest of everything that makes two requests the same one: the effective options and how they are waited for.
pub type Fingerprint = [u8; 32];

/// What was remembered under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Of the first request.
    pub fingerprint: Fingerprint,
    /// How the first caller waits.
    pub class: Class,
    /// Where the first request's grab stands.
    pub status: Status,
}

/// What a request with a key comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nobody used the key: go on.
    Fresh,
    /// Answer what the first one was answered.
    Replay,
    /// The first one has no answer yet.
    InFlight,
    /// The key belongs to another request.
    Mismatch,
}

/// Decides by what was remembered, if anything was. A mismatch is told before anything else.
pub fn decide(record: Option<&Record>, fingerprint: &Fingerprint) -> Decision {
    match record {
        None => Decision::Fresh,
        Some(record) if record.fingerprint != *fingerprint => Decision::Mismatch,
        // An asynchronous caller was answered when the grab was queued; what became of it since is for polling.
        Some(Record { class: Class::Async, .. }) => Decision::Replay,
        Some(Record { class: Class::Sync, status, .. }) if status.is_terminal() => Decision::Replay,
        Some(Record { class: Class::Sync, .. }) => Decision::InFlight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_visible_ascii() {
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
    fn the_whole_table() {
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
