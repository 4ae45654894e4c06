//! The keys that sign evidence. The first is made when it is needed, and all processes of a cluster use the same.

use grabd_domain::Timestamp;
use grabd_evidence::{InvalidSeed, PublicKey, SigningKey};
use grabd_store::Store;
use grabd_store::evidence::{EvidenceKey, NewEvidenceKey, RotateKeyOutcome};
use serde_json::{Value, json};

use super::key_error::KeyError;
use crate::error::Error;
use crate::random;
use crate::service::Core;
use crate::vault::Vault;

/// A replaced key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotatedKey {
    /// The id of the new key.
    pub new: String,
    /// The id of the one before. `None` if this is the first.
    pub former: Option<String>,
}

/// A new key, encrypted for its id.
fn generate(vault: &Vault, now: Timestamp) -> Result<NewEvidenceKey, InvalidSeed> {
    let seed = random::secret();
    let public_key = SigningKey::of_seed(&seed)?.public_key();
    let id = public_key.id();
    let sealed = vault.seal(&seed, id.as_bytes());
    Ok(NewEvidenceKey { id, public_key: public_key.as_bytes().to_vec(), sealed, now })
}

/// The key that signs. It is made if there is none yet.
///
/// # Errors
/// [`KeyError`].
pub(crate) async fn signing_key(core: &Core) -> Result<SigningKey, KeyError> {
    let keys = core.store.evidence();
    let key = match keys.current_key().await? {
        Some(key) => key,
        None => keys.ensure_key(generate(&core.vault, core.clock.now())?).await?,
    };
    unseal(&core.vault, &key)
}

fn unseal(vault: &Vault, key: &EvidenceKey) -> Result<SigningKey, KeyError> {
    let sealed = key.sealed.as_deref().ok_or(KeyError::OtherKey)?;
    let signing = SigningKey::of_seed(&vault.unseal(sealed, key.id.as_bytes())?)?;
    match signing.public_key().id() == key.id {
        true => Ok(signing),
        false => Err(KeyError::OtherKey),
    }
}

/// Whether the key that signs can be decrypted. `None` if there is none yet.
///
/// # Errors
/// Database errors only.
pub async fn can_decrypt_key(store: &Store, vault: Option<&Vault>) -> Result<Option<bool>, grabd_store::Error> {
    let key = store.evidence().current_key().await?;
    Ok(key.map(|key| vault.is_some_and(|vault| unseal(vault, &key).is_ok())))
}

/// Puts a new key in the place of the one that signs, whose private key is deleted. `None` if the service has had as many keys
/// as it may have.
///
/// # Errors
/// [`KeyError`].
pub async fn rotate(store: &Store, vault: &Vault, now: Timestamp) -> Result<Option<RotatedKey>, KeyError> {
    Ok(match store.evidence().rotate_key(generate(vault, now)?).await? {
        RotateKeyOutcome::Rotated { new, former } => Some(RotatedKey { new: new.id, former }),
        RotateKeyOutcome::TooMany => None,
    })
}

/// The public keys of all evidence that was ever signed, as a JSON Web Key Set (RFC 7517).
///
/// # Errors
/// When the store fails.
pub async fn key_set(core: &Core) -> Result<Value, Error> {
    let keys = core.store.evidence().list_public_keys().await?;
    let public = keys.iter().filter_map(|key| PublicKey::of_bytes(key));
    Ok(json!({ "keys": public.map(PublicKey::to_jwk).collect::<Vec<_>>() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_795_206_774_120);

    async fn store() -> Store {
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.migrate().await.unwrap();
        store
    }

    #[tokio::test]
    async fn rotated_key_keeps_its_public_key_only() {
        let (store, vault) = (store().await, Vault::new([7; 32]));
        let first = store.evidence().ensure_key(generate(&vault, NOW).unwrap()).await.unwrap();
        // Another process that starts at the same time gets the same key.
        assert_eq!(store.evidence().ensure_key(generate(&vault, NOW).unwrap()).await.unwrap(), first);
        assert_eq!(unseal(&vault, &first).unwrap().public_key().as_bytes().as_slice(), first.public_key);
        let later = Timestamp::from_ms(NOW.as_ms() + 1000);
        let RotatedKey { new, former } = rotate(&store, &vault, later).await.unwrap().unwrap();
        assert_eq!(former.as_ref(), Some(&first.id));
        let keys = store.evidence().list_keys().await.unwrap();
        assert_eq!(keys.iter().map(|key| &key.id).collect::<Vec<_>>(), [&new, &first.id]);
        assert_eq!((&keys[1].sealed, keys[1].retired_at), (&None, Some(later)));
        assert_eq!(store.evidence().current_key().await.unwrap().map(|key| key.id), Some(new));
    }

    #[tokio::test]
    async fn key_of_another_vault_or_id_is_refused() {
        let store = store().await;
        let usable =
            async |vault: Option<[u8; 32]>| can_decrypt_key(&store, vault.map(Vault::new).as_ref()).await.unwrap();
        assert_eq!(usable(Some([7; 32])).await, None);
        let key = store.evidence().ensure_key(generate(&Vault::new([7; 32]), NOW).unwrap()).await.unwrap();
        assert_eq!((usable(Some([7; 32])).await, usable(Some([8; 32])).await), (Some(true), Some(false)));
        assert_eq!(usable(None).await, Some(false));
        assert!(matches!(unseal(&Vault::new([8; 32]), &key), Err(KeyError::Decrypt(_))));
        let other = EvidenceKey { id: "another".to_owned(), ..key };
        assert!(matches!(unseal(&Vault::new([7; 32]), &other), Err(KeyError::Decrypt(_))));
    }
}
