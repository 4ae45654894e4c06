//! T0: stores a test grab in its final state, without a job, a credit or a ledger entry.

use grabd_domain::Timestamp;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, State};
use grabd_domain::idempotency::Fingerprint;
use grabd_domain::ids::{GrabId, KeyId, TeamId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::LockType;
use sea_orm::{EntityTrait, QuerySelect};
use uuid::Uuid;

use crate::codes::{self, DONE, FAILED, milliseconds, size};
use crate::database::{BatchedTransaction, Transaction, Tx};
use crate::entities::{grab, team};
use crate::grabs::files::add_files;
use crate::grabs::idempotency::{NewRecord, Repeat, check_key, store_key};
use crate::{Error, Result, Store};

/// A test grab to store.
#[derive(Clone, Debug)]
pub struct NewPlaceholder {
    /// Its id.
    pub id: GrabId,
    /// The owning team.
    pub team: TeamId,
    /// The API key that creates it; `None` for an app or a person.
    pub key: Option<KeyId>,
    /// The capture spec.
    pub spec: CaptureSpec,
    /// Current time.
    pub now: Timestamp,
    /// The final state. A done grab needs an image key, by which its placeholder is found when it is rendered.
    pub outcome: State,
    /// The caller's idempotency key.
    pub idempotency: Option<NewRecord>,
    /// Fingerprint of the options that determine the image. None: the grab never answers a later request.
    pub fingerprint: Option<Fingerprint>,
}

impl Store {
    /// Stores an ended test grab. If its idempotency key was used before, stores nothing and returns the outcome.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] when `outcome` is open, or done without an image key.
    pub async fn create_placeholder(&self, new: NewPlaceholder) -> Result<Option<Repeat>> {
        match new.is_one_row() {
            true => self.database.write_batched(new).await,
            false => self.database.write(new).await,
        }
    }
}

impl Transaction for NewPlaceholder {
    type Outcome = Option<Repeat>;
    const KEEPS_ACCESS: bool = true;

    fn as_insert(&self) -> Option<(grab::ActiveModel, Option<Repeat>)> {
        self.is_one_row().then(|| self.row().ok()).flatten().map(|row| (row, None))
    }

    async fn apply(&self, tx: &Tx) -> Result<Option<Repeat>> {
        if let Some(record) = &self.idempotency {
            // Locks the team whatever its status, to serialize concurrent requests with the same key.
            team::Entity::find_by_id(self.team.0).lock(LockType::NoKeyUpdate).one(tx).await?;
            let repeat = check_key(tx, self.team, Environment::Test, record, self.now).await?;
            if repeat.is_some() {
                return Ok(repeat);
            }
        }
        let row = self.row()?;
        match &self.outcome {
            State::Done { metadata, .. } if metadata.has_files() => {
                let row = grab::Entity::insert(row).exec_with_returning(tx).await?;
                add_files(tx, &row, metadata).await?;
            }
            State::Done { .. } | State::Failed { .. } | State::Pending | State::Processing => {
                grab::Entity::insert(row).exec_without_returning(tx).await?;
            }
        }
        if let Some(record) = &self.idempotency {
            store_key(tx, self.team, Environment::Test, record, self.id, false, self.now).await?;
        }
        Ok(None)
    }
}

impl BatchedTransaction for NewPlaceholder {
    const IS_INSERT: bool = true;

    fn key(&self) -> Uuid {
        self.id.0
    }

    async fn apply_batch(changes: &[&Self], tx: &Tx) -> Result<Vec<Option<Option<Repeat>>>> {
        let (rows, outcomes): (Vec<_>, Vec<_>) = changes.iter().map(|new| new.as_insert().unzip()).unzip();
        let rows: Vec<_> = rows.into_iter().flatten().collect();
        if !rows.is_empty() {
            grab::Entity::insert_many(rows).exec_without_returning(tx).await?;
        }
        Ok(outcomes)
    }
}

impl NewPlaceholder {
    /// Whether a row of `grab` is all that is stored: a done grab without an idempotency key and without files.
    fn is_one_row(&self) -> bool {
        match &self.outcome {
            State::Done { metadata, .. } => self.idempotency.is_none() && !metadata.has_files(),
            State::Failed { .. } | State::Pending | State::Processing => false,
        }
    }

    fn row(&self) -> Result<grab::ActiveModel> {
        let base = grab::ActiveModel {
            id: Set(self.id.0),
            team_id: Set(self.team.0),
            env: Set(codes::environment(Environment::Test)),
            class: Set(codes::class(Class::Sync)),
            request: Set(grab::write_spec(&self.spec)?),
            attempts: Set(0),
            created_at: Set(self.now.as_ms()),
            fingerprint: Set(self.fingerprint.map(|fingerprint| fingerprint.to_vec())),
            key_id: Set(self.key.map(|key| key.0)),
            ..Default::default()
        };
        Ok(match &self.outcome {
            State::Done { finished_at, image: Some(image), size_bytes, execution_ms, metadata } => grab::ActiveModel {
                status: Set(DONE),
                finished_at: Set(Some(finished_at.as_ms())),
                image_key: Set(Some(image.as_str().to_owned())),
                bytes: Set(Some(size(*size_bytes))),
                execution_ms: Set(Some(milliseconds(*execution_ms))),
                facts: Set(Some(grab::write_facts(metadata)?)),
                ..base
            },
            State::Failed { finished_at, failure, metadata } => grab::ActiveModel {
                status: Set(FAILED),
                finished_at: Set(Some(finished_at.as_ms())),
                error_code: Set(Some(failure.reason.code().as_str().to_owned())),
                error_message: Set(Some(failure.message.clone())),
                error_cause: Set(Some(codes::error_cause(failure.cause))),
                facts: Set(Some(grab::write_facts(metadata)?)),
                ..base
            },
            State::Done { image: None, .. } => return Err(Error::Inconsistent("placeholder without an image key")),
            State::Pending | State::Processing => return Err(Error::Inconsistent("placeholder that has not ended")),
        })
    }
}
