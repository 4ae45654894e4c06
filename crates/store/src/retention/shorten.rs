//! Shortens the stored options of grabs that ended a day ago, and counts the bytes of grabs of earlier versions.
//!
//! All grabs are visited once, in the order of their ids, which is that of their creation. The position is stored, so that a
//! restart continues there. After the last one the work waits for the grabs that become old enough.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::capture::LONG_OPTION_BYTES;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{CaseStatement, Expr, ExprTrait, Func, LockType, OnConflict};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::Result;
use crate::areas::Retention;
use crate::codes::OPEN;
use crate::database::{Transaction, Tx};
use crate::entities::{grab, row_progress};
use crate::grabs::stored_bytes::{ROW, length, lock_stored_bytes, request_bytes};
use crate::padded::padded;
use crate::set_aside::MaybeReadable;

const NAME: &str = "grab_requests";
const WORK: &str = "requests";
/// The visit begins again after this time: a clock that was set back, or a process of an earlier version, may have added grabs
/// behind the position.
const AGAIN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How far the visit has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestProgress {
    /// The last grab that was visited.
    position: Option<Uuid>,
    began_at: Timestamp,
}

/// What visiting some grabs did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visited {
    /// How far the visit has come.
    pub progress: RequestProgress,
    /// Number of grabs that were visited.
    pub grabs: u64,
    /// Number of grabs whose options were shortened.
    pub shortened: u64,
}

#[derive(FromQueryResult)]
struct Visit {
    id: Uuid,
    team_id: Uuid,
    /// Only if it may have long options.
    request: Option<String>,
    stored_bytes: Option<i64>,
}

struct ShortenRequests {
    /// Grabs, their teams, and the options that replace theirs.
    shortened: Vec<(Uuid, Uuid, String)>,
    /// Grabs that are not counted yet, and their teams.
    uncounted: Vec<(Uuid, Uuid)>,
}

struct StoreProgress(RequestProgress);

impl Retention<'_> {
    /// How far the visit of all grabs has come.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn request_progress(self, now: Timestamp) -> Result<RequestProgress> {
        let row = row_progress::Entity::find_by_id(NAME).one(self.store.database.reader()).await?;
        let progress =
            row.map(|row| RequestProgress { position: row.position, began_at: Timestamp::from_ms(row.began_at) });
        let start = RequestProgress { position: None, began_at: now };
        Ok(progress.filter(|progress| now.since(progress.began_at) < AGAIN).unwrap_or(start))
    }

    /// Stores how far the visit has come.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn store_request_progress(self, progress: RequestProgress) -> Result<()> {
        self.store.database.write(StoreProgress(progress)).await
    }

    /// Visits up to `limit` grabs that were created before a time by which they have ended. Their long options are replaced
    /// by digests, and those of earlier versions are counted. Rows that cannot be read are set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn shorten_requests(
        self,
        progress: RequestProgress,
        created_before: Timestamp,
        now: Timestamp,
        limit: u32,
    ) -> Result<Visited> {
        let may_be_long = CaseStatement::new()
            .case(
                request_bytes().gt(i64::try_from(LONG_OPTION_BYTES).unwrap_or(i64::MAX)),
                grab::Column::Request.into_expr(),
            )
            .finally(Expr::value(Option::<String>::None));
        let rows = grab::Entity::find()
            .select_only()
            .columns([grab::Column::Id, grab::Column::TeamId, grab::Column::StoredBytes])
            .expr_as(may_be_long, "request")
            .filter(grab::Column::Id.gt(progress.position.unwrap_or_default()))
            // Ids begin with the time.
            .filter(grab::Column::Id.lt(first_id(created_before)))
            .order_by_asc(grab::Column::Id)
            .limit(u64::from(limit))
            .into_model::<MaybeReadable<Uuid, Visit>>()
            .all(self.store.database.reader())
            .await?;
        let grabs = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        let position = rows.last().and_then(|row| row.key.as_ref().ok().copied());
        let rows = self.store.set_aside.readable(WORK, rows, now);
        let mut change = ShortenRequests { shortened: Vec::new(), uncounted: Vec::new() };
        for Visit { id, team_id, request, stored_bytes } in rows {
            if let Some(request) = request {
                let spec = self.store.set_aside.unless_row_fails(WORK, &id, now, grab::read_spec(&request))?;
                if let Some(short) = spec.and_then(|spec| spec.without_long_options(digest)) {
                    change.shortened.push((id, team_id, grab::write_spec(&short)?));
                }
            }
            if stored_bytes.is_none() {
                change.uncounted.push((id, team_id));
            }
        }
        let shortened = u64::try_from(change.shortened.len()).unwrap_or(u64::MAX);
        if shortened > 0 || !change.uncounted.is_empty() {
            self.store.database.write(change).await?;
        }
        let progress = RequestProgress { position: position.or(progress.position), ..progress };
        Ok(Visited { progress, grabs, shortened })
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first id of grabs that are created at this time or later.
fn first_id(at: Timestamp) -> Uuid {
    let ms = u128::try_from(at.as_ms()).unwrap_or(0);
    Uuid::from_u128(ms << 80)
}

impl Transaction for ShortenRequests {
    type Outcome = ();
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let shortened = self.shortened.iter().map(|(grab, team, _)| (*grab, *team));
        let (grabs, teams): (Vec<_>, Vec<_>) = shortened.chain(self.uncounted.iter().copied()).unzip();
        // As everywhere: the grabs before the numbers of their teams.
        grab::Entity::find()
            .select_only()
            .column(grab::Column::Id)
            .filter(grab::Column::Id.is_in(padded(grabs)))
            .order_by_asc(grab::Column::Id)
            .lock(LockType::Update)
            .into_tuple::<Uuid>()
            .all(tx)
            .await?;
        lock_stored_bytes(tx, teams.into_iter()).await?;
        if !self.uncounted.is_empty() {
            let text =
                |column| Expr::from(Func::cust("octet_length").arg(Expr::col((grab::Entity, column)))).if_null(0);
            grab::Entity::update_many()
                .col_expr(
                    grab::Column::StoredBytes,
                    request_bytes().add(text(grab::Column::Facts)).add(text(grab::Column::ErrorMessage)).add(ROW),
                )
                .filter(grab::Column::Id.is_in(padded(self.uncounted.iter().map(|(grab, _)| *grab))))
                .filter(grab::Column::StoredBytes.is_null())
                .filter(grab::Column::Status.ne(OPEN))
                .exec(tx)
                .await?;
        }
        for (grab, _, request) in &self.shortened {
            let shorter = request_bytes().sub(length(request));
            grab::Entity::update_many()
                .col_expr(grab::Column::StoredBytes, Expr::col(grab::Column::StoredBytes).sub(shorter))
                .col_expr(grab::Column::Request, Expr::value(request.as_str()))
                .filter(grab::Column::Id.eq(*grab))
                .filter(grab::Column::Status.ne(OPEN))
                .exec(tx)
                .await?;
        }
        Ok(())
    }
}

impl Transaction for StoreProgress {
    type Outcome = ();
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let RequestProgress { position, began_at } = self.0;
        let row = row_progress::ActiveModel {
            name: Set(NAME.to_owned()),
            position: Set(position),
            began_at: Set(began_at.as_ms()),
        };
        let update = OnConflict::column(row_progress::Column::Name)
            .update_columns([row_progress::Column::Position, row_progress::Column::BeganAt])
            .to_owned();
        row_progress::Entity::insert(row).on_conflict(update).exec_without_returning(tx).await?;
        Ok(())
    }
}
