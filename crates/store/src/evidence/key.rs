//! The rows of keys, and the lock that changes of them take.

use grabd_domain::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter};

use crate::Result;
use crate::database::Tx;
use crate::entities::evidence_key;

/// The most keys that a service ever has.
pub const MAX_EVIDENCE_KEYS: u64 = 1000;

/// A key that signs evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceKey {
    /// The thumbprint of the public key.
    pub id: String,
    /// The public key.
    pub public_key: Vec<u8>,
    /// The private key, encrypted. `None` for one that is retired.
    pub sealed: Option<Vec<u8>>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was replaced. `None`: it is in use.
    pub retired_at: Option<Timestamp>,
}

/// A new key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvidenceKey {
    /// The thumbprint of the public key.
    pub id: String,
    /// The public key.
    pub public_key: Vec<u8>,
    /// The private key, encrypted.
    pub sealed: Vec<u8>,
    /// Current time.
    pub now: Timestamp,
}

pub(super) fn read(row: evidence_key::Model) -> EvidenceKey {
    let evidence_key::Model { id, public_key, private_key, created_at, retired_at } = row;
    EvidenceKey {
        id,
        public_key,
        sealed: private_key,
        created_at: Timestamp::from_ms(created_at),
        retired_at: retired_at.map(Timestamp::from_ms),
    }
}

/// Serializes changes of the keys, so that processes that start together use the same key. SQLite has one writer.
pub(super) async fn lock(tx: &Tx) -> Result<()> {
    if tx.get_database_backend() == DbBackend::Postgres {
        tx.execute_unprepared("LOCK TABLE evidence_keys IN SHARE ROW EXCLUSIVE MODE").await?;
    }
    Ok(())
}

/// The key that is in use.
pub(super) async fn current(tx: &impl ConnectionTrait) -> Result<Option<EvidenceKey>> {
    let in_use = evidence_key::Entity::find().filter(evidence_key::Column::RetiredAt.is_null());
    Ok(in_use.one(tx).await?.map(read))
}

pub(super) async fn insert(tx: &Tx, new: &NewEvidenceKey) -> Result<EvidenceKey> {
    let row = evidence_key::ActiveModel {
        id: Set(new.id.clone()),
        public_key: Set(new.public_key.clone()),
        private_key: Set(Some(new.sealed.clone())),
        created_at: Set(new.now.as_ms()),
        retired_at: Set(None),
    };
    evidence_key::Entity::insert(row).exec_without_returning(tx).await?;
    let NewEvidenceKey { id, public_key, sealed, now } = new.clone();
    Ok(EvidenceKey { id, public_key, sealed: Some(sealed), created_at: now, retired_at: None })
}
