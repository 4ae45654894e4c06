//! Proxies, for callers.

use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrantId, TeamId};
use grabd_domain::proxies::Proxy;
use sea_orm::QueryOrder;

use super::proxy_ref::ProxyRef;
use crate::Result;
use crate::areas::Proxies;
use crate::entities::proxy::{self, scoped};

impl Proxies<'_> {
    /// Finds a proxy of a caller.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find(self, target: ProxyRef) -> Result<Option<Proxy>> {
        target.query().one(self.store.database.reader()).await?.as_ref().map(proxy::read).transpose()
    }

    /// Finds a proxy of a caller, with its encrypted user name and password.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_with_login(self, target: ProxyRef) -> Result<Option<(Proxy, Option<Vec<u8>>)>> {
        let Some(row) = target.query().one(self.store.database.reader()).await? else { return Ok(None) };
        Ok(Some((proxy::read(&row)?, row.login)))
    }

    /// All proxies of a team, or those that an app has created with its grant, newest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list(self, team: TeamId, environment: Environment, grant: Option<GrantId>) -> Result<Vec<Proxy>> {
        let newest_first =
            scoped(team, environment, grant).order_by_desc(proxy::Column::CreatedAt).order_by_desc(proxy::Column::Id);
        newest_first.all(self.store.database.reader()).await?.iter().map(proxy::read).collect()
    }
}
