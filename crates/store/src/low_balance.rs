//! Alerts about balances that have fallen below the threshold of their team, or to a percentage of what was bought or granted.
//!
//! A percentage is one of the lots that are not used up and have not expired. A balance that falls to several at once causes one
//! alert.
//!
//! Credits reserved for open grabs count as unspent, so that an alert is not repeated when a grab fails and its credit is
//! free again.

use std::collections::HashMap;

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::credits::{ALERT_PERCENTS, ALERT_RECIPIENTS, ALERT_STAGES, Balance, Lot, alert_stage};
use grabd_domain::ids::{DeliveryId, EndpointId, TeamId, UserId};
use grabd_domain::permissions::Permission;
use grabd_domain::webhooks::Event;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select, UpdateMany};
use uuid::Uuid;

use crate::accounts::team::lock_as_permitted;
use crate::accounts::{TeamResult, TeamRuleError};
use crate::areas::Credits;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{lot, member, team, user};
use crate::webhooks::enqueue::enqueue_for_team;
use crate::{Error, Result, codes};

const WORK: &str = "balances";

/// Which limit a balance has fallen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowBalanceReason {
    /// It is below the threshold of its team. Webhooks get a message about it.
    Threshold,
    /// It is at most this percentage of what was bought or granted.
    Percent(u32),
}

/// A balance that has fallen to a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowBalance {
    /// The team.
    pub team: TeamId,
    /// Its name.
    pub team_name: String,
    /// Unspent credits, with those reserved for open grabs.
    pub credits: u64,
    /// The threshold, in credits.
    pub below: u32,
    /// The limit. If it has fallen to both, the threshold.
    pub reason: LowBalanceReason,
    /// The verified addresses of the chosen members, or of the owners if there are none.
    pub recipients: Vec<Email>,
}

/// A member who may get the alerts of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertCandidate {
    /// The user.
    pub user: UserId,
    /// The sign-in address.
    pub email: Email,
    /// Whether the member was chosen.
    pub is_chosen: bool,
}

/// What the lots of a team add up to.
#[derive(Clone, Copy, Debug)]
struct Sums {
    /// With those reserved for open grabs.
    unspent: u64,
    /// Of the lots that are neither used up nor expired.
    granted: u64,
}

/// Composes the webhook message of an alert.
pub type AlertText = fn(&LowBalance, DeliveryId, Timestamp) -> String;

struct RecordBalance {
    team: TeamId,
    now: Timestamp,
    text: AlertText,
}

struct SetAlertBelow {
    team: TeamId,
    below: u32,
    by: UserId,
    now: Timestamp,
}

struct SetAlertRecipients {
    team: TeamId,
    users: Vec<UserId>,
    by: UserId,
}

