//! The first steps of a team: what it has used so far, and which members do not want to see them.

use grabd_domain::Timestamp;
use grabd_domain::ids::{TeamId, UserId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect, Select};
use uuid::Uuid;

use crate::Result;
use crate::areas::Accounts;
use crate::database::{Transaction, Tx};
use crate::entities::{api_key, grab, member, oauth_grant, webhook_endpoint};

/// What a team has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstSteps {
    /// It has or had an API key.
    pub key: bool,
    /// It has a grab.
    pub grab: bool,
    /// The command line or another app is connected.
    pub app: bool,
    /// It has a webhook.
    pub webhook: bool,
}

struct HideFirstSteps {
    team: TeamId,
    user: UserId,
    now: Timestamp,
}

impl Accounts<'_> {
    /// What a team has used so far. `None` if the user is not a member, or hid it.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_first_steps(self, team: TeamId, user: UserId) -> Result<Option<FirstSteps>> {
        let member = member::Entity::find_by_id((team.0, user.0)).one(self.store.database.reader()).await?;
        if member.is_none_or(|member| member.first_steps_hidden_at.is_some()) {
            return Ok(None);
        }
        let keys = api_key::Entity::find().filter(api_key::Column::TeamId.eq(team.0));
        let grabs = grab::Entity::find().filter(grab::Column::TeamId.eq(team.0));
        let apps = oauth_grant::Entity::find()
            .filter(oauth_grant::Column::TeamId.eq(team.0))
            .filter(oauth_grant::Column::ConnectedAt.is_not_null());
        let webhooks = webhook_endpoint::Entity::find().filter(webhook_endpoint::Column::TeamId.eq(team.0));
        Ok(Some(FirstSteps {
            key: self.has_any(keys, api_key::Column::Id).await?,
            grab: self.has_any(grabs, grab::Column::Id).await?,
            app: self.has_any(apps, oauth_grant::Column::Id).await?,
            webhook: self.has_any(webhooks, webhook_endpoint::Column::Id).await?,
        }))
    }

    /// Hides the first steps of a team from a member.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn hide_first_steps(self, team: TeamId, user: UserId, now: Timestamp) -> Result<()> {
        self.store.database.write(HideFirstSteps { team, user, now }).await
    }

    /// Whether a query has a row.
    async fn has_any<E: EntityTrait>(self, query: Select<E>, id: E::Column) -> Result<bool> {
        let first: Option<Uuid> =
            query.select_only().column(id).limit(1).into_tuple().one(self.store.database.reader()).await?;
        Ok(first.is_some())
    }
}

impl Transaction for HideFirstSteps {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        member::Entity::update_many()
            .col_expr(member::Column::FirstStepsHiddenAt, Expr::value(self.now.as_ms()))
            .filter(member::Column::TeamId.eq(self.team.0))
            .filter(member::Column::UserId.eq(self.user.0))
            .exec(tx)
            .await?;
        Ok(())
    }
}
