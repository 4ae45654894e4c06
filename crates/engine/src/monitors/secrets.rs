//! Encryption of the secret options of monitors' captures: request headers, cookies and passwords.

use grabd_domain::capture::CaptureSpec;
use grabd_domain::ids::MonitorId;

use crate::error::Error;
use crate::queue::secrets::{restore, to_json};
use crate::vault::Vault;

/// Encrypts the secret options, for this monitor only. `None` if there are none.
///
/// # Errors
/// If they cannot be serialized.
pub(super) fn seal(vault: &Vault, monitor: MonitorId, spec: &CaptureSpec) -> Result<Option<Vec<u8>>, Error> {
    Ok(to_json(spec)?.map(|json| vault.seal(&json, monitor.0.as_bytes())))
}

/// Adds the secret options of a monitor to its spec. `None` if they are missing or cannot be decrypted: then the key file is
/// another one.
pub(super) fn unseal(
    vault: &Vault,
    monitor: MonitorId,
    spec: CaptureSpec,
    sealed: Option<&[u8]>,
) -> Option<CaptureSpec> {
    restore(vault, monitor.0.as_bytes(), spec, sealed)
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, OptionValue, Secret};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn sealed_secrets_are_restored_for_their_monitor_only() {
        let headers = [("X-Token".to_owned(), OptionValue::Text("hidden".to_owned()))].into();
        let request = CaptureRequest {
            url: Some("https://example.com/".into()),
            headers: Some(Secret(headers)),
            ..CaptureRequest::default()
        };
        let spec = CaptureSpec::parse(&request).unwrap();
        let (vault, [one, other]) = (Vault::new([7; 32]), [1, 2].map(|id| MonitorId(Uuid::from_u128(id))));
        let sealed = seal(&vault, one, &spec).unwrap().unwrap();
        assert!(!sealed.windows(6).any(|window| window == b"hidden"));
        let stored = spec.without_secrets();
        assert_eq!(unseal(&vault, one, stored.clone(), Some(&sealed)), Some(spec));
        assert_eq!(unseal(&vault, other, stored.clone(), Some(&sealed)), None);
        assert_eq!(unseal(&vault, one, stored, None), None);
        let plain = CaptureSpec::parse(&CaptureRequest { headers: None, ..request }).unwrap();
        assert_eq!(seal(&vault, one, &plain), Ok(None));
        assert_eq!(unseal(&vault, one, plain.clone(), None), Some(plain));
    }
}
