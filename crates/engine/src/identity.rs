//! The identity of the service towards the sites that it captures: its keys, the signatures of its requests, and the directory
//! in which sites look up the public keys.
//!
//! The keys are in the database, encrypted. A process reads them again every second, so a rotation needs no restart. A new key
//! is published before it is used, and a former one for longer than its last signature is valid.

use std::sync::Arc;
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::identity::{AgentUrl, SignatureFields, SigningIdentity, SigningKey, content_digest};
use grabd_domain::render::RequestSigner;
use grabd_store::Store;
use grabd_store::identity::{NewIdentityKey, RotateIdentityOutcome, StoredIdentityKey};
use parking_lot::RwLock;
use serde_json::json;

use crate::clock::Clock;
use crate::random;
use crate::vault::{DecryptError, Vault};

/// How long verifiers may keep the directory.
pub const DIRECTORY_MAX_AGE: Duration = Duration::from_secs(60 * 60);
/// How long a new key is published before it is used: longer than verifiers keep the directory.
pub const PUBLISHED_BEFORE: Duration = Duration::from_secs(2 * 60 * 60);
/// How long a key is published after it was replaced.
pub const PUBLISHED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the signatures of the directory are valid.
const DIRECTORY_VALID: Duration = Duration::from_secs(24 * 60 * 60);

/// Why the keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database cannot be read or changed.
    #[error(transparent)]
    Store(#[from] grabd_store::Error),
    /// A key cannot be decrypted.
    #[error(
        "the key that signs requests to sites cannot be decrypted: is secrets.key_file the one it was encrypted with?"
    )]
    Decrypt(#[from] DecryptError),
    /// A decrypted key is not one.
    #[error("a stored key that signs requests to sites is damaged")]
    Damaged,
}

/// The directory of public keys, as an HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The JSON Web Key Set.
    pub body: String,
    /// The header field `Content-Digest`.
    pub content_digest: String,
    /// The header field `Signature-Input`.
    pub signature_input: String,
    /// The header field `Signature`: one signature by each key.
    pub signature: String,
}

/// A key that can be used.
#[derive(Debug)]
struct UsableKey {
    identity: Arc<SigningIdentity>,
    used_from: Timestamp,
    removed_at: Option<Timestamp>,
}

/// The keys of this process. Without a URL of the directory, nothing is signed.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    agent: Option<AgentUrl>,
    loaded: RwLock<Loaded>,
}

#[derive(Debug, Default)]
struct Loaded {
    /// The rows that the keys were read from.
    rows: Vec<StoredIdentityKey>,
    /// In the order in which they were made.
    keys: Arc<Vec<UsableKey>>,
}

impl Identity {
    pub(crate) fn new(agent: Option<AgentUrl>) -> Self {
        Self { agent, loaded: RwLock::default() }
    }

    /// Reads the keys. Makes the first one if there is none.
    pub(crate) async fn start(&self, store: &Store, vault: &Vault, now: Timestamp) -> Result<(), Error> {
        if self.agent.is_some() {
            store.identity().create_first_key(new_key(vault, now, now, now)).await?;
        }
        self.refresh(store, vault).await
    }

    /// Reads the keys again. After an error, the known ones are used.
    pub(crate) async fn refresh(&self, store: &Store, vault: &Vault) -> Result<(), Error> {
        let Some(agent) = &self.agent else { return Ok(()) };
        let rows = store.identity().list_keys().await?;
        if self.loaded.read().rows == rows {
            return Ok(());
        }
        let keys = rows.iter().map(|row| usable(row, agent, vault)).collect::<Result<Vec<_>, _>>()?;
        *self.loaded.write() = Loaded { rows, keys: Arc::new(keys) };
        Ok(())
    }

    /// The key with which requests are signed now. `None` if they are not. The same as before until it changes.
    pub(crate) fn current(&self, now: Timestamp) -> Option<Arc<SigningIdentity>> {
        let keys = Arc::clone(&self.loaded.read().keys);
        let used = keys.iter().rfind(|key| key.used_from <= now && key.is_published(now));
        used.map(|key| Arc::clone(&key.identity))
    }

