//! An authenticator app.

use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use grabd_domain::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

/// How long a code is shown.
pub(crate) const STEP: Duration = Duration::from_secs(30);

/// An app that was set up with a secret.
pub(crate) struct Authenticator {
    pub(crate) secret: Vec<u8>,
}

impl Authenticator {
    /// Sets the app up with the secret that a page shows.
    pub(crate) fn with(secret: &str) -> Self {
        Self { secret: BASE32_NOPAD.decode(secret.as_bytes()).unwrap() }
    }

    /// The code that the app shows at this time (RFC 6238).
    pub(crate) fn code(&self, at: Timestamp) -> String {
        let counter = u64::try_from(at.as_ms()).unwrap() / 30_000;
        let mut mac = <Hmac<Sha1> as KeyInit>::new_from_slice(&self.secret).unwrap();
        mac.update(&counter.to_be_bytes());
        let digest = mac.finalize().into_bytes();
        let start = usize::from(digest[19] % 16);
        let number = digest[start..start + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        format!("{:06}", number % (1 << 31) % 1_000_000)
    }
}
