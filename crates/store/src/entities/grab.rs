//! A grab and, once it ended, how. While it is open, its job says the rest.

use grabd_domain::Timestamp;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Facts, Failure, FailureReason, Grab, ImageKey, State};
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::entity::prelude::*;

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
    /// The spec as JSON.
    pub(crate) request: String,
    /// What was seen, as JSON.
    pub(crate) facts: Option<String>,
    pub(crate) image_key: Option<String>,
    pub(crate) bytes: Option<i64>,
    pub(crate) execution_ms: Option<i32>,
    pub(crate) error_code: Option<String>,
    pub(crate) error_message: Option<String>,
    /// Renders begun, written at the end.
    pub(crate) attempts: i16,
    /// Of the renderer that had it when it failed.
    pub(crate) session_id: Option<Uuid>,
    pub(crate) created_at: i64,
    pub(crate) finished_at: Option<i64>,
    pub(crate) deleted_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {
    #[sea_orm(has_one = "super::job::Entity")]
    Job,
}

impl Related<job::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Job.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

/// The grabs a caller may know of. Whatever a caller reads begins here.
pub(crate) fn scoped(team: TeamId, environment: Environment) -> Select<Entity> {
    Entity::find().filter(Column::TeamId.eq(team.0)).filter(Column::Env.eq(codes::environment(environment)))
}

/// A grab from its row and, while it is open, its job's.
pub(crate) fn read(row: Model, job: Option<&job::Model>) -> Result<Grab> {
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
        attempts,
        session_id: _,
        created_at,
        finished_at,
        deleted_at,
    } = row;
    let finished_at = || read_time(finished_at).ok_or(Error::Inconsistent("an ended grab without its time"));
    let facts = || facts.as_deref().map_or(Ok(Facts::default()), read_facts);
    let mut attempts = read_count(attempts.into())?;
    let state = match status {
        OPEN => {
            let job = job.ok_or(Error::Inconsistent("an open grab without a job"))?;
            attempts = job.attempts()?;
            if job.lease_until.is_some() { State::Processing } else { State::Pending }
        }
        DONE => State::Done {
            finished_at: finished_at()?,
            image: image_key.as_deref().map(read_key).transpose()?,
            size_bytes: bytes
                .and_then(|bytes| u64::try_from(bytes).ok())
                .ok_or(Error::Inconsistent("a picture without its size"))?,
            execution_ms: read_count(execution_ms.ok_or(Error::Inconsistent("a picture without its time"))?)?,
            facts: facts()?,
        },
        FAILED => State::Failed {
            finished_at: finished_at()?,
            failure: Failure {
                reason: error_code
                    .as_deref()
                    .and_then(FailureReason::parse)
                    .ok_or(Error::Inconsistent("an unknown reason of failure"))?,
                message: error_message.unwrap_or_default(),
            },
            facts: facts()?,
        },
        _ => return Err(Error::Inconsistent("an unknown status")),
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

/// A grab as it stood in the moment it was created, whatever became of it since.
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
    serde_json::to_string(spec).map_err(|_| Error::Inconsistent("a spec that is not JSON"))
}

pub(crate) fn read_spec(text: &str) -> Result<CaptureSpec> {
    serde_json::from_str(text).map_err(|_| Error::Inconsistent("a spec that cannot be read"))
}

pub(crate) fn write_facts(facts: &Facts) -> Result<String> {
    serde_json::to_string(facts).map_err(|_| Error::Inconsistent("facts that are not JSON"))
}

fn read_facts(text: &str) -> Result<Facts> {
    serde_json::from_str(text).map_err(|_| Error::Inconsistent("facts that cannot be read"))
}

pub(crate) fn read_key(text: &str) -> Result<ImageKey> {
    ImageKey::parse(text).ok_or(Error::Inconsistent("an image key of another shape"))
}
