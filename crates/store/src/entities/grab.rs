//! Grabs and their results. The state of an open grab is in its job.

use grabd_domain::Timestamp;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::grabs::{Failure, FailureReason, Grab, ImageKey, RenderMetadata, State};
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::ExprTrait;
use sea_orm::{FromQueryResult, QuerySelect};

use super::job;
use crate::codes::{self, DONE, FAILED, OPEN, read_count, read_time};
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "grab")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) team_id: Uuid,
    pub(crate) env: i16,
    pub(crate) class: i16,
    pub(crate) status: i16,
    /// The capture spec as JSON.
    pub(crate) request: String,
    /// Render metadata as JSON.
    pub(crate) facts: Option<String>,
    pub(crate) image_key: Option<String>,
    pub(crate) bytes: Option<i64>,
    pub(crate) execution_ms: Option<i32>,
    pub(crate) error_code: Option<String>,
    pub(crate) error_message: Option<String>,
    /// Whose fault a failure is. `None`: written by an earlier version; that of the code.
    pub(crate) error_cause: Option<i16>,
    /// Attempts started. Written when the grab ends.
    pub(crate) attempts: i16,
    /// Session of the renderer that held the lease when the grab failed.
    pub(crate) session_id: Option<Uuid>,
    pub(crate) created_at: i64,
    pub(crate) finished_at: Option<i64>,
    pub(crate) deleted_at: Option<i64>,
    /// SHA-256 of the options that determine the image. `None`: written by an earlier version, or with secret options.
    #[sea_orm(column_type = "VarBinary(StringLen::N(32))", nullable)]
    pub(crate) fingerprint: Option<Vec<u8>>,
    /// The API key that created it.
    pub(crate) key_id: Option<Uuid>,
    /// The user who created it in the web app.
    pub(crate) user_id: Option<Uuid>,
    /// The grant of the app that created it.
    pub(crate) grant_id: Option<Uuid>,
    /// What the row counts for its team. `None`: it is open, or was written by an earlier version and is not counted yet.
    pub(crate) stored_bytes: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl Related<job::Entity> for Entity {
    fn to() -> RelationDef {
        of_job().rev()
    }
}

impl ActiveModelBehavior for ActiveModel {}

/// The ids of who created a grab. At most one of them is set.
pub(crate) struct CreatorIds {
    pub(crate) key: Option<Uuid>,
    pub(crate) user: Option<Uuid>,
    pub(crate) grant: Option<Uuid>,
}

impl CreatorIds {
    pub(crate) const fn of(creator: Option<Principal>) -> Self {
        let (mut key, mut user, mut grant) = (None, None, None);
        match creator {
            Some(Principal::Key(id)) => key = Some(id.0),
            Some(Principal::User(id)) => user = Some(id.0),
            Some(Principal::Grant(id)) => grant = Some(id.0),
            None => {}
        }
        Self { key, user, grant }
    }
}

/// From a job to its grab. It is here because a grab is read with its job, and a job without its grab.
pub(crate) fn of_job() -> RelationDef {
    job::Entity::belongs_to(Entity).from(job::Column::GrabId).to(Column::Id).into()
}

/// Grabs visible to a caller. Every read on behalf of a caller starts from this query.
pub(crate) fn scoped(team: TeamId, environment: Environment) -> Select<Entity> {
    Entity::find().filter(Column::TeamId.eq(team.0)).filter(is_of(environment))
}

/// Grabs of this environment.
pub(crate) fn is_of(environment: Environment) -> Expr {
    equals(Column::Env, codes::environment(environment))
}

/// Grabs with this status code.
pub(crate) fn has_status(code: i16) -> Expr {
    equals(Column::Status, code)
}

/// The code is a part of the statement, not a parameter. Partial indexes have conditions on these columns, and SQLite
/// prepares a statement again for each new value of a parameter that such a condition is compared with.
fn equals(column: Column, code: i16) -> Expr {
    ExprTrait::eq(column.into_expr(), Expr::Constant(code.into()))
}

/// Reads grabs as [`WithJob`].
pub(crate) fn with_job(grabs: Select<Entity>) -> Select<Entity> {
    grabs.left_join(job::Entity).column(job::Column::Attempt).column(job::Column::LeaseUntil)
}

/// A grab and what its state needs of its job. The other columns of the job are not read, since these reads are the most
/// frequent ones.
#[derive(FromQueryResult)]
pub(crate) struct WithJob {
    #[sea_orm(nested)]
    pub(crate) row: Model,
    /// `None` if there is no job.
    attempt: Option<i16>,
    lease_until: Option<i64>,
}

impl WithJob {
    pub(crate) fn read(self) -> Result<Grab> {
        let Self { row, attempt, lease_until } = self;
        let job = attempt.map(|attempt| OpenJob { attempt, is_leased: lease_until.is_some() });
        read(row, job)
    }
}

