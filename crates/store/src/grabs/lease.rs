//! Leases the jobs at the head of the queue to free slots.

use std::collections::HashMap;

use grabd_domain::Timestamp;
use grabd_domain::admission::Payer;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::grabs::{Class, ImageKey};
use grabd_domain::ids::{GrabId, LeaseToken, SessionId, TeamId};
use sea_orm::sea_query::{Expr, ExprTrait, LockBehavior, LockType};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, JoinType, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use uuid::Uuid;

use crate::areas::Grabs;
use crate::database::{Transaction, Tx};
use crate::entities::{grab, job, job_secrets};
use crate::padded::padded;
use crate::set_aside::{MaybeReadable, split_readable};
use crate::{Error, Result, codes};

/// A request for jobs for free slots.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// The queue.
    pub class: Class,
    /// Session of the renderer.
    pub session: SessionId,
    /// Current time.
    pub now: Timestamp,
    /// For each slot, a lease token and random bits for the upload key.
    pub slots: Vec<(LeaseToken, u128)>,
    /// Only jobs of payers that have paid.
    pub only_paid: bool,
}

/// A leased job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedJob {
    /// The grab to render.
    pub grab: GrabId,
    /// The owning team.
    pub team: TeamId,
    /// The payer that the slot is counted for.
    pub payer: Payer,
    /// Synchronous or asynchronous.
    pub class: Class,
    /// Token of the lease.
    pub token: LeaseToken,
    /// What to capture.
    pub spec: CaptureSpec,
    /// Its secret options, encrypted.
    pub secrets: Option<Vec<u8>>,
    /// When the grab fails unless it has ended.
    pub deadline_at: Timestamp,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Key to store the image under.
    pub upload_key: ImageKey,
}

impl Grabs<'_> {
    /// Leases up to one job per slot, lowest rank first. Jobs that cannot be read are set aside.
    ///
    /// A lease expires after the render budget and its margin.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn lease(self, request: LeaseRequest) -> Result<Vec<LeasedJob>> {
        if request.slots.is_empty() {
            return Ok(Vec::new());
        }
        let (now, set_aside) = (request.now, self.store.set_aside.keys(WORK, request.now));
        let Leased { jobs, unreadable } = self.store.database.write(LeaseJobs { request, set_aside }).await?;
        for (grab, error) in unreadable {
            self.store.set_aside.add(WORK, &grab, &error, now);
        }
        Ok(jobs)
    }
}

const WORK: &str = "queue";

struct LeaseJobs {
    request: LeaseRequest,
    /// Jobs that are left out.
    set_aside: Vec<Uuid>,
}

/// The outcome of a lease request.
struct Leased {
    jobs: Vec<LeasedJob>,
    /// Jobs that cannot be read. They end at their deadline.
    unreadable: Vec<(Uuid, Error)>,
}

impl Transaction for LeaseJobs {
    type Outcome = Leased;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Leased> {
        let request = &self.request;
        // The specs are fetched separately: with a join under a parameterized LIMIT, the planner assumes that a tenth
        // of the table is requested.
        let rows = job::Entity::find()
            .filter(job::is_leasable(request.class, request.now))
            .apply_if(request.only_paid.then_some(true), |jobs, paid| jobs.filter(job::Column::Paid.eq(paid)))
            .filter(job::Column::GrabId.is_not_in(padded(self.set_aside.iter().copied())))
            .order_by_asc(job::Column::Vt)
            .order_by_asc(job::Column::GrabId)
            .limit(u64::try_from(request.slots.len()).unwrap_or(u64::MAX))
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .into_model::<MaybeReadable<Uuid, job::Model>>()
            .all(tx)
            .await?;
        let (rows, mut unreadable) = split_readable(rows);
        let mut details = details_of(tx, &rows).await?;
        let mut slots = request.slots.iter();
        let mut jobs = Vec::with_capacity(rows.len());
        for row in rows {
            let read = details.remove(&row.grab_id).unwrap_or(Err(Error::Inconsistent("job without a grab")));
            match read.and_then(|read| Ok((read, codes::read_class(row.class)?, row.attempts()?))) {
                Ok(((spec, secrets), class, attempts)) => {
                    let Some((token, random)) = slots.next() else { break };
                    let upload_key = ImageKey::new(*random, spec.format.as_str());
                    request.take(tx, &row, *token, &upload_key, &spec).await?;
                    jobs.push(LeasedJob {
                        grab: GrabId(row.grab_id),
                        team: TeamId(row.team_id),
                        payer: row.payer(),
                        class,
                        token: *token,
                        spec,
                        deadline_at: Timestamp::from_ms(row.deadline_at),
                        attempt: attempts + 1,
                        secrets,
                        upload_key,
                    });
                }
                Err(error) => unreadable.push((row.grab_id, error)),
            }
        }
        Ok(Leased { jobs, unreadable })
    }
}

impl LeaseRequest {
    async fn take(
        &self,
        tx: &Tx,
        job: &job::Model,
        token: LeaseToken,
        upload_key: &ImageKey,
        spec: &CaptureSpec,
    ) -> Result<()> {
        let budget = self.now + spec.render_budget();
        let until = Timestamp::from_ms(job.deadline_at).min(budget) + spec.lease_margin();
        job::Entity::update_many()
            .col_expr(job::Column::Attempt, Expr::col(job::Column::Attempt).add(1i16))
            .col_expr(job::Column::LeaseToken, Expr::value(token.0))
            .col_expr(job::Column::LeaseUntil, Expr::value(until.as_ms()))
            .col_expr(job::Column::SessionId, Expr::value(self.session.0))
            .col_expr(job::Column::UploadKey, Expr::value(upload_key.as_str()))
            .filter(job::Column::GrabId.eq(job.grab_id))
            .exec(tx)
            .await?;
        Ok(())
    }
}

/// What to capture, and the secret options of those that have some.
async fn details_of(tx: &Tx, jobs: &[job::Model]) -> Result<HashMap<Uuid, Result<(CaptureSpec, Option<Vec<u8>>)>>> {
    if jobs.is_empty() {
        return Ok(HashMap::new());
    }
    let secrets =
        grab::Entity::belongs_to(job_secrets::Entity).from(grab::Column::Id).to(job_secrets::Column::GrabId).into();
    let rows = grab::Entity::find()
        .select_only()
        .columns([grab::Column::Id, grab::Column::Request])
        .column(job_secrets::Column::Secrets)
        .join(JoinType::LeftJoin, secrets)
        .filter(grab::Column::Id.is_in(padded(jobs.iter().map(|job| job.grab_id))))
        .into_model::<MaybeReadable<Uuid, Details>>()
        .all(tx)
        .await?;
    let (readable, unreadable) = split_readable(rows);
    let details = readable.into_iter().map(|row| (row.id, row.read()));
    Ok(details.chain(unreadable.into_iter().map(|(id, error)| (id, Err(error)))).collect())
}

#[derive(FromQueryResult)]
struct Details {
    id: Uuid,
    request: String,
    secrets: Option<Vec<u8>>,
}

impl Details {
    fn read(self) -> Result<(CaptureSpec, Option<Vec<u8>>)> {
        Ok((grab::read_spec(&self.request)?, self.secrets))
    }
}
