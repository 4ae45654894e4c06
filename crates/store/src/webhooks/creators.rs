//! The creators of endpoints: apps, whose endpoints end with their grants, and those that were not recorded.

use std::collections::{HashMap, HashSet};

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrantId, TeamId, UserId};
use grabd_domain::permissions::Permission;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect, RelationTrait,
};
use uuid::Uuid;

use crate::areas::Webhooks;
use crate::entities::{member, oauth_grant, team, user, webhook_endpoint};
use crate::padded::padded;
use crate::{Result, codes};

/// The grants of endpoints or monitors whose apps have no access at the moment: the grant has expired and is about to be purged,
/// or its user is suspended. Grants that have ended otherwise were deleted with what depends on them.
pub(crate) struct Inactive(HashSet<Uuid>);

impl Inactive {
    /// Finds the inactive ones among the grants. Without apps, this needs no query.
    pub(crate) async fn find<C: ConnectionTrait>(
        db: &C,
        grants: impl IntoIterator<Item = Option<Uuid>>,
        now: Timestamp,
    ) -> Result<Self> {
        let mut grants: HashSet<Uuid> = grants.into_iter().flatten().collect();
        if !grants.is_empty() {
            let active: Vec<Uuid> = oauth_grant::Entity::find()
                .select_only()
                .column(oauth_grant::Column::Id)
                .join(JoinType::InnerJoin, oauth_grant::Relation::User.def())
                .filter(oauth_grant::Column::Id.is_in(padded(grants.iter().copied())))
                .filter(oauth_grant::Column::ExpiresAt.gt(now.as_ms()))
                .filter(user::Column::SuspendedAt.is_null())
                .into_tuple()
                .all(db)
                .await?;
            grants.retain(|grant| !active.contains(grant));
        }
        Ok(Self(grants))
    }

    /// Whether this is the grant of an app without access.
    pub(crate) fn contains(&self, grant: Option<Uuid>) -> bool {
        grant.is_some_and(|grant| self.0.contains(&grant))
    }
}

impl Webhooks<'_> {
    /// The names of the apps with these grants. Those of other grants are left out.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn app_names(self, grants: &[GrantId]) -> Result<HashMap<GrantId, String>> {
        if grants.is_empty() {
            return Ok(HashMap::new());
        }
        let named: Vec<(Uuid, String)> = oauth_grant::Entity::find()
            .select_only()
            .columns([oauth_grant::Column::Id, oauth_grant::Column::ClientName])
            .filter(oauth_grant::Column::Id.is_in(padded(grants.iter().map(|grant| grant.0))))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(named.into_iter().map(|(grant, name)| (GrantId(grant), name)).collect())
    }

    /// The active teams of a user that have endpoints whose creator was not recorded, by name. Without those in which the user's
    /// role has no access to webhooks.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn teams_with_unknown_endpoints(self, user: UserId) -> Result<Vec<(TeamId, String)>> {
        let of_team = Expr::col((webhook_endpoint::Entity, webhook_endpoint::Column::TeamId));
        let unknown = Query::select()
            .expr(Expr::val(1))
            .from(webhook_endpoint::Entity)
            .and_where(of_team.equals((team::Entity, team::Column::Id)))
            .and_where(Expr::col((webhook_endpoint::Entity, webhook_endpoint::Column::Creator)).is_null())
            .take();
        let teams: Vec<(Uuid, String)> = member::Entity::find()
            .select_only()
            .columns([team::Column::Id, team::Column::Name])
            .join(JoinType::InnerJoin, member::Relation::Team.def())
            .filter(member::Column::UserId.eq(user.0))
            .filter(member::Column::Role.is_in(Permission::ManageWebhooks.roles().map(codes::role)))
            .filter(team::Column::Status.eq(codes::ACTIVE))
            .filter(Expr::exists(unknown))
            .order_by_asc(team::Column::Name)
            .order_by_asc(team::Column::Id)
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(teams.into_iter().map(|(team, name)| (TeamId(team), name)).collect())
    }
}
