//! Deletes grabs and images after the operator's retention, oldest first and in batches.
//!
//! If all teams have the same retention, a batch is the oldest grabs of the environment. If some have their own, the
//! caller reads ended grabs in the order of their ends, and names those that are due.
//!
//! Of a purged grab remain its ledger entry, and its share of the usage counts in `grab_tally`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use grabd_domain::accounts::REVOKED_KEY_LIFE;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrabId, TeamId};
use grabd_domain::{Day, Timestamp};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, LockBehavior, LockType, OnConflict};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select};
use uuid::Uuid;

use crate::areas::Retention;
use crate::database::{Transaction, Tx};
use crate::entities::{api_key, grab, grab_tally, idem, image_gc, key_tally, purge_mark};
use crate::grabs::images::bulk_deletion;
use crate::grabs::stored_bytes::lock_stored_bytes;
use crate::padded::padded;
use crate::set_aside::{MaybeReadable, split_readable};
use crate::{Error, Result, codes};

/// How many days the usage counts look back: 30, the current one, and one for the difference of clocks.
const TALLY_DAYS: u16 = 32;
const WORK: &str = "retention";

/// The grabs that a purge may take, among those that ended early enough.
#[derive(Clone, Debug)]
enum Selection {
    /// Up to this many, oldest first.
    Oldest(u32),
    /// These.
    These(Vec<GrabId>),
}

/// Which ended grabs a purge is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgedGrabs {
    /// All of test keys.
    Test,
    /// All of live keys.
    Live,
    /// Those of live keys that failed.
    LiveFailed,
    /// Those of live keys whose image exists.
    LiveWithImage,
}

impl PurgedGrabs {
    const fn environment(self) -> Environment {
        match self {
            Self::Test => Environment::Test,
            Self::Live | Self::LiveFailed | Self::LiveWithImage => Environment::Live,
        }
    }
}

/// An ended grab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedGrabRef {
    /// Its id.
    pub id: GrabId,
    /// Its team.
    pub team: TeamId,
}

/// Ended grabs in the order of their ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedGrabs {
    /// The grabs.
    pub grabs: Vec<EndedGrabRef>,
    /// The end from which the next ones are read. They may include the last of these again.
    pub next: Timestamp,
    /// Whether there may be more.
    pub is_full: bool,
}

struct PurgeGrabs {
    grabs: PurgedGrabs,
    ended_before: Timestamp,
    now: Timestamp,
    selection: Selection,
    set_aside: Vec<Uuid>,
}

struct PurgeImages {
    ended_before: Timestamp,
    now: Timestamp,
    selection: Selection,
    set_aside: Vec<Uuid>,
}

struct PurgeRevokedKeys {
    now: Timestamp,
    limit: u32,
}

struct PurgeTallies {
    now: Timestamp,
    limit: u32,
}

/// What a purge did.
struct Purged {
    rows: u64,
    unreadable: Vec<(Uuid, Error)>,
}

