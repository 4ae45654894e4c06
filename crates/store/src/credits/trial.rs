//! Trial credits for people who have just verified their e-mail address.

use grabd_domain::Timestamp;
use grabd_domain::credits::LotKind;
use grabd_domain::ids::{TeamId, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::Result;
use crate::accounts::verification::own_teams;
use crate::areas::Credits;
use crate::audit::AuditEvent;
use crate::credits::grant::Grant;
use crate::database::{Transaction, Tx};
use crate::entities::user;

/// Prefix of the reference of such a grant, followed by the user's id.
pub const TRIAL_PREFIX: &str = "trial:";

struct Trial {
    user: UserId,
    credits: u32,
    now: Timestamp,
}

impl Credits<'_> {
    /// Grants the trial credits of a user to their own team, if their address was verified at `now`: once for each
    /// user, and only if they are the only member of a team. Returns the team.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn grant_trial(self, user: UserId, credits: u32, now: Timestamp) -> Result<Option<TeamId>> {
        let describe = move |team: &Option<TeamId>| {
            let event = AuditEvent::new("credits.grant", &reference(user), Some((*team)?));
            Some(event.with(&format_args!("{credits} credits")))
        };
        self.store.write_described(Trial { user, credits, now }, describe).await
    }
}

fn reference(user: UserId) -> String {
    format!("{TRIAL_PREFIX}{user}")
}

impl Transaction for Trial {
    type Outcome = Option<TeamId>;

    async fn apply(&self, tx: &Tx) -> Result<Option<TeamId>> {
        let &Self { user, credits, now } = self;
        let just_verified = user::Entity::find_by_id(user.0).filter(user::Column::VerifiedAt.eq(now.as_ms()));
        if just_verified.one(tx).await?.is_none() {
            return Ok(None);
        }
        // The ids of teams are ordered by time: this is the team that was created with the account.
        let Some(team) = own_teams(tx, user).await?.into_iter().min().map(TeamId) else { return Ok(None) };
        let source_ref = reference(user);
        Grant { team, kind: LotKind::Prepaid, credits, expires_at: None, source_ref, now }.apply(tx).await?;
        Ok(Some(team))
    }
}
