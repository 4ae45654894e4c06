//! What a renderer needs of a proxy, when it was used, and that it failed.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::ids::{ProxyId, TeamId};
use grabd_domain::proxies::{ProxyProblem, ProxyUrl};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::Result;
use crate::areas::Proxies;
use crate::database::{Transaction, Tx};
use crate::entities::proxy;

/// A use is recorded if the last recorded one is older, so that a proxy of many captures costs few writes.
const USE_INTERVAL: Duration = Duration::from_secs(60);

/// What a renderer needs of a proxy, with an encrypted login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRoute {
    /// The name, for messages.
    pub name: String,
    /// Where it is.
    pub url: ProxyUrl,
    /// User name and password, encrypted.
    pub login: Option<Vec<u8>>,
}

struct RecordUse {
    proxy: ProxyId,
    now: Timestamp,
}

struct RecordError {
    proxy: ProxyId,
    problem: ProxyProblem,
    now: Timestamp,
}

impl Proxies<'_> {
    /// Returns what a capture of the team needs to use its proxy, and records the use. `None` when the team has no such
    /// proxy any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn begin_use(self, team: TeamId, id: ProxyId, now: Timestamp) -> Result<Option<SealedRoute>> {
        let found = proxy::Entity::find_by_id(id.0)
            .filter(proxy::Column::TeamId.eq(team.0))
            .one(self.store.database.reader())
            .await?;
        let Some(row) = found else { return Ok(None) };
        let recent = (now - USE_INTERVAL).as_ms();
        if row.last_used_at.is_none_or(|at| at <= recent) {
            self.store.database.write(RecordUse { proxy: id, now }).await?;
        }
        Ok(Some(SealedRoute { url: proxy::read_url(&row)?, name: row.name, login: row.login }))
    }

    /// Records that a capture failed because of a proxy. Nothing happens if it was deleted.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn record_error(self, id: ProxyId, problem: ProxyProblem, now: Timestamp) -> Result<()> {
        self.store.database.write(RecordError { proxy: id, problem, now }).await
    }
}

impl Transaction for RecordUse {
    type Outcome = ();
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let now = self.now.as_ms();
        let is_earlier = proxy::Column::LastUsedAt.is_null().or(proxy::Column::LastUsedAt.lt(now));
        proxy::Entity::update_many()
            .col_expr(proxy::Column::LastUsedAt, Expr::value(now))
            .filter(proxy::Column::Id.eq(self.proxy.0))
            .filter(is_earlier)
            .exec(tx)
            .await?;
        Ok(())
    }
}

impl Transaction for RecordError {
    type Outcome = ();
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<()> {
        proxy::Entity::update_many()
            .col_expr(proxy::Column::LastError, Expr::value(self.problem.as_str()))
            .col_expr(proxy::Column::LastErrorAt, Expr::value(self.now.as_ms()))
            .filter(proxy::Column::Id.eq(self.proxy.0))
            .exec(tx)
            .await?;
        Ok(())
    }
}