    /// The directory of the published keys. `None` if nothing is signed.
    pub(crate) fn directory(&self, now: Timestamp) -> Option<Directory> {
        let agent = self.agent.as_ref()?;
        let keys = Arc::clone(&self.loaded.read().keys);
        let published: Vec<&SigningKey> =
            keys.iter().filter(|key| key.is_published(now)).map(|key| &*key.identity.key).collect();
        let set: Vec<_> = published
            .iter()
            .map(|key| json!({ "kty": "OKP", "crv": "Ed25519", "kid": key.id(), "x": key.public_key(), "use": "sig" }))
            .collect();
        let body = json!({ "keys": set }).to_string();
        let content_digest = content_digest(body.as_bytes());
        let signatures: Vec<_> = published
            .iter()
            .enumerate()
            .map(|(at, key)| key.sign_directory(&format!("key{at}"), agent, &content_digest, now, DIRECTORY_VALID))
            .collect();
        let inputs: Vec<&str> = signatures.iter().map(|signature| &*signature.input).collect();
        let values: Vec<&str> = signatures.iter().map(|signature| &*signature.signature).collect();
        Some(Directory { signature_input: inputs.join(", "), signature: values.join(", "), body, content_digest })
    }
}

impl UsableKey {
    fn is_published(&self, now: Timestamp) -> bool {
        self.removed_at.is_none_or(|at| now < at)
    }
}

/// What signs the requests of a capture.
pub fn signer(identity: Option<Arc<SigningIdentity>>, clock: Clock) -> RequestSigner {
    let Some(identity) = identity else { return RequestSigner::default() };
    let sign =
        move |url: &str| -> Option<SignatureFields> { identity.sign_request(url, clock.now(), &random::secret_text()) };
    RequestSigner::new(sign)
}

/// Replaces the key. With `at_once`, the new key is used at once and no other is published any more, because the former one
/// is known to others: until verifiers have read the directory again, they do not recognize the service. Otherwise the new key
/// is published first.
///
/// # Errors
/// Database errors only.
pub async fn rotate(
    store: &Store,
    vault: &Vault,
    now: Timestamp,
    at_once: bool,
) -> Result<RotateIdentityOutcome, grabd_store::Error> {
    let (used_from, removed_at) = match at_once {
        true => (now, now),
        false => (now + PUBLISHED_BEFORE, now + PUBLISHED_BEFORE + PUBLISHED_AFTER),
    };
    store.identity().rotate_key(new_key(vault, now, used_from, removed_at), at_once).await
}

/// Whether all keys can be decrypted. Otherwise a service that signs requests does not start.
///
/// # Errors
/// Database errors only.
pub async fn can_decrypt_keys(store: &Store, vault: &Vault) -> Result<bool, grabd_store::Error> {
    let keys = store.identity().list_keys().await?;
    Ok(keys.iter().all(|key| vault.unseal(&key.secret, key.key_id.as_bytes()).is_ok()))
}

fn new_key(vault: &Vault, now: Timestamp, used_from: Timestamp, others_removed_at: Timestamp) -> NewIdentityKey {
    let key = SigningKey::from_seed(&random::secret()).expect("a secret has the bytes of a key");
    let secret = vault.seal(key.seed(), key.id().as_bytes());
    NewIdentityKey { key_id: key.id().to_owned(), secret, now, used_from, others_removed_at }
}

