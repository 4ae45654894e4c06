//! Encryption of user names and passwords of proxies, for one proxy only.

use grabd_domain::ids::ProxyId;
use grabd_domain::proxies::ProxyLogin;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::vault::Vault;

#[derive(Serialize, Deserialize)]
struct Stored {
    username: String,
    password: String,
}

/// Encrypts a login.
///
/// # Errors
/// If it cannot be serialized.
pub(super) fn seal(vault: &Vault, proxy: ProxyId, login: ProxyLogin) -> Result<Vec<u8>, Error> {
    let ProxyLogin { username, password } = login;
    Ok(vault.seal(&serde_json::to_vec(&Stored { username, password })?, proxy.0.as_bytes()))
}

/// Decrypts a login.
///
/// # Errors
/// If it was encrypted with another key or for another proxy.
pub(super) fn unseal(vault: &Vault, proxy: ProxyId, sealed: &[u8]) -> Result<ProxyLogin, Error> {
    let Stored { username, password } = serde_json::from_slice(&vault.unseal(sealed, proxy.0.as_bytes())?)?;
    Ok(ProxyLogin { username, password })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn login_is_readable_for_its_proxy_only() {
        let (vault, [one, other]) = (Vault::new([7; 32]), [1, 2].map(|id| ProxyId(Uuid::from_u128(id))));
        let login = ProxyLogin { username: "me".into(), password: "hidden".into() };
        let sealed = seal(&vault, one, login.clone()).unwrap();
        assert!(!sealed.windows(6).any(|window| window == b"hidden"));
        assert_eq!(unseal(&vault, one, &sealed).unwrap(), login);
        assert!(unseal(&vault, other, &sealed).is_err());
        assert!(unseal(&Vault::new([8; 32]), one, &sealed).is_err());
    }
}
