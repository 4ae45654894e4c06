//! T2: free slots take the jobs at the head of the queue.

use std::collections::HashMap;

use grabd_domain::Timestamp;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::grabs::{Class, ImageKey};
use grabd_domain::ids::{GrabId, LeaseToken, SessionId, TeamId};
use grabd_domain::limits::{LEASE_MARGIN, RENDER_BUDGET};
use sea_orm::sea_query::{Expr, ExprTrait, LockBehavior, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::database::{Transaction, Tx};
use crate::entities::{grab, job};
use crate::queries::padded;
use crate::{Error, Result, Store, codes};

/// Free slots that ask for work.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Of which queue.
    pub class: Class,
    /// Whose slots they are.
    pub session: SessionId,
    /// When.
    pub now: Timestamp,
    /// For each slot the token of its lease, and random bits for its upload key.
    pub slots: Vec<(LeaseToken, u128)>,
}

/// One job for one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// The grab to render.
    pub grab: GrabId,
    /// Whose it is.
    pub team: TeamId,
    /// How its caller waits.
    pub class: Class,
    /// The right to end this attempt.
    pub token: LeaseToken,
    /// What to capture.
    pub spec: CaptureSpec,
    /// When the grab fails, if it has not ended by then.
    pub deadline_at: Timestamp,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Where its picture goes.
    pub upload_key: ImageKey,
}

impl Store {
    /// Leases as many jobs as there are slots, or as many as wait, the lowest rank first.
    ///
    /// A lease ends by itself when the render's time and the margin for its upload are over.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn lease(&self, ask: Ask) -> Result<Vec<Leased>> {
        if ask.slots.is_empty() {
            return Ok(Vec::new());
        }
        self.database.write(ask).await
    }
}

impl Transaction for Ask {
    type Outcome = Vec<Leased>;

    async fn apply(&self, tx: &Tx) -> Result<Vec<Leased>> {
        // Job by job, with what they ask for fetched afterwards: a join under a LIMIT that the planner cannot see is
        // planned as if a tenth of the table were wanted.
        let jobs = job::Entity::find()
            .filter(job::is_leasable(self.class, self.now))
            .order_by_asc(job::Column::Vt)
            .order_by_asc(job::Column::GrabId)
            .limit(u64::try_from(self.slots.len()).unwrap_or(u64::MAX))
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .all(tx)
            .await?;
        let mut specs = specs_of(tx, &jobs).await?;
        let mut leased = Vec::with_capacity(jobs.len());
        for (job, (token, random)) in jobs.into_iter().zip(&self.slots) {
            let spec = specs.remove(&job.grab_id).ok_or(Error::Inconsistent("a job without a grab"))?;
            let upload_key = ImageKey::new(*random, spec.format.as_str());
            self.take(tx, &job, *token, &upload_key).await?;
            leased.push(Leased {
                grab: GrabId(job.grab_id),
                team: TeamId(job.team_id),
                class: codes::read_class(job.class)?,
                token: *token,
                spec,
                deadline_at: Timestamp::from_ms(job.deadline_at),
                attempt: job.attempts()? + 1,
                upload_key,
            });
        }
        Ok(leased)
    }
}

impl Ask {
    async fn take(&self, tx: &Tx, job: &job::Model, token: LeaseToken, upload_key: &ImageKey) -> Result<()> {
        let until = Timestamp::from_ms(job.deadline_at).min(self.now + RENDER_BUDGET) + LEASE_MARGIN;
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

async fn specs_of(tx: &Tx, jobs: &[job::Model]) -> Result<HashMap<Uuid, CaptureSpec>> {
    if jobs.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(Uuid, String)> = grab::Entity::find()
        .select_only()
        .columns([grab::Column::Id, grab::Column::Request])
        .filter(grab::Column::Id.is_in(padded(jobs.iter().map(|job| job.grab_id))))
        .into_tuple()
        .all(tx)
        .await?;
    rows.into_iter().map(|(id, request)| Ok((id, grab::read_spec(&request)?))).collect()
}
