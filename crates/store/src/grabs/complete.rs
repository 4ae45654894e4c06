//! Completes a leased grab with an image and spends its credit.

use std::collections::{HashMap, HashSet};

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Grab, ImageKey, RenderMetadata};
use grabd_domain::ids::{GrabId, LeaseToken, TeamId};
use sea_orm::sea_query::{CaseStatement, Expr, ExprTrait, IntoIden, TableRef, ValueTuple};
use sea_orm::{ColumnTrait, Condition, EntityTrait, PaginatorTrait, QueryFilter, QueryTrait};
use uuid::Uuid;

use crate::areas::Grabs;
use crate::codes::{DONE, OPEN, milliseconds, size};
use crate::credits::held::spend_credits;
use crate::database::{BatchedTransaction, Transaction, Tx};
use crate::entities::{grab, job};
use crate::grabs::files::add_files;
use crate::grabs::images::schedule_deletion;
use crate::grabs::stored_bytes::{ended_bytes, lock_stored_bytes, request_bytes};
use crate::webhooks::enqueue::enqueue_deliveries;
use crate::{Error, Result};

/// A finished image.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The grab.
    pub grab: GrabId,
    /// Token of the lease.
    pub token: LeaseToken,
    /// Key the image was stored under.
    pub upload_key: ImageKey,
    /// Size of the image file.
    pub size_bytes: u64,
    /// Duration of the render.
    pub execution_ms: u32,
    /// Metadata of the render.
    pub metadata: RenderMetadata,
    /// Current time.
    pub now: Timestamp,
}

/// A grab that this call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedGrab {
    /// Its final state.
    pub grab: Grab,
}

impl Grabs<'_> {
    /// Ends a grab with an image and spends its credit. `None` when the lease is no longer held.
    ///
    /// Without the lease nothing changes and the image is scheduled for deletion, unless the grab already ended with
    /// it. So a retry after a lost response is harmless.
    ///
    /// # Errors
    /// Database errors only. After [`Error::Unavailable`] the change may have been committed; retry it.
    pub async fn complete(self, completion: Completion) -> Result<Option<EndedGrab>> {
        self.store.database.write_batched(completion).await
    }
}

impl Transaction for Completion {
    type Outcome = Option<EndedGrab>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<EndedGrab>> {
        let ended = complete_all(tx, &[self]).await?;
        ended.into_iter().next().ok_or(Error::Inconsistent("completion without an outcome"))
    }
}

impl BatchedTransaction for Completion {
    fn key(&self) -> Uuid {
        self.grab.0
    }

    async fn apply_batch(changes: &[&Self], tx: &Tx) -> Result<Vec<Option<Option<EndedGrab>>>> {
        // A completion that is repeated is made after the first one.
        let mut grabs = HashSet::new();
        let is_first: Vec<_> = changes.iter().map(|completion| grabs.insert(completion.grab)).collect();
        let first: Vec<_> =
            changes.iter().zip(&is_first).filter_map(|(of, is_first)| is_first.then_some(*of)).collect();
        let mut ended = complete_all(tx, &first).await?.into_iter();
        Ok(is_first.into_iter().map(|is_first| if is_first { ended.next() } else { None }).collect())
    }
}

/// Completes different grabs. The outcomes have the order of the completions.
async fn complete_all(tx: &Tx, completions: &[&Completion]) -> Result<Vec<Option<EndedGrab>>> {
    let jobs = take_jobs(tx, completions).await?;
    let mut taken = Vec::new();
    for &completion in completions {
        match jobs.get(&completion.grab) {
            Some(job) => taken.push((completion, job)),
            None => completion.discard_stale_image(tx).await?,
        }
    }
    taken.sort_unstable_by_key(|(_, job)| job.team_id);
    let mut ended = finish_all(tx, &taken).await?;
    let spent: Vec<_> = taken.iter().map(|(completion, job)| (*job, completion.now)).collect();
    spend_credits(tx, &spent).await?;
    enqueue_deliveries(tx, taken.iter().filter_map(|(of, _)| Some((ended.get(&of.grab)?, of.now)))).await?;
    Ok(completions.iter().map(|completion| Some(EndedGrab { grab: ended.remove(&completion.grab)? })).collect())
}