/// What the state of an open grab depends on.
#[derive(Clone, Copy)]
pub(crate) struct OpenJob {
    /// Attempts started.
    attempt: i16,
    is_leased: bool,
}

/// Converts a grab row and, for an open grab, its job.
pub(crate) fn read(row: Model, job: Option<OpenJob>) -> Result<Grab> {
    let Model {
        id,
        team_id,
        env,
        class,
        status,
        request,
        facts,
        image_key,
        bytes,
        execution_ms,
        error_code,
        error_message,
        error_cause,
        attempts,
        session_id: _,
        created_at,
        finished_at,
        deleted_at,
        fingerprint: _,
        key_id: _,
        user_id: _,
        grant_id: _,
        stored_bytes: _,
    } = row;
    let finished_at = || read_time(finished_at).ok_or(Error::Inconsistent("ended grab without finished_at"));
    let facts = || facts.as_deref().map_or(Ok(RenderMetadata::default()), read_facts);
    let mut attempts = read_count(attempts.into())?;
    let state = match status {
        OPEN => {
            let job = job.ok_or(Error::Inconsistent("open grab without a job"))?;
            attempts = read_count(job.attempt.into())?;
            if job.is_leased { State::Processing } else { State::Pending }
        }
        DONE => State::Done {
            finished_at: finished_at()?,
            image: image_key.as_deref().map(read_key).transpose()?,
            size_bytes: bytes
                .and_then(|bytes| u64::try_from(bytes).ok())
                .ok_or(Error::Inconsistent("done grab without a size"))?,
            execution_ms: read_count(execution_ms.ok_or(Error::Inconsistent("done grab without execution_ms"))?)?,
            metadata: facts()?,
        },
        FAILED => State::Failed {
            finished_at: finished_at()?,
            failure: {
                let reason = error_code
                    .as_deref()
                    .and_then(FailureReason::parse)
                    .ok_or(Error::Inconsistent("unknown failure reason"))?;
                let failure = Failure::new(reason, error_message.unwrap_or_default());
                match error_cause {
                    Some(code) => failure.caused_by(codes::read_error_cause(code)?),
                    None => failure,
                }
            },
            metadata: facts()?,
        },
        _ => return Err(Error::Inconsistent("unknown grab status")),
    };
    Ok(Grab {
        id: GrabId(id),
        team: TeamId(team_id),
        environment: codes::read_environment(env)?,
        class: codes::read_class(class)?,
        spec: read_spec(&request)?,
        created_at: Timestamp::from_ms(created_at),
        deleted_at: read_time(deleted_at),
        attempts,
        state,
    })
}

/// The grab in the state right after its creation, whatever its current state.
pub(crate) fn read_as_created(row: &Model) -> Result<Grab> {
    Ok(Grab {
        id: GrabId(row.id),
        team: TeamId(row.team_id),
        environment: codes::read_environment(row.env)?,
        class: codes::read_class(row.class)?,
        spec: read_spec(&row.request)?,
        created_at: Timestamp::from_ms(row.created_at),
        deleted_at: None,
        attempts: 0,
        state: State::Pending,
    })
}

pub(crate) fn write_spec(spec: &CaptureSpec) -> Result<String> {
    serde_json::to_string(spec).map_err(|_| Error::Inconsistent("capture spec cannot be serialized"))
}

pub(crate) fn read_spec(text: &str) -> Result<CaptureSpec> {
    serde_json::from_str(text).map_err(|_| Error::Inconsistent("capture spec cannot be parsed"))
}

pub(crate) fn write_facts(facts: &RenderMetadata) -> Result<String> {
    serde_json::to_string(facts).map_err(|_| Error::Inconsistent("render metadata cannot be serialized"))
}

/// Shortened, since earlier versions stored what the page chose in full.
fn read_facts(text: &str) -> Result<RenderMetadata> {
    let facts: RenderMetadata =
        serde_json::from_str(text).map_err(|_| Error::Inconsistent("render metadata cannot be parsed"))?;
    Ok(facts.bounded())
}

pub(crate) fn read_key(text: &str) -> Result<ImageKey> {
    ImageKey::parse(text).ok_or(Error::Inconsistent("malformed image key"))
}

#[cfg(test)]
mod tests {
    use sea_orm::{DbBackend, QueryTrait};

    use super::*;

    #[test]
    fn codes_that_partial_indexes_depend_on_are_constants() {
        let query = scoped(TeamId(Uuid::nil()), Environment::Test).filter(has_status(DONE)).build(DbBackend::Sqlite);
        assert!(query.sql.ends_with(r#""grab"."env" = 1 AND "grab"."status" = 2"#), "{}", query.sql);
    }
}
