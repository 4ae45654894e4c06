//! Encryption of the secret options of open grabs: request headers, cookies and passwords.

use std::collections::BTreeMap;

use grabd_domain::capture::{CaptureSpec, OptionValue};
use grabd_domain::ids::GrabId;

use crate::error::Error;
use crate::service::Core;
use crate::vault::Vault;

/// The secret options as JSON, always the same for equal options. None if there are none.
pub(crate) fn to_json(spec: &CaptureSpec) -> Result<Option<Vec<u8>>, Error> {
    let secrets = spec.secret_options();
    if secrets.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::to_vec(&secrets)?))
}

/// Encrypts the secret options, for this grab only.
///
/// # Errors
/// If they cannot be serialized.
pub(crate) fn seal(core: &Core, grab: GrabId, spec: &CaptureSpec) -> Result<Option<Vec<u8>>, Error> {
    Ok(to_json(spec)?.map(|json| core.vault.seal(&json, grab.0.as_bytes())))
}

/// Adds the secret options of a grab to its spec. None if they are missing or cannot be decrypted: then the key file is
/// another one.
pub(crate) fn unseal(vault: &Vault, grab: GrabId, spec: CaptureSpec, sealed: Option<&[u8]>) -> Option<CaptureSpec> {
    restore(vault, grab.0.as_bytes(), spec, sealed)
}

/// Adds secret options that were encrypted for this owner to a spec, as [`unseal`] does.
pub(crate) fn restore(vault: &Vault, owner: &[u8], spec: CaptureSpec, sealed: Option<&[u8]>) -> Option<CaptureSpec> {
    let Some(sealed) = sealed else { return spec.secrets.given().is_empty().then_some(spec) };
    let json = vault.unseal(sealed, owner).ok()?;
    let secrets: BTreeMap<String, OptionValue> = serde_json::from_slice(&json).ok()?;
    spec.with_secrets(secrets)
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, Secret};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn sealed_secrets_are_restored_for_their_grab_only() {
        let headers = [("X-Token".to_owned(), OptionValue::Text("hidden".to_owned()))].into();
        let request = CaptureRequest {
            url: Some("https://example.com/".into()),
            headers: Some(Secret(headers)),
            ..CaptureRequest::default()
        };
        let spec = CaptureSpec::parse(&request).unwrap();
        let (vault, [one, other]) = (Vault::new([7; 32]), [1, 2].map(|id| GrabId(Uuid::from_u128(id))));
        let sealed = vault.seal(&to_json(&spec).unwrap().unwrap(), one.0.as_bytes());
        assert!(!sealed.windows(6).any(|window| window == b"hidden"));
        let stored = spec.without_secrets();
        assert_eq!(unseal(&vault, one, stored.clone(), Some(&sealed)), Some(spec));
        assert_eq!(unseal(&vault, other, stored.clone(), Some(&sealed)), None);
        assert_eq!(unseal(&Vault::new([8; 32]), one, stored.clone(), Some(&sealed)), None);
        assert_eq!(unseal(&vault, one, stored, None), None);
        let plain = CaptureSpec::parse(&CaptureRequest { headers: None, ..request }).unwrap();
        assert_eq!(unseal(&vault, one, plain.clone(), None), Some(plain));
    }
}