fn usable(row: &StoredIdentityKey, agent: &AgentUrl, vault: &Vault) -> Result<UsableKey, Error> {
    let seed = vault.unseal(&row.secret, row.key_id.as_bytes())?;
    let key = SigningKey::from_seed(&seed).filter(|key| key.id() == row.key_id).ok_or(Error::Damaged)?;
    let identity = Arc::new(SigningIdentity { agent: agent.clone(), key: Arc::new(key) });
    Ok(UsableKey { identity, used_from: row.used_from, removed_at: row.removed_at })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_795_206_774_120);

    struct Rig {
        store: Store,
        vault: Vault,
        identity: Identity,
    }

    impl Rig {
        async fn start() -> Self {
            let store = Store::open("sqlite::memory:").await.unwrap();
            store.migrate().await.unwrap();
            let (vault, agent) = (Vault::new([7; 32]), AgentUrl::parse("https://grabs.example.com"));
            let identity = Identity::new(agent);
            identity.start(&store, &vault, NOW).await.unwrap();
            Self { store, vault, identity }
        }

        async fn rotate(&self, now: Timestamp, at_once: bool) -> RotateIdentityOutcome {
            let rotated = rotate(&self.store, &self.vault, now, at_once).await.unwrap();
            self.identity.refresh(&self.store, &self.vault).await.unwrap();
            rotated
        }

        fn used(&self, now: Timestamp) -> String {
            self.identity.current(now).unwrap().key.id().to_owned()
        }

        /// The ids of the published keys.
        fn published(&self, now: Timestamp) -> Vec<String> {
            let body: Value = serde_json::from_str(&self.identity.directory(now).unwrap().body).unwrap();
            let keys = body["keys"].as_array().unwrap().iter();
            keys.map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
        }
    }

    #[tokio::test]
    async fn key_is_made_once_and_kept() {
        let rig = Rig::start().await;
        let used = rig.used(NOW);
        let other = Identity::new(AgentUrl::parse("https://grabs.example.com"));
        other.start(&rig.store, &rig.vault, NOW).await.unwrap();
        assert_eq!(other.current(NOW).unwrap().key.id(), used);
        assert_eq!(rig.published(NOW), [used]);
        let foreign = Identity::new(AgentUrl::parse("https://grabs.example.com"));
        let refused = foreign.start(&rig.store, &Vault::new([8; 32]), NOW).await;
        assert!(matches!(refused, Err(Error::Decrypt(_))), "{refused:?}");
        let readable = async |key| can_decrypt_keys(&rig.store, &Vault::new([key; 32])).await.unwrap();
        assert_eq!((readable(7).await, readable(8).await), (true, false));
        rig.store.close().await;
    }

    #[tokio::test]
    async fn nothing_is_stored_or_signed_without_a_url_of_the_directory() {
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.migrate().await.unwrap();
        let identity = Identity::new(None);
        identity.start(&store, &Vault::new([7; 32]), NOW).await.unwrap();
        assert!(identity.current(NOW).is_none() && identity.directory(NOW).is_none());
        assert_eq!(store.identity().list_keys().await.unwrap(), []);
        assert!(!signer(identity.current(NOW), Clock::manual(NOW)).is_active());
        store.close().await;
    }

    #[tokio::test]
    async fn new_key_is_published_before_it_is_used_and_the_former_one_after() {
        let rig = Rig::start().await;
        let old = rig.used(NOW);
        let rotated = rig.rotate(NOW, false).await;
        assert_eq!(rotated, RotateIdentityOutcome::Rotated { used_from: NOW + PUBLISHED_BEFORE });
        let published = rig.published(NOW);
        assert_eq!((published.len(), &published[0], rig.used(NOW)), (2, &old, old.clone()));
        let switched = NOW + PUBLISHED_BEFORE;
        assert_eq!((rig.used(switched), rig.published(switched)), (published[1].clone(), published.clone()));
        let refused = rig.rotate(switched, false).await;
        assert_eq!(refused, RotateIdentityOutcome::UnderWay { until: switched + PUBLISHED_AFTER });
        assert_eq!(rig.published(switched + PUBLISHED_AFTER), [published[1].clone()]);
        let directory = rig.identity.directory(NOW).unwrap();
        assert_eq!(directory.signature_input.matches("tag=\"http-message-signatures-directory\"").count(), 2);
        assert!(directory.signature.starts_with("key0=:") && directory.signature.contains(":, key1=:"));
        rig.store.close().await;
    }

    #[tokio::test]
    async fn key_that_others_know_is_replaced_at_once() {
        let rig = Rig::start().await;
        let old = rig.used(NOW);
        assert_eq!(rig.rotate(NOW, true).await, RotateIdentityOutcome::Rotated { used_from: NOW });
        assert_ne!(rig.used(NOW), old);
        assert_eq!(rig.published(NOW), [rig.used(NOW)]);
        rig.store.close().await;
    }

    #[tokio::test]
    async fn each_signature_is_a_new_one() {
        let rig = Rig::start().await;
        let signer = signer(rig.identity.current(NOW), Clock::manual(NOW));
        let sign = |url: &str| signer.sign(url);
        let (one, other) = (sign("https://example.com/").unwrap(), sign("https://example.com/").unwrap());
        assert_eq!(one[0], other[0]);
        assert!(one[1] != other[1] && one[2] != other[2], "{one:?} {other:?}");
        assert_eq!(sign("about:blank"), None);
        rig.store.close().await;
    }
}