impl Retention<'_> {
    /// Deletes up to `limit` of these grabs that ended before a time, and their images. Returns the number of deleted
    /// grabs. Rows that cannot be read are set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn purge_grabs(
        self,
        grabs: PurgedGrabs,
        ended_before: Timestamp,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64> {
        let set_aside = self.store.set_aside.keys(WORK, now);
        let purge = PurgeGrabs { grabs, ended_before, now, selection: Selection::Oldest(limit), set_aside };
        Ok(self.note_unreadable(&self.store.database.write(purge).await?, now))
    }

    /// The same for the grabs with these ids.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn purge_these_grabs(
        self,
        grabs: PurgedGrabs,
        ended_before: Timestamp,
        now: Timestamp,
        ids: Vec<GrabId>,
    ) -> Result<u64> {
        let set_aside = self.store.set_aside.keys(WORK, now);
        let purge = PurgeGrabs { grabs, ended_before, now, selection: Selection::These(ids), set_aside };
        Ok(self.note_unreadable(&self.store.database.write(purge).await?, now))
    }

    /// Deletes the images of up to `limit` live grabs that ended before a time, as on request: the grabs remain.
    /// Returns the number of deleted images. Rows that cannot be read are set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn purge_images(self, ended_before: Timestamp, now: Timestamp, limit: u32) -> Result<u64> {
        let set_aside = self.store.set_aside.keys(WORK, now);
        let purge = PurgeImages { ended_before, now, selection: Selection::Oldest(limit), set_aside };
        Ok(self.note_unreadable(&self.store.database.write(purge).await?, now))
    }

    /// The same for these grabs.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn purge_these_images(self, ended_before: Timestamp, now: Timestamp, grabs: Vec<GrabId>) -> Result<u64> {
        let set_aside = self.store.set_aside.keys(WORK, now);
        let purge = PurgeImages { ended_before, now, selection: Selection::These(grabs), set_aside };
        Ok(self.note_unreadable(&self.store.database.write(purge).await?, now))
    }

    /// Up to `limit` of these grabs, of all teams, whose ends are in a range, in the order of their ends. Unreadable rows
    /// are set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn ended_grabs(
        self,
        grabs: PurgedGrabs,
        ends: Range<Timestamp>,
        now: Timestamp,
        limit: u32,
    ) -> Result<EndedGrabs> {
        let set_aside = self.store.set_aside.keys(WORK, now);
        let rows = ended(grabs, ends.end, &set_aside)
            .filter(grab::Column::FinishedAt.gte(ends.start.as_ms()))
            .order_by_asc(grab::Column::FinishedAt)
            .limit(u64::from(limit))
            .into_model::<MaybeReadable<Uuid, EndedRow>>()
            .all(self.store.database.reader())
            .await?;
        let is_full = rows.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let rows = self.store.set_aside.readable(WORK, rows, now);
        let last = rows.last().map_or(ends.start, |row| Timestamp::from_ms(row.finished_at));
        // Grabs that all ended in the same millisecond must not be read again and again.
        let next = if is_full && last == ends.start { last + Duration::from_millis(1) } else { last };
        let grabs =
            rows.into_iter().map(|row| EndedGrabRef { id: GrabId(row.id), team: TeamId(row.team_id) }).collect();
        Ok(EndedGrabs { grabs, next, is_full })
    }

    /// Deletes up to `limit` numbers of purged grabs of each kind that no count includes any more, and returns how many.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_tallies(self, now: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeTallies { now, limit }).await
    }

    /// Deletes up to `limit` API keys of each kind that were revoked or expired a month ago, and returns how many.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_revoked_keys(self, now: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeRevokedKeys { now, limit }).await
    }

    fn note_unreadable(self, purged: &Purged, now: Timestamp) -> u64 {
        for (grab, error) in &purged.unreadable {
            self.store.set_aside.add(WORK, grab, error, now);
        }
        purged.rows
    }
}

#[derive(FromQueryResult)]
struct EndedRow {
    id: Uuid,
    team_id: Uuid,
    key_id: Option<Uuid>,
    status: i16,
    image_key: Option<String>,
    created_at: i64,
    finished_at: i64,
}

/// The grabs that ended before a time.
fn ended(grabs: PurgedGrabs, ended_before: Timestamp, set_aside: &[Uuid]) -> Select<grab::Entity> {
    grab::Entity::find()
        .select_only()
        .columns([
            grab::Column::Id,
            grab::Column::TeamId,
            grab::Column::KeyId,
            grab::Column::Status,
            grab::Column::ImageKey,
            grab::Column::CreatedAt,
            grab::Column::FinishedAt,
        ])
        // Literally the predicates of the partial indexes: the planner cannot match one with parameters.
        .filter(Expr::cust(match grabs {
            PurgedGrabs::Test => "env = 1",
            PurgedGrabs::Live => "env = 0",
            PurgedGrabs::LiveFailed => "status = 3 AND env = 0",
            PurgedGrabs::LiveWithImage => "env = 0 AND image_key IS NOT NULL",
        }))
        .filter(grab::Column::FinishedAt.lt(ended_before.as_ms()))
        .filter(grab::Column::Id.is_not_in(padded(set_aside.iter().copied())))
}

/// Locks the selected grabs. Those that are locked already are left for the next purge.
async fn lock_selected(
    tx: &Tx,
    ended: Select<grab::Entity>,
    selection: &Selection,
) -> Result<(Vec<EndedRow>, Vec<(Uuid, Error)>)> {
    let selected = match selection {
        Selection::Oldest(limit) => ended.order_by_asc(grab::Column::FinishedAt).limit(u64::from(*limit)),
        Selection::These(grabs) => ended.filter(grab::Column::Id.is_in(padded(grabs.iter().map(|grab| grab.0)))),
    };
    let rows = selected
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .into_model::<MaybeReadable<Uuid, EndedRow>>()
        .all(tx)
        .await?;
    Ok(split_readable(rows))
}

