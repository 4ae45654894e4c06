//! The keys with which the service signs its requests to captured sites.

use grabd_domain::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, TryInsertResult};

use crate::Result;
use crate::areas::Identity;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::identity_key;

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredIdentityKey {
    /// The number of the key: later keys have larger ones.
    pub number: i32,
    /// The thumbprint of the public key.
    pub key_id: String,
    /// The encrypted private key.
    pub secret: Vec<u8>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on requests are signed with it.
    pub used_from: Timestamp,
    /// From when on it is not published any more. `None` for the last key.
    pub removed_at: Option<Timestamp>,
}

/// A new key.
#[derive(Clone, Debug)]
pub struct NewIdentityKey {
    /// The thumbprint of the public key.
    pub key_id: String,
    /// The encrypted private key.
    pub secret: Vec<u8>,
    /// The current time.
    pub now: Timestamp,
    /// From when on requests are signed with it, unless it is the first key, which is used at once.
    pub used_from: Timestamp,
    /// From when on the keys before it are not published any more. Keys that are not published now are deleted.
    pub others_removed_at: Timestamp,
}

/// The outcome of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotateIdentityOutcome {
    /// There is a new key, which is used from then on.
    Rotated {
        /// From when on requests are signed with it.
        used_from: Timestamp,
    },
    /// A former key is still published, so verifiers may not know the current one yet.
    UnderWay {
        /// When it is not published any more.
        until: Timestamp,
    },
    /// Another process has made a key at the same time.
    Raced,
}

struct CreateFirst(NewIdentityKey);

struct Rotate {
    new: NewIdentityKey,
    /// Whether keys of a rotation that is under way are removed.
    is_forced: bool,
}

struct Purge(Timestamp);

struct Reseal {
    number: i32,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Identity<'_> {
    /// All keys, in the order in which they were made: the current one, during a rotation another one, and until the next purge
    /// one that is not published any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_keys(self) -> Result<Vec<StoredIdentityKey>> {
        let rows = identity_key::Entity::find().order_by_asc(identity_key::Column::Number);
        Ok(rows.all(self.store.database.reader()).await?.into_iter().map(stored).collect())
    }

    /// Stores the first key. `false` if there is a key.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn create_first_key(self, new: NewIdentityKey) -> Result<bool> {
        self.store.database.write(CreateFirst(new)).await
    }

    /// Stores the key that replaces the current one. Refused while a former key is published, unless it is forced.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn rotate_key(self, new: NewIdentityKey, is_forced: bool) -> Result<RotateIdentityOutcome> {
        let event = AuditEvent::new("identity.rotate", &new.key_id, None);
        let happened = |outcome: &RotateIdentityOutcome| matches!(outcome, RotateIdentityOutcome::Rotated { .. });
        self.store.write_audited(Rotate { new, is_forced }, event, happened).await
    }

    /// Deletes keys that are not published any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_keys(self, now: Timestamp) -> Result<u64> {
        self.store.database.write(Purge(now)).await
    }

    /// Replaces the encrypted private key of a key. `false` when it is not `old` any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn reseal_key(self, number: i32, old: Vec<u8>, new: Vec<u8>) -> Result<bool> {
        self.store.database.write(Reseal { number, old, new }).await
    }
}

fn stored(row: identity_key::Model) -> StoredIdentityKey {
    let identity_key::Model { number, key_id, secret, created_at, used_from, removed_at } = row;
    StoredIdentityKey {
        number,
        key_id,
        secret,
        created_at: Timestamp::from_ms(created_at),
        used_from: Timestamp::from_ms(used_from),
        removed_at: removed_at.map(Timestamp::from_ms),
    }
}

/// Inserts a key. `false` if another process has made one of this number.
async fn insert(tx: &Tx, number: i32, used_from: Timestamp, new: &NewIdentityKey) -> Result<bool> {
    let row = identity_key::ActiveModel {
        number: Set(number),
        key_id: Set(new.key_id.clone()),
        secret: Set(new.secret.clone()),
        created_at: Set(new.now.as_ms()),
        used_from: Set(used_from.as_ms()),
        removed_at: Set(None),
    };
    let insert = identity_key::Entity::insert(row).on_conflict_do_nothing_on([identity_key::Column::Number]);
    Ok(matches!(insert.exec_without_returning(tx).await?, TryInsertResult::Inserted(1..)))
}

impl Transaction for CreateFirst {
    type Outcome = bool;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        if identity_key::Entity::find().one(tx).await?.is_some() {
            return Ok(false);
        }
        insert(tx, 1, self.0.now, &self.0).await
    }
}

impl Transaction for Rotate {
    type Outcome = RotateIdentityOutcome;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<RotateIdentityOutcome> {
        let Self { new, is_forced } = self;
        let keys = identity_key::Entity::find().order_by_asc(identity_key::Column::Number).all(tx).await?;
        let published = keys.iter().filter_map(|key| key.removed_at).filter(|at| *at > new.now.as_ms()).max();
        if let Some(until) = published.filter(|_| !is_forced) {
            return Ok(RotateIdentityOutcome::UnderWay { until: Timestamp::from_ms(until) });
        }
        let used_from = if keys.is_empty() { new.now } else { new.used_from };
        let number = keys.last().map_or(1, |last| last.number.saturating_add(1));
        if !insert(tx, number, used_from, new).await? {
            return Ok(RotateIdentityOutcome::Raced);
        }
        let removed_at = new.others_removed_at.as_ms();
        let stays_longer = Condition::any()
            .add(identity_key::Column::RemovedAt.is_null())
            .add(identity_key::Column::RemovedAt.gt(removed_at));
        identity_key::Entity::update_many()
            .col_expr(identity_key::Column::RemovedAt, Expr::value(removed_at))
            .filter(identity_key::Column::Number.lt(number))
            .filter(stays_longer)
            .exec(tx)
            .await?;
        purge(tx, new.now).await?;
        Ok(RotateIdentityOutcome::Rotated { used_from })
    }
}

impl Transaction for Purge {
    type Outcome = u64;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        purge(tx, self.0).await
    }
}

async fn purge(tx: &Tx, now: Timestamp) -> Result<u64> {
    let removed = identity_key::Column::RemovedAt.lte(now.as_ms());
    Ok(identity_key::Entity::delete_many().filter(removed).exec(tx).await?.rows_affected)
}

impl Transaction for Reseal {
    type Outcome = bool;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let changed = identity_key::Entity::update_many()
            .col_expr(identity_key::Column::Secret, Expr::value(self.new.clone()))
            .filter(identity_key::Column::Number.eq(self.number))
            .filter(identity_key::Column::Secret.eq(self.old.clone()))
            .exec(tx)
            .await?;
        Ok(changed.rows_affected > 0)
    }
}
