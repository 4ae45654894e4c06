//! The sums that must always come out. Whatever one of these finds is a fault of ours.

use grabd_domain::ids::{GrabId, LotId};
use sea_orm::{ConnectionTrait, QueryResult, Statement};

use crate::database::Tx;
use crate::{Result, Store};

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
    /// A lot holds another number of credits than it has open grabs.
    Held {
        /// Which lot.
        lot: LotId,
        /// What it says.
        held: i64,
        /// Its open grabs.
        jobs: i64,
    },
    /// A live grab is done and nothing was spent for it.
    Unpaid(GrabId),
    /// A credit was spent for a grab that is not a done live one.
    PaidForNothing(GrabId),
    /// An open grab has no job: it will never end.
    Orphaned(GrabId),
    /// A job's grab has ended or is not there.
    Leftover(GrabId),
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

const UNPAID: &str = "SELECT grab.id AS grab FROM grab LEFT JOIN ledger ON ledger.grab_id = grab.id AND ledger.kind = 2 \
    WHERE grab.status = 2 AND grab.env = 0 AND ledger.id IS NULL ORDER BY grab.id";

const PAID_FOR_NOTHING: &str = "SELECT ledger.grab_id AS grab FROM ledger LEFT JOIN grab ON grab.id = ledger.grab_id \
    WHERE ledger.kind = 2 AND (grab.id IS NULL OR grab.status <> 2 OR grab.env <> 0) ORDER BY ledger.grab_id";

const ORPHANED: &str = "SELECT grab.id AS grab FROM grab LEFT JOIN job ON job.grab_id = grab.id \
    WHERE grab.status = 0 AND job.grab_id IS NULL ORDER BY grab.id";

const LEFTOVER: &str = "SELECT job.grab_id AS grab FROM job LEFT JOIN grab ON grab.id = job.grab_id \
    WHERE grab.id IS NULL OR grab.status <> 0 ORDER BY job.grab_id";

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
        for row in rows(&tx, HELD).await? {
            let (lot, held, jobs) = sums(&row)?;
            drifts.push(Drift::Held { lot, held, jobs });
        }
        let of_grabs: [(&str, OfGrab); 4] = [
            (UNPAID, Drift::Unpaid),
            (PAID_FOR_NOTHING, Drift::PaidForNothing),
            (ORPHANED, Drift::Orphaned),
            (LEFTOVER, Drift::Leftover),
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
