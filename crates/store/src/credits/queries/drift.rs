//! Consistency checks of credits, ledger, jobs and images. Every finding is a bug.

use grabd_domain::ids::{GrabId, LotId, TeamId};
use sea_orm::{ConnectionTrait, QueryResult, Statement};

use crate::areas::Credits;
use crate::database::Tx;
use crate::{Kind, Result};

/// A violated invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// A lot's remaining credits differ from the sum of its ledger entries.
    Remaining {
        /// The lot.
        lot: LotId,
        /// Its remaining credits.
        remaining: i64,
        /// The sum of its ledger entries.
        ledger: i64,
    },
    /// A lot has a negative number of credits, or holds more than it has.
    Bounds {
        /// The lot.
        lot: LotId,
        /// Its remaining credits.
        remaining: i64,
        /// Its held credits.
        held: i64,
    },
    /// A lot's held credits differ from its number of open grabs. A missing lot counts as holding none.
    Held {
        /// The lot.
        lot: LotId,
        /// Its held credits.
        held: i64,
        /// Number of its open grabs.
        jobs: i64,
    },
    /// The sum of a team's ledger entries differs from the remaining credits of its lots.
    Balance {
        /// The team.
        team: TeamId,
        /// Remaining credits of its lots.
        remaining: i64,
        /// The sum of its ledger entries.
        ledger: i64,
    },
    /// A trigger that makes the ledger append-only is missing or disabled.
    AppendOnlyDisabled,
    /// A live grab is done, but no credit was spent for it.
    NotSpent(GrabId),
    /// More than one credit was spent for a grab.
    SpentTwice(GrabId),
    /// A credit was spent for a grab that is not a done live grab, and was neither purged nor of a deleted team.
    SpentWithoutImage(GrabId),
    /// An open grab has no job, so it would never end.
    JobMissing(GrabId),
    /// A job's grab has ended or does not exist.
    StaleJob(GrabId),
    /// The recorded size of a team's images and of their attachments differs from the sum of their sizes.
    StoredBytes {
        /// The team.
        team: TeamId,
        /// The recorded size.
        recorded: i64,
        /// The sum.
        images: i64,
    },
    /// The recorded size of a team's rows differs from the sum of their sizes. Both are weighted by what the rows are.
    RowBytes {
        /// The team.
        team: TeamId,
        /// The recorded size.
        recorded: i64,
        /// The sum.
        rows: i64,
    },
    /// An image that a grab still shows is scheduled for deletion.
    ImageScheduledForDeletion(GrabId),
}

type GrabFinding = fn(GrabId) -> Drift;

/// Maximum reported findings of each kind.
const MAX_FINDINGS: u32 = 100;

const REMAINING: &str = "SELECT credit_lot.id AS lot, CAST(credit_lot.remaining AS bigint) AS says, \
    CAST(COALESCE(SUM(ledger.amount), 0) AS bigint) AS adds_up \
    FROM credit_lot LEFT JOIN ledger ON ledger.lot_id = credit_lot.id \
    GROUP BY credit_lot.id, credit_lot.remaining \
    HAVING credit_lot.remaining <> COALESCE(SUM(ledger.amount), 0) ORDER BY credit_lot.id";

const HELD: &str = "SELECT credit_lot.id AS lot, CAST(credit_lot.held AS bigint) AS says, \
    CAST(COUNT(job.grab_id) AS bigint) AS adds_up \
    FROM credit_lot LEFT JOIN job ON job.lot_id = credit_lot.id \
    GROUP BY credit_lot.id, credit_lot.held \
    HAVING credit_lot.held <> COUNT(job.grab_id) ORDER BY credit_lot.id";

const HELD_BY_MISSING_LOT: &str = "SELECT job.lot_id AS lot, CAST(0 AS bigint) AS says, \
    CAST(COUNT(job.grab_id) AS bigint) AS adds_up FROM job LEFT JOIN credit_lot ON credit_lot.id = job.lot_id \
    WHERE credit_lot.id IS NULL GROUP BY job.lot_id ORDER BY job.lot_id";

const BOUNDS: &str = "SELECT id AS lot, CAST(remaining AS bigint) AS says, CAST(held AS bigint) AS adds_up \
    FROM credit_lot WHERE remaining < 0 OR held < 0 OR held > remaining ORDER BY id";

