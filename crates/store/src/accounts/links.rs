//! The secrets that sign links, one for each API key.

use grabd_domain::Timestamp;
use grabd_domain::ids::{KeyId, TeamId, UserId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, UpdateMany};

use crate::Result;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{api_key, link_secret_view};

/// A link secret that is shown to somebody.
#[derive(Clone, Debug)]
pub struct ShownLinkSecret {
    /// The team.
    pub team: TeamId,
    /// The key, which must be in use.
    pub key: KeyId,
    /// A new secret, encrypted.
    pub sealed: Vec<u8>,
    /// The member who sees the secret; `None` for an operator.
    pub by: Option<UserId>,
    /// Current time.
    pub now: Timestamp,
}

struct SetLinkSecret(ShownLinkSecret);

struct ReplaceLinkSecret(ShownLinkSecret);

impl Accounts<'_> {
    /// Stores the new secret of a key's links, unless the key has one. Returns the stored secret: the given one, or the one
    /// that the key had. None if the team has no such key that is in use. Whoever asks is recorded in the audit trail.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn set_link_secret(self, shown: ShownLinkSecret) -> Result<Option<Vec<u8>>> {
        let event = AuditEvent::new("key.link_secret", &shown.key, Some(shown.team));
        self.store.write_audited(SetLinkSecret(shown), event, Option::is_some).await
    }

    /// Replaces the secret of a key's links: those that the former one signed stop working at once. `false` if the team has
    /// no such key that is in use.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn replace_link_secret(self, shown: ShownLinkSecret) -> Result<bool> {
        let event = AuditEvent::new("key.link_secret.replace", &shown.key, Some(shown.team));
        self.store.write_audited(ReplaceLinkSecret(shown), event, |replaced| *replaced).await
    }
}

impl ShownLinkSecret {
    /// An update of the key that stores the secret.
    fn update(&self) -> UpdateMany<api_key::Entity> {
        api_key::Entity::update_many()
            .col_expr(api_key::Column::LinkSecret, Expr::value(self.sealed.clone()))
            .col_expr(api_key::Column::LinkSecretAt, Expr::value(self.now.as_ms()))
            .filter(api_key::Column::Id.eq(self.key.0))
            .filter(api_key::Column::TeamId.eq(self.team.0))
            .filter(api_key::Column::RevokedAt.is_null())
    }

    /// Records who sees it.
    async fn record_view(&self, tx: &Tx) -> Result<()> {
        let Some(user) = self.by else { return Ok(()) };
        let (key_id, user_id, seen_at) = (Set(self.key.0), Set(user.0), Set(self.now.as_ms()));
        let row = link_secret_view::ActiveModel { key_id, user_id, seen_at };
        let key = [link_secret_view::Column::KeyId, link_secret_view::Column::UserId];
        let again = OnConflict::columns(key).update_column(link_secret_view::Column::SeenAt).to_owned();
        link_secret_view::Entity::insert(row).on_conflict(again).exec_without_returning(tx).await?;
        Ok(())
    }
}

impl Transaction for SetLinkSecret {
    type Outcome = Option<Vec<u8>>;

    async fn apply(&self, tx: &Tx) -> Result<Option<Vec<u8>>> {
        let Self(shown) = self;
        shown.update().filter(api_key::Column::LinkSecret.is_null()).exec(tx).await?;
        let in_use = api_key::Entity::find_by_id(shown.key.0)
            .filter(api_key::Column::TeamId.eq(shown.team.0))
            .filter(api_key::Column::RevokedAt.is_null());
        let Some(secret) = in_use.one(tx).await?.and_then(|key| key.link_secret) else { return Ok(None) };
        shown.record_view(tx).await?;
        Ok(Some(secret))
    }
}

impl Transaction for ReplaceLinkSecret {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Self(shown) = self;
        if shown.update().exec(tx).await?.rows_affected == 0 {
            return Ok(false);
        }
        let former = link_secret_view::Column::KeyId.eq(shown.key.0);
        link_secret_view::Entity::delete_many().filter(former).exec(tx).await?;
        shown.record_view(tx).await?;
        Ok(true)
    }
}