impl Credits<'_> {
    /// Looks at up to `limit` active teams after this one, in the order of their ids. Returns those whose balance has crossed
    /// one of their limits, in either direction, and the last team that was looked at, or `None` at the end. Teams that cannot
    /// be read are set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn crossed_thresholds(
        self,
        after: Option<TeamId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<(Vec<TeamId>, Option<TeamId>)> {
        let teams = active_teams()
            .filter(team::Column::Id.gt(after.map_or(Uuid::nil(), |team| team.0)))
            .filter(team::Column::Id.is_not_in(self.store.set_aside.keys::<Uuid>(WORK, now)))
            .order_by_asc(team::Column::Id)
            .limit(u64::from(limit))
            .all(self.store.database.reader())
            .await?;
        let (Some(first), Some(last)) = (teams.first(), teams.last()) else { return Ok((Vec::new(), None)) };
        let lots = lot::Entity::find()
            .filter(lot::Column::TeamId.between(first.id, last.id))
            .filter(lot::Column::Remaining.gt(0))
            .all(self.store.database.reader())
            .await?;
        let mut lots_of: HashMap<Uuid, Vec<lot::Model>> = HashMap::new();
        for row in lots {
            lots_of.entry(row.team_id).or_default().push(row);
        }
        let mut crossed = Vec::new();
        for row in &teams {
            let lots = lots_of.remove(&row.id).unwrap_or_default();
            let has_crossed = sums(lots, now).map(|sums| Position::of(row, sums) != Position::recorded(row));
            if self.store.set_aside.unless_row_fails(WORK, &row.id, now, has_crossed)? == Some(true) {
                crossed.push(TeamId(row.id));
            }
        }
        let is_full = teams.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        Ok((crossed, is_full.then_some(TeamId(last.id))))
    }

    /// Records on which side of its limits the balance of a team is. If it has fallen, returns the alert, and enqueues the webhook
    /// messages if it has fallen below the threshold. A team that cannot be processed is set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn record_balance(self, team: TeamId, now: Timestamp, text: AlertText) -> Result<Option<LowBalance>> {
        let outcome = self.store.database.write(RecordBalance { team, now, text }).await;
        Ok(self.store.set_aside.unless_row_fails(WORK, &team.0, now, outcome)?.flatten())
    }

    /// The number of credits below which the owners of a team get an alert; 0 means never. `None` if there is no such
    /// team.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn alert_below(self, team: TeamId) -> Result<Option<u32>> {
        let found = team::Entity::find_by_id(team.0).one(self.store.database.reader()).await?;
        found.map(|row| codes::read_count(row.alert_below)).transpose()
    }

    /// The members whose role lets them get alerts, in the order they joined.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_alert_candidates(self, team: TeamId) -> Result<Vec<AlertCandidate>> {
        let rows = candidates(team)
            .find_also_related(user::Entity)
            .order_by_asc(member::Column::CreatedAt)
            .order_by_asc(member::Column::UserId)
            .all(self.store.database.reader())
            .await?;
        let read = |(member, user): (member::Model, Option<user::Model>)| {
            let user = user.ok_or(Error::Inconsistent("membership without a user"))?;
            let email = Email::parse(&user.email).map_err(|_| Error::Inconsistent("invalid e-mail address"))?;
            Ok(AlertCandidate { user: UserId(user.id), email, is_chosen: member.gets_alerts != 0 })
        };
        rows.into_iter().map(read).collect()
    }

    /// Chooses who gets alerts: up to [`ALERT_RECIPIENTS`] members whose role allows it, or the owners if none are given.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn set_alert_recipients(self, team: TeamId, users: Vec<UserId>, by: UserId) -> Result<TeamResult> {
        let event = AuditEvent::new("team.alert_recipients", &team, Some(team)).with(&users.len());
        self.store.write_audited(SetAlertRecipients { team, users, by }, event, TeamResult::is_ok).await
    }

    /// Changes this number. A balance that is below it already causes no alert.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn set_alert_below(self, team: TeamId, below: u32, by: UserId, now: Timestamp) -> Result<TeamResult> {
        let event = AuditEvent::new("team.alert_below", &team, Some(team)).with(&below);
        self.store.write_audited(SetAlertBelow { team, below, by, now }, event, TeamResult::is_ok).await
    }
}

async fn verified_addresses(tx: &Tx, members: Select<member::Entity>) -> Result<Vec<Email>> {
    let users = user::Entity::find()
        .filter(user::Column::Id.in_subquery(members.select_only().column(member::Column::UserId).into_query()))
        .filter(user::Column::VerifiedAt.is_not_null())
        .filter(user::Column::SuspendedAt.is_null())
        .all(tx)
        .await?;
    Ok(users.iter().filter_map(|user| Email::parse(&user.email).ok()).collect())
}

fn active_teams() -> Select<team::Entity> {
    team::Entity::find().filter(team::Column::DeletedAt.is_null()).filter(team::Column::SuspendedAt.is_null())
}

/// Where a balance is, relative to its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    is_low: bool,
    stage: u8,
}

impl Position {
    fn of(row: &team::Model, sums: Sums) -> Self {
        let below = u64::try_from(row.alert_below).unwrap_or(0);
        Self::with_threshold(below, sums)
    }

    fn with_threshold(below: u64, Sums { unspent, granted }: Sums) -> Self {
        Self { is_low: unspent < below, stage: alert_stage(unspent, granted) }
    }

    fn recorded(row: &team::Model) -> Self {
        Self { is_low: row.is_balance_low != 0, stage: u8::try_from(row.alert_stage).unwrap_or(ALERT_STAGES) }
    }

    /// The limit to which the balance has fallen since an earlier position. Without a threshold there are no alerts.
    fn fallen_since(self, before: Self, below: u32) -> Option<LowBalanceReason> {
        if below == 0 {
            return None;
        }
        if self.is_low && !before.is_low {
            return Some(LowBalanceReason::Threshold);
        }
        let newest = self.stage.checked_sub(1).filter(|_| self.stage > before.stage)?;
        ALERT_PERCENTS.get(usize::from(newest)).map(|percent| LowBalanceReason::Percent(*percent))
    }
}

fn sums(lots: Vec<lot::Model>, now: Timestamp) -> Result<Sums> {
    let lots = lots.into_iter().map(Lot::try_from).collect::<Result<Vec<_>>>()?;
    let balance = Balance::of(&lots, now);
    let usable = lots.iter().filter(|lot| lot.is_usable(now) && lot.remaining > 0);
    let granted = usable.map(|lot| u64::from(lot.granted)).sum();
    Ok(Sums { unspent: balance.total() + balance.held, granted })
}

async fn read_sums(tx: &Tx, team: TeamId, now: Timestamp) -> Result<Sums> {
    let lots = lot::Entity::find().filter(lot::Column::TeamId.eq(team.0)).filter(lot::Column::Remaining.gt(0));
    sums(lots.all(tx).await?, now)
}

