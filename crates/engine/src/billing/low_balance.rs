//! Alerts about a balance that has fallen, to the members who were chosen to get them, or to the owners: below a number of credits
//! that the team chose, by e-mail and by the webhook message `credits.low`, and to a percentage of what was bought or granted, by
//! e-mail.

use grabd_domain::credits::ALERT_BELOW_MAX;
use grabd_domain::ids::{TeamId, UserId};
use grabd_store::Error;
use grabd_store::accounts::TeamRuleError;
pub use grabd_store::low_balance::AlertCandidate;
use grabd_store::low_balance::LowBalance;

use crate::error::internal_from;
use crate::mail::templates;
use crate::service::Core;
use crate::webhooks::low_balance_message;

/// Teams checked at a time. Every team has its turn again after all others, so within the interval of the cleanup if
/// there are no more.
const BATCH: u32 = 1000;

/// What a member sees of the alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceAlert {
    /// Credits below which there is an alert; 0 means never.
    pub below: u32,
}

/// Why a change of the alerts was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlertError {
    /// Not a whole number from 0 to [`ALERT_BELOW_MAX`].
    Number,
    /// More recipients than allowed, or one whose role does not let them get alerts.
    Recipients,
    /// The role of the user does not allow it.
    NotAllowed,
    /// The database failed.
    Internal(crate::Error),
}

internal_from!(AlertError);

/// The alerts of a team.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "billing.balance_alert", skip_all)]
pub async fn balance_alert(core: &Core, team: TeamId) -> Result<BalanceAlert, crate::Error> {
    let below = core.store.credits().alert_below(team).await?;
    Ok(BalanceAlert { below: below.unwrap_or(0) })
}

/// Changes the number of credits below which there is an alert.
///
/// # Errors
/// As [`AlertError`] says.
#[tracing::instrument(name = "billing.set_balance_alert", skip_all)]
pub async fn set_balance_alert(core: &Core, user: UserId, team: TeamId, below: &str) -> Result<(), AlertError> {
    let below = below.trim().replace([',', ' '], "");
    let is_number = !below.is_empty() && below.bytes().all(|byte| byte.is_ascii_digit());
    let below: u32 = match below.parse() {
        Ok(below) if is_number && below <= ALERT_BELOW_MAX => below,
        Ok(_) | Err(_) => return Err(AlertError::Number),
    };
    let set = core.store_as(user).credits().set_alert_below(team, below, user, core.clock.now()).await?;
    // The user has another role, or is no member any more.
    set.map_err(|_| AlertError::NotAllowed)
}

/// The members whose role lets them get alerts, in the order they joined.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "billing.list_alert_candidates", skip_all)]
pub async fn list_alert_candidates(core: &Core, team: TeamId) -> Result<Vec<AlertCandidate>, crate::Error> {
    Ok(core.store.credits().list_alert_candidates(team).await?)
}

/// Chooses who gets alerts: up to [`ALERT_RECIPIENTS`](grabd_domain::credits::ALERT_RECIPIENTS) members, or all owners if none are given.
///
/// # Errors
/// As [`AlertError`] says.
#[tracing::instrument(name = "billing.set_alert_recipients", skip_all)]
pub async fn set_alert_recipients(
    core: &Core,
    user: UserId,
    team: TeamId,
    recipients: Vec<UserId>,
) -> Result<(), AlertError> {
    let set = core.store_as(user).credits().set_alert_recipients(team, recipients, user).await?;
    set.map_err(|refusal| match refusal {
        TeamRuleError::NotFound | TeamRuleError::LimitReached => AlertError::Recipients,
        TeamRuleError::NotMember
        | TeamRuleError::NotOwner
        | TeamRuleError::NotAllowed
        | TeamRuleError::LastOwner
        | TeamRuleError::AlreadyMember => AlertError::NotAllowed,
    })
}

/// Checks the next teams.
///
/// # Errors
/// Errors of the database as a whole.
pub(crate) async fn check(core: &Core) -> Result<(), Error> {
    let position = &core.billing.balance_position;
    let after = position.get();
    let now = core.clock.now();
    let (crossed, next) = core.store.credits().crossed_thresholds(after, BATCH, now).await?;
    for team in crossed {
        if let Some(alert) = core.store.credits().record_balance(team, now, low_balance_message).await? {
            tracing::info!(team.id = %alert.team, credits = alert.credits, "the balance of a team is low");
            send_mail(core, &alert);
        }
    }
    position.set(next);
    Ok(())
}

/// Best effort: nothing is sent when mail is not configured or the queue is full.
fn send_mail(core: &Core, alert: &LowBalance) {
    if let Some(mailer) = &core.accounts.mailer {
        let link = format!("{}/teams/{}/billing", core.public_url(), alert.team);
        for recipient in &alert.recipients {
            let _ = mailer.enqueue(templates::low_balance(recipient.clone(), alert, &core.host(), &link));
        }
    }
}
