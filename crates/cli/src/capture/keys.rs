//! Idempotency keys of creates.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// Bytes of the digest in a key.
const DIGEST_BYTES: usize = 16;
/// The longest key that the service accepts.
const MAX_KEY: usize = 255;

/// How the creates of a run get their keys.
#[derive(Clone, Debug)]
pub(crate) enum Keys {
    /// A random one for each.
    Random,
    /// This one, for a run with a single page.
    Exact(String),
    /// This one with a digest of what is captured: the same in each run with the same name, whatever pages it has, so that
    /// a repeated run is not charged again.
    Derived(String),
}

impl Keys {
    /// The keys for `--idempotency-key`.
    pub(crate) fn new(given: Option<&String>, pages: usize) -> Result<Self, Failure> {
        let longest = MAX_KEY - 2 * DIGEST_BYTES - 1;
        match given {
            None => Ok(Self::Random),
            Some(key) if pages <= 1 => Ok(Self::Exact(key.clone())),
            Some(key) if key.len() <= longest => Ok(Self::Derived(key.clone())),
            Some(_) => Err(Failure::Usage(format!(
                "--idempotency-key may have at most {longest} characters with several pages, each of which gets a key of its own"
            ))),
        }
    }

    /// The key of a create with this body.
    pub(crate) fn of(&self, body: &Value) -> String {
        match self {
            Self::Random => random(),
            Self::Exact(key) => key.clone(),
            Self::Derived(name) => {
                let digest = Sha256::digest(body.to_string());
                let digest: String = digest.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect();
                format!("{name}-{digest}")
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the command line has no caller that could pass in ids")]
fn random() -> String {
    uuid::Uuid::new_v4().to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_of_several_pages_are_derived_from_what_is_captured() {
        let keys = Keys::new(Some(&"run-7".to_owned()), 2).unwrap();
        let (a, b) = (json!({ "url": "https://a.example/", "width": 800 }), json!({ "url": "https://b.example/" }));
        assert_eq!(keys.of(&a), keys.of(&a.clone()));
        assert_ne!(keys.of(&a), keys.of(&b));
        assert!(keys.of(&a).starts_with("run-7-") && keys.of(&a).len() == "run-7-".len() + 32);
        assert_eq!(Keys::new(Some(&"one".to_owned()), 1).unwrap().of(&a), "one");
        let random = Keys::new(None, 2).unwrap();
        assert_ne!(random.of(&a), random.of(&a));
        assert!(Keys::new(Some(&"x".repeat(223)), 2).is_err());
        assert_eq!(Keys::new(Some(&"x".repeat(222)), 2).unwrap().of(&a).len(), MAX_KEY);
    }
}
