//! The signing secret of an endpoint: shown once when it is created, stored encrypted.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use grabd_domain::ids::EndpointId;

use crate::random;
use crate::vault::{DecryptError, Vault};

/// 32 bytes, shared with the endpoint's owner.
pub struct Secret([u8; 32]);

impl Secret {
    /// Generates a new secret.
    pub(crate) fn generate() -> Self {
        Self(random::secret())
    }

    /// The text shown to the owner once.
    pub fn reveal(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.0))
    }

    /// The HMAC key.
    pub(crate) const fn key(&self) -> &[u8; 32] {
        &self.0
    }

    /// Encrypts the secret for storage. It can be decrypted for this endpoint only.
    pub(crate) fn seal(&self, vault: &Vault, endpoint: EndpointId) -> Vec<u8> {
        vault.seal(&self.0, endpoint.0.as_bytes())
    }

    /// Decrypts a stored secret.
    ///
    /// # Errors
    /// [`DecryptError`] when it was encrypted with another key or for another endpoint.
    pub(crate) fn unseal(vault: &Vault, sealed: &[u8], endpoint: EndpointId) -> Result<Self, DecryptError> {
        let bytes = vault.unseal(sealed, endpoint.0.as_bytes())?;
        bytes.try_into().map(Self).map_err(|_| DecryptError)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;

    use super::*;

    #[test]
    fn sealed_secret_opens_for_its_endpoint_only_and_fits_the_column() {
        let vault = Vault::new([1; 32]);
        let [a, b] = [0, 1].map(|ms| random::endpoint_id(Timestamp::from_ms(ms)));
        let secret = Secret::generate();
        let sealed = secret.seal(&vault, a);
        assert!(sealed.len() <= 128, "{}", sealed.len());
        assert_eq!(Secret::unseal(&vault, &sealed, a).unwrap().reveal(), secret.reveal());
        assert!(Secret::unseal(&vault, &sealed, b).is_err());
        assert_eq!(secret.reveal().len(), "whsec_".len() + 44);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
