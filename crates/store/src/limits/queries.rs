//! Reads of the limits that are overridden for teams.

use std::collections::HashMap;

use grabd_domain::accounts::Role;
use grabd_domain::ids::{PayerId, TeamId};
use grabd_domain::team_limits::TeamLimit;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::areas::Limits;
use crate::entities::{member, team_limit};
use crate::limits::MAX_TEAM_LIMITS;
use crate::{Error, Result, codes};

const WORK: &str = "limits";

/// A limit that is overridden for a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredLimit {
    /// The team.
    pub team: TeamId,
    /// The limit.
    pub limit: TeamLimit,
    /// Its value for the team.
    pub value: u32,
}

/// Differs after every change of a team's limits: the number of overrides, and the sum of the times of their changes. A
/// change has a later time than those before, so the sum grows if the number stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamLimitsVersion(i64, i64);

impl Limits<'_> {
    /// The limits that are overridden for a team.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn team_limits(self, team: TeamId) -> Result<Vec<StoredLimit>> {
        let of_team = team_limit::Entity::find().filter(team_limit::Column::TeamId.eq(team.0));
        Ok(self.readable_limits(of_team.all(self.store.database.reader()).await?))
    }

    /// The limits that are overridden for any team. Unreadable rows are left out.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_team_limits(self) -> Result<Vec<StoredLimit>> {
        let all = team_limit::Entity::find().limit(MAX_TEAM_LIMITS).all(self.store.database.reader()).await?;
        Ok(self.readable_limits(all))
    }

    /// The version of the limits that are overridden for teams.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn team_limits_version(self) -> Result<TeamLimitsVersion> {
        let version: Option<(i64, i64)> = team_limit::Entity::find()
            .select_only()
            .column_as(team_limit::Column::Name.count(), "overrides")
            .expr_as(Expr::cust("CAST(COALESCE(SUM(changed_at), 0) AS bigint)"), "changes")
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        let (overrides, changes) = version.unwrap_or_default();
        Ok(TeamLimitsVersion(overrides, changes))
    }

    /// The budgets of failed renders that are overridden, by payer. A payer is all teams with the same first
    /// owner: if several of them have an override, the lowest applies.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_payer_budgets(self) -> Result<HashMap<PayerId, u32>> {
        let name = TeamLimit::FailedSecondsPerMinute.as_str();
        let overrides = team_limit::Entity::find().filter(team_limit::Column::Name.eq(name)).limit(MAX_TEAM_LIMITS);
        let overrides = self.readable_limits(overrides.all(self.store.database.reader()).await?);
        if overrides.is_empty() {
            return Ok(HashMap::new());
        }
        let of_member = member::Entity::belongs_to(team_limit::Entity)
            .from(member::Column::TeamId)
            .to(team_limit::Column::TeamId)
            .into();
        let owners: Vec<(Uuid, Uuid)> = member::Entity::find()
            .select_only()
            .columns([member::Column::TeamId, member::Column::UserId])
            .join(JoinType::InnerJoin, of_member)
            .filter(team_limit::Column::Name.eq(name))
            .filter(member::Column::Role.eq(codes::role(Role::Owner)))
            .order_by_asc(member::Column::CreatedAt)
            .order_by_asc(member::Column::UserId)
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        let mut first_owners = HashMap::new();
        for (team, owner) in owners {
            first_owners.entry(team).or_insert(owner);
        }
        let mut budgets = HashMap::new();
        for StoredLimit { team, value, .. } in overrides {
            let payer = PayerId(first_owners.get(&team.0).copied().unwrap_or(team.0));
            let budget = budgets.entry(payer).or_insert(value);
            *budget = value.min(*budget);
        }
        Ok(budgets)
    }

    /// The rows that can be read. Others, such as those of a later version, are logged and left out.
    fn readable_limits(self, rows: Vec<team_limit::Model>) -> Vec<StoredLimit> {
        let read = |row: team_limit::Model| {
            let limit = TeamLimit::parse(&row.name).ok();
            let stored = limit.zip(u32::try_from(row.value).ok());
            if stored.is_none() {
                let key = format!("{} {}", TeamId(row.team_id), row.name);
                self.store.set_aside.report(WORK, &key, &Error::Inconsistent("unknown limit of a team"));
            }
            stored.map(|(limit, value)| StoredLimit { team: TeamId(row.team_id), limit, value })
        };
        rows.into_iter().filter_map(read).collect()
    }
}
