//! Requests per minute of teams, counted across the processes of a cluster: GCRA with one row for each team and
//! environment, by the database's clock. A process leases several requests at a time.

use std::num::NonZeroU32;
use std::time::Duration;

use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ConnectionTrait, EntityTrait, QueryFilter, Statement};

use crate::areas::Limits;
use crate::database::{Transaction, Tx};
use crate::entities::rate_cell;
use crate::{Error, Kind, Result, codes};

/// In this time, a used-up limit is available again.
const MINUTE_US: i64 = 60_000_000;

/// The current time of the database in microseconds, the same in the whole statement.
const SQLITE_NOW: &str = "CAST((julianday('now') - 2440587.5) * 86400000000 AS bigint)";
const POSTGRES_NOW: &str = "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000000 AS bigint)";

/// A request for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateAsk {
    /// The team.
    pub team: TeamId,
    /// The environment.
    pub environment: Environment,
    /// Allowed requests per minute.
    pub per_minute: NonZeroU32,
    /// Number of requests to lease.
    pub wanted: NonZeroU32,
    /// If there are fewer than this, none is leased.
    pub least: NonZeroU32,
}

/// The answer to a request for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLease {
    /// Number of requests that this process may admit, at most as many as it asked for.
    pub granted: u32,
    /// Number of further requests that any process could lease now.
    pub remaining: u32,
    /// Time until as many as the asker needs at least can be leased. Zero if there are as many.
    pub wait: Duration,
}

impl Limits<'_> {
    /// Takes requests from the limit that all processes share.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn lease_requests(self, ask: RateAsk) -> Result<RateLease> {
        self.store.database.write(Lease { ask, kind: self.store.kind() }).await
    }

    /// Deletes the rows of limits that nobody has used for a minute. Returns their number.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_rate_cells(self) -> Result<u64> {
        self.store.database.write(Purge(self.store.kind())).await
    }
}

const fn now(kind: Kind) -> &'static str {
    match kind {
        Kind::Sqlite => SQLITE_NOW,
        Kind::Postgres => POSTGRES_NOW,
    }
}

struct Lease {
    ask: RateAsk,
    kind: Kind,
}

impl Lease {
    /// One statement, which locks the row. Of team, environment, wanted number, microseconds per request, and the least number.
    fn sql(&self) -> String {
        let now = now(self.kind);
        let [team, environment, wanted, interval, least] = match self.kind {
            Kind::Sqlite => ["?1", "?2", "CAST(?3 AS bigint)", "CAST(?4 AS bigint)", "CAST(?5 AS bigint)"],
            Kind::Postgres => ["$1", "$2", "CAST($3 AS bigint)", "CAST($4 AS bigint)", "CAST($5 AS bigint)"],
        };
        let from = format!("(CASE WHEN rate_cell.tat > {now} THEN rate_cell.tat ELSE {now} END)");
        let room = format!("(({now} + {MINUTE_US} - {from}) / {interval})");
        let granted =
            format!("(CASE WHEN {room} < {least} THEN 0 WHEN {room} < {wanted} THEN {room} ELSE {wanted} END)");
        format!(
            "INSERT INTO rate_cell (team_id, env, tat, granted) \
             VALUES ({team}, {environment}, {now} + {wanted} * {interval}, {wanted}) \
             ON CONFLICT (team_id, env) DO UPDATE SET granted = {granted}, tat = {from} + {granted} * {interval} \
             RETURNING granted, tat, {now} AS now"
        )
    }
}

impl Transaction for Lease {
    type Outcome = RateLease;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<RateLease> {
        let RateAsk { team, environment, per_minute, wanted, least } = self.ask;
        let interval = Ord::max(MINUTE_US / i64::from(per_minute.get()), 1);
        let [wanted, least] = [wanted, least].map(|number| i64::from(number.min(per_minute).get()));
        let environment = codes::environment(environment);
        let values = [team.0.into(), environment.into(), wanted.into(), interval.into(), least.into()];
        let statement = Statement::from_sql_and_values(tx.get_database_backend(), self.sql(), values);
        let row = tx.query_one_raw(statement).await?.ok_or(Error::Inconsistent("an upsert returned no row"))?;
        let (granted, tat, now): (i64, i64, i64) =
            (row.try_get("", "granted")?, row.try_get("", "tat")?, row.try_get("", "now")?);
        let room = now + MINUTE_US - tat;
        let wait = u64::try_from(least * interval - room).unwrap_or(0);
        Ok(RateLease {
            granted: u32::try_from(granted).map_err(|_| Error::Inconsistent("a lease of too many requests"))?,
            remaining: u32::try_from(Ord::max(room / interval, 0)).unwrap_or(u32::MAX),
            wait: Duration::from_micros(wait),
        })
    }
}

struct Purge(Kind);

impl Transaction for Purge {
    type Outcome = u64;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        // A cell whose time has passed is as good as none.
        let before = Expr::cust(now(self.0)).sub(MINUTE_US);
        let unused = rate_cell::Entity::delete_many().filter(Expr::col(rate_cell::Column::Tat).lt(before));
        Ok(unused.exec(tx).await?.rows_affected)
    }
}