impl Transaction for PurgeGrabs {
    type Outcome = Purged;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Purged> {
        let Self { grabs, ended_before, now, selection, set_aside } = self;
        let environment = grabs.environment();
        let ended = ended(*grabs, *ended_before, set_aside);
        let (rows, unreadable) = lock_selected(tx, ended, selection).await?;
        let Some(last) = rows.iter().map(|row| row.finished_at).max() else {
            return Ok(Purged { rows: 0, unreadable });
        };
        self.tally(tx, &rows).await?;
        self.tally_keys(tx, &rows).await?;
        // Done grabs, whose entries in the ledger remain, are not missing because others have failed.
        if *grabs != PurgedGrabs::LiveFailed {
            self.mark(tx, last).await?;
        }
        // Placeholders have no files.
        if environment == Environment::Live {
            schedule(tx, &rows, *now).await?;
        }
        lock_stored_bytes(tx, rows.iter().map(|row| row.team_id)).await?;
        let ids = padded(rows.iter().map(|row| row.id));
        idem::Entity::delete_many().filter(idem::Column::GrabId.is_in(ids.clone())).exec(tx).await?;
        let deleted = grab::Entity::delete_many().filter(grab::Column::Id.is_in(ids)).exec(tx).await?;
        Ok(Purged { rows: deleted.rows_affected, unreadable })
    }
}

impl PurgeGrabs {
    /// Keeps the numbers that usage counts still include.
    async fn tally(&self, tx: &Tx, rows: &[EndedRow]) -> Result<()> {
        let first = Day::of(self.now).before(TALLY_DAYS);
        let mut numbers: BTreeMap<(Uuid, i16, Day), i64> = BTreeMap::new();
        for row in rows {
            let day = Day::of(Timestamp::from_ms(row.created_at));
            if day >= first {
                *numbers.entry((row.team_id, row.status, day)).or_default() += 1;
            }
        }
        if numbers.is_empty() {
            return Ok(());
        }
        let rows = numbers.into_iter().map(|((team, status, day), grabs)| grab_tally::ActiveModel {
            team_id: Set(team),
            env: Set(codes::environment(self.grabs.environment())),
            status: Set(status),
            day: Set(day.number()),
            grabs: Set(grabs),
        });
        let key =
            [grab_tally::Column::TeamId, grab_tally::Column::Env, grab_tally::Column::Status, grab_tally::Column::Day];
        let add = OnConflict::columns(key)
            .value(grab_tally::Column::Grabs, Expr::cust("grab_tally.grabs + excluded.grabs"))
            .to_owned();
        grab_tally::Entity::insert_many(rows).on_conflict(add).exec_without_returning(tx).await?;
        Ok(())
    }

    /// The same for the usage of keys.
    async fn tally_keys(&self, tx: &Tx, rows: &[EndedRow]) -> Result<()> {
        let first = Day::of(self.now).before(TALLY_DAYS);
        let mut numbers: BTreeMap<(Uuid, Day), (i64, i64)> = BTreeMap::new();
        for row in rows {
            let day = Day::of(Timestamp::from_ms(row.created_at));
            if let Some(key) = row.key_id.filter(|_| day >= first) {
                let (grabs, done) = numbers.entry((key, day)).or_default();
                *grabs += 1;
                *done += i64::from(row.status == codes::DONE);
            }
        }
        if numbers.is_empty() {
            return Ok(());
        }
        let rows = numbers.into_iter().map(|((key, day), (grabs, done))| key_tally::ActiveModel {
            key_id: Set(key),
            day: Set(day.number()),
            grabs: Set(grabs),
            done: Set(done),
        });
        let add = OnConflict::columns([key_tally::Column::KeyId, key_tally::Column::Day])
            .value(key_tally::Column::Grabs, Expr::cust("key_tally.grabs + excluded.grabs"))
            .value(key_tally::Column::Done, Expr::cust("key_tally.done + excluded.done"))
            .to_owned();
        key_tally::Entity::insert_many(rows).on_conflict(add).exec_without_returning(tx).await?;
        Ok(())
    }

