//! The sums that must always come out. Whatever one of these finds is a fault of ours.

use grabd_domain::ids::{GrabId, LotId, TeamId};
use sea_orm::{ConnectionTrait, QueryResult, Statement};

use crate::database::Tx;
use crate::{Kind, Result, Store};

/// Something that does not come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// What a lot says is left is not what its entries add up to.
    Remaining {
        /// Which lot.
        lot: LotId,
        /// What it says.
        remaining: i64,
        /// The sum of its entries.
        ledger: i64,
    },
    /// A lot has less than nothing left, or holds more than it has.
    Bounds {
        /// Which lot.
        lot: LotId,
        /// What it says is left.
        remaining: i64,
        /// What it says is held.
        held: i64,
    },
    /// A lot holds another number of credits than it has open grabs. A lot that is not there holds none.
    Held {
        /// Which lot.
        lot: LotId,
        /// What it says.
        held: i64,
        /// Its open grabs.
        jobs: i64,
    },
    /// A team's entries add up to something else than what its lots have left.
    Balance {
        /// Which team.
        team: TeamId,
        /// What its lots have left.
        remaining: i64,
        /// The sum of its entries.
        ledger: i64,
    },
    /// The ledger lets its entries be changed or deleted.
    Unguarded,
    /// A live grab is done and nothing was spent for it.
    Unpaid(GrabId),
    /// More than one credit was spent for a grab.
    PaidTwice(GrabId),
    /// A credit was spent for a grab that is not a done live one.
    PaidForNothing(GrabId),
    /// An open grab has no job: it will never end.
    Orphaned(GrabId),
    /// A job's grab has ended or is not there.
    Leftover(GrabId),
    /// A grab shows an image that is on the list of those to be deleted.
    Doomed(GrabId),
}

type OfGrab = fn(GrabId) -> Drift;

/// Findings of each kind that are told: when there are more, the first ones say enough.
const TOLD: u32 = 100;

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

const HELD_BY_NONE: &str = "SELECT job.lot_id AS lot, CAST(0 AS bigint) AS says, \
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

const PAID_TWICE: &str = "SELECT grab_id AS grab FROM ledger WHERE kind = 2 \
    GROUP BY grab_id HAVING COUNT(*) > 1 ORDER BY grab_id";

/// One row for each guard that is in place and on.
const GUARDS_SQLITE: &str = "SELECT name FROM sqlite_master \
    WHERE type = 'trigger' AND tbl_name = 'ledger' AND name IN ('ledger_no_update', 'ledger_no_delete')";
const GUARDS_POSTGRES: &str = "SELECT tgname AS name FROM pg_trigger \
    WHERE tgrelid = 'ledger'::regclass AND tgname = 'ledger_append_only' AND tgenabled IN ('O', 'A')";

const UNPAID: &str = "SELECT grab.id AS grab FROM grab LEFT JOIN ledger ON ledger.grab_id = grab.id AND ledger.kind = 2 \
    WHERE grab.status = 2 AND grab.env = 0 AND ledger.id IS NULL ORDER BY grab.id";

const PAID_FOR_NOTHING: &str = "SELECT ledger.grab_id AS grab FROM ledger LEFT JOIN grab ON grab.id = ledger.grab_id \
    WHERE ledger.kind = 2 AND (grab.id IS NULL OR grab.status <> 2 OR grab.env <> 0) ORDER BY ledger.grab_id";

const ORPHANED: &str = "SELECT grab.id AS grab FROM grab LEFT JOIN job ON job.grab_id = grab.id \
    WHERE grab.status = 0 AND job.grab_id IS NULL ORDER BY grab.id";

const LEFTOVER: &str = "SELECT job.grab_id AS grab FROM job LEFT JOIN grab ON grab.id = job.grab_id \
    WHERE grab.id IS NULL OR grab.status <> 0 ORDER BY job.grab_id";

const DOOMED: &str = "SELECT grab.id AS grab FROM image_gc JOIN grab ON grab.image_key = image_gc.key ORDER BY grab.id";

impl Store {
    /// Looks for what does not come out, at one moment. Empty when all is well. Reads every row: not for the hot path.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn verify_ledger(&self) -> Result<Vec<Drift>> {
        let tx = self.database.snapshot().await?;
        let mut drifts = Vec::new();
        for row in rows(&tx, REMAINING).await? {
            let (lot, remaining, ledger) = sums(&row)?;
            drifts.push(Drift::Remaining { lot, remaining, ledger });
        }
        for row in rows(&tx, BOUNDS).await? {
            let (lot, remaining, held) = sums(&row)?;
            drifts.push(Drift::Bounds { lot, remaining, held });
        }
        for query in [HELD, HELD_BY_NONE] {
            for row in rows(&tx, query).await? {
                let (lot, held, jobs) = sums(&row)?;
                drifts.push(Drift::Held { lot, held, jobs });
            }
        }
        for row in rows(&tx, BALANCE).await? {
            let (remaining, ledger) = (row.try_get("", "says")?, row.try_get("", "adds_up")?);
            drifts.push(Drift::Balance { team: TeamId(row.try_get("", "team")?), remaining, ledger });
        }
        let (guards, expected) = match self.kind() {
            Kind::Sqlite => (GUARDS_SQLITE, 2),
            Kind::Postgres => (GUARDS_POSTGRES, 1),
        };
        if rows(&tx, guards).await?.len() != expected {
            drifts.push(Drift::Unguarded);
        }
        let of_grabs: [(&str, OfGrab); 6] = [
            (UNPAID, Drift::Unpaid),
            (PAID_TWICE, Drift::PaidTwice),
            (PAID_FOR_NOTHING, Drift::PaidForNothing),
            (ORPHANED, Drift::Orphaned),
            (LEFTOVER, Drift::Leftover),
            (DOOMED, Drift::Doomed),
        ];
        for (query, drift) in of_grabs {
            for row in rows(&tx, query).await? {
                drifts.push(drift(GrabId(row.try_get("", "grab")?)));
            }
        }
        tx.rollback().await?;
        Ok(drifts)
    }
}

async fn rows(tx: &Tx, query: &str) -> Result<Vec<QueryResult>> {
    let query = format!("{query} LIMIT {TOLD}");
    Ok(tx.query_all_raw(Statement::from_string(tx.get_database_backend(), query)).await?)
}

fn sums(row: &QueryResult) -> Result<(LotId, i64, i64)> {
    Ok((LotId(row.try_get("", "lot")?), row.try_get("", "says")?, row.try_get("", "adds_up")?))
}
