//! Stores a test grab in its final state, without a job, a credit or a ledger entry.

use grabd_domain::Timestamp;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::grabs::{Class, State};
use grabd_domain::idempotency::Fingerprint;
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::LockType;
use sea_orm::{EntityTrait, QuerySelect};
use uuid::Uuid;

use crate::areas::Grabs;
use crate::codes::{self, DONE, FAILED, milliseconds, size};
use crate::database::{BatchedTransaction, RowInsert, Transaction, Tx};
use crate::entities::grab::CreatorIds;
use crate::entities::test_row::{TestRow, insert_test_rows};
use crate::entities::{grab, team};
use crate::grabs::files::add_files;
use crate::grabs::idempotency::{NewRecord, Repeat, check_key, store_key};
use crate::grabs::stored_bytes::{ended_bytes, length};
use crate::{Error, Result};

/// A test grab to store.
#[derive(Clone, Debug)]
pub struct NewPlaceholder {
    /// Its id.
    pub id: GrabId,
    /// The owning team.
    pub team: TeamId,
    /// Who creates it, if that is recorded.
    pub creator: Option<Principal>,
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
    /// The bytes of test keys with which the team may create no more. `None`: any number.
    pub ceiling: Option<i64>,
}

/// Outcome of [`Grabs::create_placeholder`](crate::areas::Grabs::create_placeholder).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceholderOutcome {
    /// The grab was stored.
    Stored,
    /// Nothing was stored: the idempotency key was used before.
    Repeated(Repeat),
    /// Nothing was stored: the team has reached its ceiling.
    StorageFull,
}

impl Grabs<'_> {
    /// Stores an ended test grab.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] when `outcome` is open, or done without an image key.
    pub async fn create_placeholder(self, new: NewPlaceholder) -> Result<PlaceholderOutcome> {
        match new.is_one_row() {
            true => self.store.database.write_batched(new).await,
            false => self.store.database.write(new).await,
        }
    }
}

impl Transaction for NewPlaceholder {
    type Outcome = PlaceholderOutcome;
    const KEEPS_ACCESS: bool = true;

    fn as_insert(&self) -> Option<RowInsert<PlaceholderOutcome>> {
        let row = self.is_one_row().then(|| self.test_row().ok()).flatten()?;
        Some(RowInsert { row, inserted: PlaceholderOutcome::Stored, refused: PlaceholderOutcome::StorageFull })
    }

    async fn apply(&self, tx: &Tx) -> Result<PlaceholderOutcome> {
        if let Some(record) = &self.idempotency {
            // Locks the team whatever its status, to serialize concurrent requests with the same key.
            team::Entity::find_by_id(self.team.0).lock(LockType::NoKeyUpdate).one(tx).await?;
            let repeat = check_key(tx, self.team, Environment::Test, record, self.now).await?;
            if let Some(repeat) = repeat {
                return Ok(PlaceholderOutcome::Repeated(repeat));
            }
        }
        if !insert_test_rows(tx, &[self.test_row()?]).await?.is_empty() {
            return Ok(PlaceholderOutcome::StorageFull);
        }
        if let State::Done { metadata, .. } = &self.outcome {
            add_files(tx, (self.id, self.team, Environment::Test), metadata).await?;
        }
        if let Some(record) = &self.idempotency {
            store_key(tx, self.team, Environment::Test, record, self.id, false, self.now).await?;
        }
        Ok(PlaceholderOutcome::Stored)
    }
}

impl BatchedTransaction for NewPlaceholder {
    const IS_INSERT: bool = true;

    fn key(&self) -> Uuid {
        self.id.0
    }

    async fn apply_batch(changes: &[&Self], tx: &Tx) -> Result<Vec<Option<PlaceholderOutcome>>> {
        let inserts: Vec<_> = changes.iter().map(|new| new.as_insert()).collect();
        let mut rows: Vec<_> = inserts.iter().flatten().map(|insert| insert.row.clone()).collect();
        // The order in which the triggers lock the numbers of stored bytes.
        rows.sort_unstable_by_key(|row| row.team);
        let refused = insert_test_rows(tx, &rows).await?;
        let outcome =
            |(insert, new): (Option<RowInsert<_>>, &&Self)| Some(insert?.outcome(refused.contains(&new.id.0)));
        Ok(inserts.into_iter().zip(changes).map(outcome).collect())
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

    fn test_row(&self) -> Result<TestRow> {
        Ok(TestRow { row: self.row()?, team: self.team, ceiling: self.ceiling })
    }

    fn row(&self) -> Result<grab::ActiveModel> {
        let request = grab::write_spec(&self.spec)?;
        let (metadata, message) = match &self.outcome {
            State::Failed { failure, metadata, .. } => (metadata, failure.message.as_str()),
            State::Done { metadata, .. } => (metadata, ""),
            State::Pending | State::Processing => return Err(Error::Inconsistent("placeholder that has not ended")),
        };
        let facts = grab::write_facts(metadata)?;
        let stored_bytes = length(&request) + ended_bytes(&facts, message, metadata);
        let creator = CreatorIds::of(self.creator);
        let base = grab::ActiveModel {
            id: Set(self.id.0),
            team_id: Set(self.team.0),
            env: Set(codes::environment(Environment::Test)),
            class: Set(codes::class(Class::Sync)),
            request: Set(request),
            attempts: Set(0),
            created_at: Set(self.now.as_ms()),
            fingerprint: Set(self.fingerprint.map(|fingerprint| fingerprint.to_vec())),
            key_id: Set(creator.key),
            user_id: Set(creator.user),
            grant_id: Set(creator.grant),
            facts: Set(Some(facts)),
            stored_bytes: Set(Some(stored_bytes)),
            ..Default::default()
        };
        Ok(match &self.outcome {
            State::Done { finished_at, image: Some(image), size_bytes, execution_ms, metadata: _ } => {
                grab::ActiveModel {
                    status: Set(DONE),
                    finished_at: Set(Some(finished_at.as_ms())),
                    image_key: Set(Some(image.as_str().to_owned())),
                    bytes: Set(Some(size(*size_bytes))),
                    execution_ms: Set(Some(milliseconds(*execution_ms))),
                    ..base
                }
            }
            State::Failed { finished_at, failure, metadata: _ } => grab::ActiveModel {
                status: Set(FAILED),
                finished_at: Set(Some(finished_at.as_ms())),
                error_code: Set(Some(failure.reason.code().as_str().to_owned())),
                error_message: Set(Some(failure.message.clone())),
                error_cause: Set(Some(codes::error_cause(failure.cause))),
                ..base
            },
            State::Done { image: None, .. } => return Err(Error::Inconsistent("placeholder without an image key")),
            State::Pending | State::Processing => return Err(Error::Inconsistent("placeholder that has not ended")),
        })
    }
}
