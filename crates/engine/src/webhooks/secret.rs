//! An endpoint's signing secret: shown when it is made, kept encrypted.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use grabd_domain::ids::EndpointId;

use crate::chance;
use crate::vault::{Sealed, Vault};

/// 32 bytes that the endpoint's owner knows too.
pub struct Secret([u8; 32]);

impl Secret {
    /// A new one.
    pub(crate) fn draw() -> Self {
        Self(chance::secret())
    }

    /// As its owner sees it, once.
    pub fn reveal(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.0))
    }

    /// What signs.
    pub(crate) const fn key(&self) -> &[u8; 32] {
        &self.0
    }

    /// As it is stored: it opens for this endpoint alone.
    pub(crate) fn seal(&self, vault: &Vault, endpoint: EndpointId) -> Vec<u8> {
        vault.seal(&self.0, endpoint.0.as_bytes())
    }

    /// As it was stored.
    pub(crate) fn unseal(vault: &Vault, sealed: &[u8], endpoint: EndpointId) -> Result<Self, Sealed> {
        let bytes = vault.unseal(sealed, endpoint.0.as_bytes())?;
        bytes.try_into().map(Self).map_err(|_| Sealed)
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
    fn a_secret_comes_back_for_its_own_endpoint_and_fits_its_column() {
        let vault = Vault::new([1; 32]);
        let [a, b] = [0, 1].map(|ms| chance::endpoint_id(Timestamp::from_ms(ms)));
        let secret = Secret::draw();
        let sealed = secret.seal(&vault, a);
        assert!(sealed.len() <= 128, "{}", sealed.len());
        assert_eq!(Secret::unseal(&vault, &sealed, a).unwrap().reveal(), secret.reveal());
        assert!(Secret::unseal(&vault, &sealed, b).is_err());
        assert_eq!(secret.reveal().len(), "whsec_".len() + 44);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
