//! The secrets that sign links, one for each API key.

use grabd_domain::ids::{KeyId, TeamId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::database::{Transaction, Tx};
use crate::entities::api_key;
use crate::operations::audit::AuditEvent;
use crate::{Result, Store};

struct SetLinkSecret {
    team: TeamId,
    key: KeyId,
    sealed: Vec<u8>,
}

impl Store {
    /// Stores the encrypted secret of a key's links, unless the key has one or is revoked. Returns the stored secret:
    /// the given one, or the one that the key had. None if the team has no such key that is in use. Whoever asks is
    /// recorded in the audit trail.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn set_link_secret(&self, team: TeamId, key: KeyId, sealed: Vec<u8>) -> Result<Option<Vec<u8>>> {
        let event = AuditEvent::new("key.link_secret", &key, Some(team));
        self.write_audited(SetLinkSecret { team, key, sealed }, event, Option::is_some).await
    }
}

impl Transaction for SetLinkSecret {
    type Outcome = Option<Vec<u8>>;

    async fn apply(&self, tx: &Tx) -> Result<Option<Vec<u8>>> {
        let in_use = api_key::Entity::find_by_id(self.key.0)
            .filter(api_key::Column::TeamId.eq(self.team.0))
            .filter(api_key::Column::RevokedAt.is_null());
        api_key::Entity::update_many()
            .col_expr(api_key::Column::LinkSecret, Expr::value(self.sealed.clone()))
            .filter(api_key::Column::Id.eq(self.key.0))
            .filter(api_key::Column::TeamId.eq(self.team.0))
            .filter(api_key::Column::RevokedAt.is_null())
            .filter(api_key::Column::LinkSecret.is_null())
            .exec(tx)
            .await?;
        Ok(in_use.one(tx).await?.and_then(|key| key.link_secret))
    }
}