const BALANCE: &str = "SELECT team.id AS team, \
    CAST(COALESCE((SELECT SUM(remaining) FROM credit_lot WHERE team_id = team.id), 0) AS bigint) AS says, \
    CAST(COALESCE((SELECT SUM(amount) FROM ledger WHERE team_id = team.id), 0) AS bigint) AS adds_up \
    FROM team \
    WHERE COALESCE((SELECT SUM(remaining) FROM credit_lot WHERE team_id = team.id), 0) \
    <> COALESCE((SELECT SUM(amount) FROM ledger WHERE team_id = team.id), 0) ORDER BY team.id";

const SPENT_TWICE: &str = "SELECT grab_id AS grab FROM ledger WHERE kind = 2 \
    GROUP BY grab_id HAVING COUNT(*) > 1 ORDER BY grab_id";

/// Returns one row for each append-only trigger that exists and is enabled.
const TRIGGERS_SQLITE: &str = "SELECT name FROM sqlite_master \
    WHERE type = 'trigger' AND tbl_name = 'ledger' AND name IN ('ledger_no_update', 'ledger_no_delete')";
const TRIGGERS_POSTGRES: &str = "SELECT tgname AS name FROM pg_trigger \
    WHERE tgrelid = 'ledger'::regclass AND tgname = 'ledger_append_only' AND tgenabled IN ('O', 'A')";

const NOT_SPENT: &str = "SELECT grab.id AS grab \
    FROM grab LEFT JOIN ledger ON ledger.grab_id = grab.id AND ledger.kind = 2 \
    WHERE grab.status = 2 AND grab.env = 0 AND ledger.id IS NULL ORDER BY grab.id";

const SPENT_WITHOUT_IMAGE: &str = "SELECT ledger.grab_id AS grab \
    FROM ledger LEFT JOIN grab ON grab.id = ledger.grab_id \
    WHERE ledger.kind = 2 AND (grab.status <> 2 OR grab.env <> 0 OR grab.id IS NULL \
    AND ledger.at > COALESCE((SELECT finished_until FROM purge_mark WHERE env = 0), -1) \
    AND NOT EXISTS (SELECT 1 FROM team WHERE team.id = ledger.team_id AND team.deleted_at IS NOT NULL)) \
    ORDER BY ledger.grab_id";

const STORED_BYTES: &str = "SELECT team.id AS team, CAST(COALESCE(team_storage.bytes, 0) AS bigint) AS says, \
    CAST(COALESCE(image.bytes, 0) AS bigint) AS adds_up \
    FROM team LEFT JOIN team_storage ON team_storage.team_id = team.id \
    LEFT JOIN (SELECT team_id, SUM(bytes) AS bytes FROM \
    (SELECT team_id, bytes FROM grab WHERE env = 0 AND image_key IS NOT NULL \
    UNION ALL SELECT team_id, bytes FROM grab_file WHERE env = 0) stored \
    GROUP BY team_id) image ON image.team_id = team.id \
    WHERE COALESCE(team_storage.bytes, 0) <> COALESCE(image.bytes, 0) ORDER BY team.id";

/// The sum of the three numbers, each with another factor, so that bytes in the wrong one are noticed. 600 is what the schema
/// counts for the cached answer of a key.
const ROW_BYTES: &str = "SELECT team.id AS team, \
    CAST(COALESCE(test_bytes + 3 * uncharged_bytes + 7 * charged_bytes, 0) AS bigint) AS says, \
    CAST(COALESCE(stored.bytes, 0) AS bigint) AS adds_up \
    FROM team LEFT JOIN team_storage ON team_storage.team_id = team.id \
    LEFT JOIN (SELECT team_id, SUM(bytes) AS bytes FROM \
    (SELECT team_id, stored_bytes * CASE WHEN env = 1 THEN 1 WHEN status = 2 THEN 7 ELSE 3 END AS bytes FROM grab \
    UNION ALL SELECT team_id, 600 * CASE WHEN env = 1 THEN 1 ELSE 3 END AS bytes FROM idem WHERE cached) part \
    GROUP BY team_id) stored ON stored.team_id = team.id \
    WHERE COALESCE(test_bytes + 3 * uncharged_bytes + 7 * charged_bytes, 0) <> COALESCE(stored.bytes, 0) \
    ORDER BY team.id";

