//! A proxy of a caller.

use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrantId, ProxyId, TeamId};
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, QueryFilter, QuerySelect, Select};

use crate::Result;
use crate::database::Tx;
use crate::entities::proxy::{self, scoped};

/// A proxy of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyRef {
    /// The caller's team.
    pub team: TeamId,
    /// The caller's environment.
    pub environment: Environment,
    /// The grant of a caller that is an app, which sees only what it has created with it.
    pub grant: Option<GrantId>,
    /// The proxy.
    pub proxy: ProxyId,
}

impl ProxyRef {
    /// Selects the proxy, if the caller sees it.
    pub(super) fn query(&self) -> Select<proxy::Entity> {
        let &Self { team, environment, grant, proxy } = self;
        scoped(team, environment, grant).filter(proxy::Column::Id.eq(proxy.0))
    }

    /// Reads and locks the proxy.
    pub(super) async fn lock(&self, tx: &Tx) -> Result<Option<proxy::Model>> {
        Ok(self.query().lock(LockType::Update).one(tx).await?)
    }
}