/// The fence: every transition to an end state deletes the job, and exactly one of them finds it.
async fn take_jobs(tx: &Tx, completions: &[&Completion]) -> Result<HashMap<GrabId, job::Model>> {
    let leases = completions.iter().fold(Condition::any(), |leases, completion| {
        let grab = job::Column::GrabId.eq(completion.grab.0);
        leases.add(grab.and(job::Column::LeaseToken.eq(completion.token.0)))
    });
    let taken = job::Entity::delete_many().filter(leases).exec_with_returning(tx).await?;
    Ok(taken.into_iter().map(|job| (GrabId(job.grab_id), job)).collect())
}

/// Writes the results of grabs whose jobs were deleted, in the order of their teams.
async fn finish_all(tx: &Tx, taken: &[(&Completion, &job::Model)]) -> Result<HashMap<GrabId, Grab>> {
    if taken.is_empty() {
        return Ok(HashMap::new());
    }
    let results = taken.iter().map(|(completion, job)| completion.result(job)).collect::<Result<_>>()?;
    let result = |column| Expr::col((result::ROW, column));
    // If the grab was deleted during the render, the credit is spent and the image is deleted at once.
    let image_key: Expr = CaseStatement::new()
        .case(grab::Column::DeletedAt.into_expr().is_null(), result(result::IMAGE_KEY))
        .finally(Expr::value(Option::<String>::None))
        .into();
    let mut update = grab::Entity::update_many()
        .col_expr(grab::Column::Status, Expr::value(DONE))
        .col_expr(grab::Column::FinishedAt, result(result::FINISHED_AT))
        .col_expr(grab::Column::ImageKey, image_key)
        .col_expr(grab::Column::Bytes, result(result::BYTES))
        .col_expr(grab::Column::ExecutionMs, result(result::EXECUTION_MS))
        .col_expr(grab::Column::Facts, result(result::FACTS))
        .col_expr(grab::Column::Attempts, result(result::ATTEMPTS))
        .col_expr(grab::Column::StoredBytes, request_bytes().add(result(result::STORED_BYTES)))
        .filter(grab::Column::Id.into_expr().eq(result(result::GRAB)))
        .filter(grab::has_status(OPEN));
    QueryTrait::query(&mut update).from(TableRef::ValuesList(results, result::ROW.into_iden()));
    lock_stored_bytes(tx, taken.iter().map(|(_, job)| job.team_id)).await?;
    let rows = update.exec_with_returning(tx).await?;
    let mut rows: HashMap<_, _> = rows.into_iter().map(|row| (GrabId(row.id), row)).collect();
    let mut ended = HashMap::new();
    for (completion, _) in taken {
        let row = rows.remove(&completion.grab).ok_or(Error::Inconsistent("job without an open grab"))?;
        match row.image_key.is_some() {
            true => {
                let owner = (completion.grab, TeamId(row.team_id), Environment::Live);
                add_files(tx, owner, &completion.metadata).await?;
            }
            false => schedule_deletion(tx, completion.upload_key.as_str(), completion.now).await?,
        }
        ended.insert(completion.grab, grab::read(row, None)?);
    }
    Ok(ended)
}

/// A row of results in the statement, and its columns, as both databases call them.
mod result {
    pub(super) const ROW: &str = "result";
    pub(super) const GRAB: &str = "column1";
    pub(super) const FINISHED_AT: &str = "column2";
    pub(super) const IMAGE_KEY: &str = "column3";
    pub(super) const BYTES: &str = "column4";
    pub(super) const EXECUTION_MS: &str = "column5";
    pub(super) const FACTS: &str = "column6";
    pub(super) const ATTEMPTS: &str = "column7";
    pub(super) const STORED_BYTES: &str = "column8";
}

impl Completion {
    /// The row of results, in the order of the columns above.
    fn result(&self, job: &job::Model) -> Result<ValueTuple> {
        if job.upload_key()?.as_ref() != Some(&self.upload_key) {
            return Err(Error::Inconsistent("image key differs from the lease's upload key"));
        }
        let facts = grab::write_facts(&self.metadata)?;
        let stored_bytes = ended_bytes(&facts, "", &self.metadata);
        Ok(ValueTuple::Many(vec![
            self.grab.0.into(),
            self.now.as_ms().into(),
            self.upload_key.as_str().into(),
            size(self.size_bytes).into(),
            milliseconds(self.execution_ms).into(),
            facts.into(),
            job.attempt.into(),
            stored_bytes.into(),
        ]))
    }

    async fn discard_stale_image(&self, tx: &Tx) -> Result<()> {
        let references =
            grab::Entity::find().filter(grab::Column::ImageKey.eq(self.upload_key.as_str())).count(tx).await?;
        if references == 0 { schedule_deletion(tx, self.upload_key.as_str(), self.now).await } else { Ok(()) }
    }
}
