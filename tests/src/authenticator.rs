//! An authenticator app: shows codes of six digits that change every 30 seconds (RFC 6238).

use anyhow::Context;
use data_encoding::BASE32_NOPAD;
use grabd_domain::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

/// Milliseconds for which a code is shown.
const STEP_MS: i64 = 30_000;

/// An app that was set up with a secret.
pub struct Authenticator {
    secret: Vec<u8>,
}

impl Authenticator {
    /// Sets the app up with a secret in base32.
    ///
    /// # Errors
    /// If it is not base32.
    pub fn with(secret: &str) -> anyhow::Result<Self> {
        Ok(Self { secret: BASE32_NOPAD.decode(secret.as_bytes()).context("the secret is not base32")? })
    }

    /// The code that is shown some steps after a time.
    ///
    /// # Errors
    /// If the time is before the epoch.
    pub fn code(&self, at: Timestamp, steps_later: i64) -> anyhow::Result<String> {
        let counter = u64::try_from(at.as_ms().div_euclid(STEP_MS) + steps_later)?;
        let mut mac = <Hmac<Sha1> as KeyInit>::new_from_slice(&self.secret)?;
        mac.update(&counter.to_be_bytes());
        let digest = mac.finalize().into_bytes();
        let start = usize::from(digest[19] % 16);
        let number = digest[start..start + 4].iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        Ok(format!("{:06}", number % (1 << 31) % 1_000_000))
    }
}
