//! Rate limits per recipient address, and per inviting user and team, so that grabd cannot be used to send spam.

use std::num::NonZeroU32;
use std::time::Duration;

use grabd_domain::accounts::Email;
use grabd_domain::ids::{TeamId, UserId};
use grabd_limiters::KeyedLimiter;

use crate::digest;
use crate::limits::{INVITATIONS_PER_DAY, OwnBuckets};

/// Messages per address and hour.
const PER_ADDRESS: u32 = 5;
/// Invitations per user and day, in all their teams.
const PER_USER: u32 = 30;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The limits per address, per user and per team. When too many are tracked, those with the most left are forgotten:
/// requests for made-up addresses never keep anybody from getting mail.
pub(crate) struct Quotas {
    per_address: KeyedLimiter<[u8; 32]>,
    per_user: KeyedLimiter<UserId>,
    per_team: KeyedLimiter<TeamId>,
    /// Of teams with a limit of their own.
    own: OwnBuckets<TeamId>,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            per_address: KeyedLimiter::per_hour(PER_ADDRESS),
            per_user: KeyedLimiter::per_day(PER_USER),
            per_team: KeyedLimiter::per_day(INVITATIONS_PER_DAY),
            own: OwnBuckets::new(DAY),
        }
    }
}

impl Quotas {
    /// Takes one message to this address from its limit, whether or not an account has the address.
    pub(crate) fn may_mail(&self, email: &Email) -> bool {
        self.per_address.take(&digest::of(email.as_str())).is_ok()
    }

    /// Takes one invitation from the limits of this user and this team. `own` is the team's own limit per day.
    pub(crate) fn may_invite(&self, user: UserId, team: TeamId, own: Option<NonZeroU32>) -> bool {
        let may_team = || match own {
            Some(per_day) => self.own.take(team, per_day).is_ok(),
            None => self.per_team.take(&team).is_ok(),
        };
        self.per_user.take(&user).is_ok() && may_team()
    }

    /// Forgets the own limits of other teams.
    pub(crate) fn retain_own(&self, is_own: impl Fn(TeamId) -> bool) {
        self.own.retain(|team| is_own(*team));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_limited_per_address_and_invitations_per_user_and_team() {
        let quotas = Quotas::default();
        let (ada, eve) = (Email::parse("ada@example.com").unwrap(), Email::parse("eve@example.com").unwrap());
        let allowed = (0..20).filter(|_| quotas.may_mail(&ada)).count();
        assert_eq!(allowed, 5);
        assert!(quotas.may_mail(&eve));
        let (user, team) = (|id| UserId(uuid::Uuid::from_u128(id)), |id| TeamId(uuid::Uuid::from_u128(id)));
        // Another team does not help a user, nor another user a team.
        assert_eq!((0..100).filter(|n| quotas.may_invite(user(1), team(n % 4), None)).count(), 30);
        assert_eq!((0..100).filter(|n| quotas.may_invite(user(n + 2), team(9), None)).count(), 50);
        assert!(quotas.may_invite(user(1000), team(10), None));
    }

    #[test]
    fn made_up_addresses_keep_nobody_from_mail() {
        let quotas = Quotas::default();
        for number in 0..60_000 {
            assert!(quotas.may_mail(&Email::parse(&format!("nobody-{number}@example.com")).unwrap()), "{number}");
        }
        assert!(quotas.may_mail(&Email::parse("ada@example.com").unwrap()));
    }

    #[test]
    fn own_limit_of_a_team_replaces_the_usual_one() {
        let quotas = Quotas::default();
        let (user, team) = (|id| UserId(uuid::Uuid::from_u128(id)), TeamId(uuid::Uuid::from_u128(1)));
        let invited = |own: Option<u32>| {
            let own = own.and_then(NonZeroU32::new);
            (0..200).filter(|n| quotas.may_invite(user(*n), team, own)).count()
        };
        // The users of a case have used up a part of their own limit, which is 30.
        assert_eq!((invited(Some(2)), invited(Some(2)), invited(Some(70))), (2, 0, 70));
        quotas.retain_own(|_| false);
        assert_eq!(invited(None), 50);
    }
}