    /// Records up to when grabs may be missing.
    async fn mark(&self, tx: &Tx, finished_until: i64) -> Result<()> {
        let row = purge_mark::ActiveModel {
            env: Set(codes::environment(self.grabs.environment())),
            finished_until: Set(finished_until),
        };
        let later = "CASE WHEN excluded.finished_until > purge_mark.finished_until \
            THEN excluded.finished_until ELSE purge_mark.finished_until END";
        let raise = OnConflict::column(purge_mark::Column::Env)
            .value(purge_mark::Column::FinishedUntil, Expr::cust(later))
            .to_owned();
        purge_mark::Entity::insert(row).on_conflict(raise).exec_without_returning(tx).await?;
        Ok(())
    }
}

impl Transaction for PurgeImages {
    type Outcome = Purged;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Purged> {
        let Self { ended_before, now, selection, set_aside } = self;
        let ended = ended(PurgedGrabs::LiveWithImage, *ended_before, set_aside);
        let (rows, unreadable) = lock_selected(tx, ended, selection).await?;
        if rows.is_empty() {
            return Ok(Purged { rows: 0, unreadable });
        }
        schedule(tx, &rows, *now).await?;
        lock_stored_bytes(tx, rows.iter().map(|row| row.team_id)).await?;
        let ids = padded(rows.iter().map(|row| row.id));
        // As a deletion on request does: a repeated create would return a grab without its image.
        idem::Entity::delete_many().filter(idem::Column::GrabId.is_in(ids.clone())).exec(tx).await?;
        let updated = grab::Entity::update_many()
            .col_expr(grab::Column::DeletedAt, Expr::value(now.as_ms()))
            .col_expr(grab::Column::ImageKey, Expr::value(Option::<String>::None))
            .filter(grab::Column::Id.is_in(ids))
            .exec(tx)
            .await?;
        Ok(Purged { rows: updated.rows_affected, unreadable })
    }
}

/// Schedules the files of the grabs for deletion.
async fn schedule(tx: &Tx, rows: &[EndedRow], now: Timestamp) -> Result<()> {
    let keys = rows.iter().filter_map(|row| row.image_key.as_ref());
    let scheduled: Vec<_> = keys.map(|key| bulk_deletion(key.clone(), now)).collect();
    if !scheduled.is_empty() {
        let insert = image_gc::Entity::insert_many(scheduled);
        insert.on_conflict_do_nothing_on([image_gc::Column::Key]).exec_without_returning(tx).await?;
    }
    Ok(())
}

impl Transaction for PurgeTallies {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let first = Day::of(self.now).before(TALLY_DAYS).number();
        let old: Vec<(Uuid, i16, i16, i64)> = grab_tally::Entity::find()
            .select_only()
            .columns([
                grab_tally::Column::TeamId,
                grab_tally::Column::Env,
                grab_tally::Column::Status,
                grab_tally::Column::Day,
            ])
            .filter(grab_tally::Column::Day.lt(first))
            .order_by_asc(grab_tally::Column::Day)
            .limit(u64::from(self.limit))
            .into_tuple()
            .all(tx)
            .await?;
        let deleted = u64::try_from(old.len()).unwrap_or(u64::MAX);
        for key in old {
            grab_tally::Entity::delete_by_id(key).exec(tx).await?;
        }
        let old: Vec<(Uuid, i64)> = key_tally::Entity::find()
            .select_only()
            .columns([key_tally::Column::KeyId, key_tally::Column::Day])
            .filter(key_tally::Column::Day.lt(first))
            .order_by_asc(key_tally::Column::Day)
            .limit(u64::from(self.limit))
            .into_tuple()
            .all(tx)
            .await?;
        let deleted = deleted.saturating_add(u64::try_from(old.len()).unwrap_or(u64::MAX));
        for key in old {
            key_tally::Entity::delete_by_id(key).exec(tx).await?;
        }
        Ok(deleted)
    }
}

impl Transaction for PurgeRevokedKeys {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let mut deleted = 0;
        for ended in [api_key::Column::RevokedAt, api_key::Column::ExpiresAt] {
            let old = api_key::Entity::find()
                .select_only()
                .column(api_key::Column::Id)
                .filter(ended.lte((self.now - REVOKED_KEY_LIFE).as_ms()))
                .order_by_asc(ended)
                .limit(u64::from(self.limit))
                .into_query();
            let purged = api_key::Entity::delete_many().filter(api_key::Column::Id.in_subquery(old)).exec(tx).await?;
            deleted += purged.rows_affected;
        }
        Ok(deleted)
    }
}