const JOB_MISSING: &str = "SELECT grab.id AS grab FROM grab LEFT JOIN job ON job.grab_id = grab.id \
    WHERE grab.status = 0 AND job.grab_id IS NULL ORDER BY grab.id";

const STALE_JOB: &str = "SELECT job.grab_id AS grab FROM job LEFT JOIN grab ON grab.id = job.grab_id \
    WHERE grab.id IS NULL OR grab.status <> 0 ORDER BY job.grab_id";

const IMAGE_SCHEDULED_FOR_DELETION: &str =
    "SELECT grab.id AS grab FROM image_gc JOIN grab ON grab.image_key = image_gc.key ORDER BY grab.id";

impl Credits<'_> {
    /// Checks all invariants on one snapshot. Empty when all hold. Reads every row, so not for the hot path.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn verify_ledger(self) -> Result<Vec<Drift>> {
        let tx = self.store.database.snapshot().await?;
        let mut drifts = Vec::new();
        for row in rows(&tx, REMAINING).await? {
            let (lot, remaining, ledger) = sums(&row)?;
            drifts.push(Drift::Remaining { lot, remaining, ledger });
        }
        for row in rows(&tx, BOUNDS).await? {
            let (lot, remaining, held) = sums(&row)?;
            drifts.push(Drift::Bounds { lot, remaining, held });
        }
        for query in [HELD, HELD_BY_MISSING_LOT] {
            for row in rows(&tx, query).await? {
                let (lot, held, jobs) = sums(&row)?;
                drifts.push(Drift::Held { lot, held, jobs });
            }
        }
        for row in rows(&tx, BALANCE).await? {
            let (remaining, ledger) = (row.try_get("", "says")?, row.try_get("", "adds_up")?);
            drifts.push(Drift::Balance { team: TeamId(row.try_get("", "team")?), remaining, ledger });
        }
        for row in rows(&tx, STORED_BYTES).await? {
            let (recorded, images) = (row.try_get("", "says")?, row.try_get("", "adds_up")?);
            drifts.push(Drift::StoredBytes { team: TeamId(row.try_get("", "team")?), recorded, images });
        }
        for row in rows(&tx, ROW_BYTES).await? {
            let (recorded, rows) = (row.try_get("", "says")?, row.try_get("", "adds_up")?);
            drifts.push(Drift::RowBytes { team: TeamId(row.try_get("", "team")?), recorded, rows });
        }
        let (triggers, expected) = match self.store.kind() {
            Kind::Sqlite => (TRIGGERS_SQLITE, 2),
            Kind::Postgres => (TRIGGERS_POSTGRES, 1),
        };
        if rows(&tx, triggers).await?.len() != expected {
            drifts.push(Drift::AppendOnlyDisabled);
        }
        let grab_checks: [(&str, GrabFinding); 6] = [
            (NOT_SPENT, Drift::NotSpent),
            (SPENT_TWICE, Drift::SpentTwice),
            (SPENT_WITHOUT_IMAGE, Drift::SpentWithoutImage),
            (JOB_MISSING, Drift::JobMissing),
            (STALE_JOB, Drift::StaleJob),
            (IMAGE_SCHEDULED_FOR_DELETION, Drift::ImageScheduledForDeletion),
        ];
        for (query, drift) in grab_checks {
            for row in rows(&tx, query).await? {
                drifts.push(drift(GrabId(row.try_get("", "grab")?)));
            }
        }
        tx.rollback().await?;
        Ok(drifts)
    }
}

async fn rows(tx: &Tx, query: &str) -> Result<Vec<QueryResult>> {
    let query = format!("{query} LIMIT {MAX_FINDINGS}");
    Ok(tx.query_all_raw(Statement::from_string(tx.get_database_backend(), query)).await?)
}

fn sums(row: &QueryResult) -> Result<(LotId, i64, i64)> {
    Ok((LotId(row.try_get("", "lot")?), row.try_get("", "says")?, row.try_get("", "adds_up")?))
}
