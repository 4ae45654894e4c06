//! T0: a test key's grab is born ended. No job, no credit, no ledger.

use grabd_domain::Timestamp;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, State};
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::LockType;
use sea_orm::{EntityTrait, QuerySelect};

use super::complete::{milliseconds, size};
use super::idempotency::{NewRecord, Repeat, remember, repeat};
use crate::codes::{self, DONE, FAILED};
use crate::database::{Transaction, Tx};
use crate::entities::{grab, team};
use crate::{Error, Result, Store};

/// A test grab to keep.
#[derive(Clone, Debug)]
pub struct NewPlaceholder {
    /// Its id.
    pub id: GrabId,
    /// Whose it is.
    pub team: TeamId,
    /// What was asked for.
    pub spec: CaptureSpec,
    /// When.
    pub now: Timestamp,
    /// How it ended. A done one needs an image key, by which the picture is found when it is drawn.
    pub outcome: State,
    /// The caller's key, under which this grab is made once.
    pub idempotency: Option<NewRecord>,
}

impl Store {
    /// Keeps a test grab that has already ended, unless its key has been used before: what that comes to.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] when `outcome` is open, or done without an image key.
    pub async fn create_placeholder(&self, new: NewPlaceholder) -> Result<Option<Repeat>> {
        self.database.write(new).await
    }
}

impl Transaction for NewPlaceholder {
    type Outcome = Option<Repeat>;

    async fn apply(&self, tx: &Tx) -> Result<Option<Repeat>> {
        if let Some(record) = &self.idempotency {
            // Whatever its status: the lock is for those who come with the same key at the same time.
            team::Entity::find_by_id(self.team.0).lock(LockType::NoKeyUpdate).one(tx).await?;
            let repeat = repeat(tx, self.team, Environment::Test, record, self.now).await?;
            if repeat.is_some() {
                return Ok(repeat);
            }
        }
        let begun = grab::ActiveModel {
            id: Set(self.id.0),
            team_id: Set(self.team.0),
            env: Set(codes::environment(Environment::Test)),
            class: Set(codes::class(Class::Sync)),
            request: Set(grab::write_spec(&self.spec)?),
            attempts: Set(0),
            created_at: Set(self.now.as_ms()),
            ..Default::default()
        };
        let row = match &self.outcome {
            State::Done { finished_at, image: Some(image), size_bytes, execution_ms, facts } => grab::ActiveModel {
                status: Set(DONE),
                finished_at: Set(Some(finished_at.as_ms())),
                image_key: Set(Some(image.as_str().to_owned())),
                bytes: Set(Some(size(*size_bytes))),
                execution_ms: Set(Some(milliseconds(*execution_ms))),
                facts: Set(Some(grab::write_facts(facts)?)),
                ..begun
            },
            State::Failed { finished_at, failure, facts } => grab::ActiveModel {
                status: Set(FAILED),
                finished_at: Set(Some(finished_at.as_ms())),
                error_code: Set(Some(failure.reason.code().as_str().to_owned())),
                error_message: Set(Some(failure.message.clone())),
                facts: Set(Some(grab::write_facts(facts)?)),
                ..begun
            },
            State::Done { image: None, .. } => return Err(Error::Inconsistent("a placeholder without an image key")),
            State::Pending | State::Processing => return Err(Error::Inconsistent("a placeholder that has not ended")),
        };
        grab::Entity::insert(row).exec_without_returning(tx).await?;
        if let Some(record) = &self.idempotency {
            remember(tx, self.team, Environment::Test, record, self.id, self.now).await?;
        }
        Ok(None)
    }
}