/// An update of all members of a team.
fn set_gets_alerts(team: TeamId, value: i16) -> UpdateMany<member::Entity> {
    member::Entity::update_many()
        .col_expr(member::Column::GetsAlerts, Expr::value(value))
        .filter(member::Column::TeamId.eq(team.0))
}

/// The members of a team whose role lets them get alerts.
fn candidates(team: TeamId) -> Select<member::Entity> {
    member::Entity::find()
        .filter(member::Column::TeamId.eq(team.0))
        .filter(member::Column::Role.is_in(Permission::ManageAlerts.roles().map(codes::role)))
}

/// The chosen members who can get mail, or the owners if there are none: an alert must not be lost because somebody was
/// suspended.
pub(crate) async fn find_recipients(tx: &Tx, team: TeamId) -> Result<Vec<Email>> {
    let chosen = verified_addresses(tx, candidates(team).filter(member::Column::GetsAlerts.eq(1_i16))).await?;
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    verified_addresses(tx, candidates(team).filter(member::Column::Role.eq(codes::role(Role::Owner)))).await
}

async fn set_position(tx: &Tx, team: TeamId, Position { is_low, stage }: Position) -> Result<()> {
    team::Entity::update_many()
        .col_expr(team::Column::IsBalanceLow, Expr::value(i16::from(is_low)))
        .col_expr(team::Column::AlertStage, Expr::value(i16::from(stage)))
        .filter(team::Column::Id.eq(team.0))
        .exec(tx)
        .await?;
    Ok(())
}

impl Transaction for RecordBalance {
    /// The alert, if the balance has fallen.
    type Outcome = Option<LowBalance>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<LowBalance>> {
        // Locked, so that no other process sends the alert too.
        let row = active_teams().filter(team::Column::Id.eq(self.team.0)).lock(LockType::NoKeyUpdate).one(tx).await?;
        let Some(row) = row else { return Ok(None) };
        let sums = read_sums(tx, self.team, self.now).await?;
        let (position, before) = (Position::of(&row, sums), Position::recorded(&row));
        if position == before {
            return Ok(None);
        }
        set_position(tx, self.team, position).await?;
        let below = codes::read_count(row.alert_below)?;
        let Some(reason) = position.fallen_since(before, below) else { return Ok(None) };
        let recipients = find_recipients(tx, self.team).await?;
        let credits = sums.unspent;
        let alert = LowBalance { team: self.team, team_name: row.name, credits, below, reason, recipients };
        if matches!(reason, LowBalanceReason::Percent(_)) {
            return Ok(Some(alert));
        }
        let message = |endpoint: EndpointId| {
            let name = [Event::CreditsLow.as_str().as_bytes(), &self.now.as_ms().to_be_bytes()].concat();
            let id = DeliveryId(Uuid::new_v5(&endpoint.0, &name));
            (id, (self.text)(&alert, id, self.now))
        };
        enqueue_for_team(tx, self.team, Event::CreditsLow, |_| true, message, self.now).await?;
        Ok(Some(alert))
    }
}

impl Transaction for SetAlertBelow {
    type Outcome = TeamResult;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult> {
        if let Err(error) = lock_as_permitted(tx, self.team, self.by, Permission::ManageAlerts).await? {
            return Ok(Err(error));
        }
        let below = i32::try_from(self.below).unwrap_or(i32::MAX);
        let position = Position::with_threshold(self.below.into(), read_sums(tx, self.team, self.now).await?);
        team::Entity::update_many()
            .col_expr(team::Column::AlertBelow, Expr::value(below))
            .filter(team::Column::Id.eq(self.team.0))
            .exec(tx)
            .await?;
        set_position(tx, self.team, position).await?;
        Ok(Ok(()))
    }
}

impl Transaction for SetAlertRecipients {
    type Outcome = TeamResult;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult> {
        if let Err(error) = lock_as_permitted(tx, self.team, self.by, Permission::ManageAlerts).await? {
            return Ok(Err(error));
        }
        if self.users.len() > ALERT_RECIPIENTS {
            return Ok(Err(TeamRuleError::LimitReached));
        }
        // The team is locked, so that no role changes meanwhile.
        for user in &self.users {
            if candidates(self.team).filter(member::Column::UserId.eq(user.0)).one(tx).await?.is_none() {
                return Ok(Err(TeamRuleError::NotFound));
            }
        }
        set_gets_alerts(self.team, 0).exec(tx).await?;
        let users = self.users.iter().map(|user| user.0);
        set_gets_alerts(self.team, 1).filter(member::Column::UserId.is_in(users)).exec(tx).await?;
        Ok(Ok(()))
    }
}
