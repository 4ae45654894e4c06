//! Rate limits per recipient address, and per inviting person and team, so that grabd cannot be used to send spam.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use grabd_domain::accounts::Email;
use grabd_domain::ids::{TeamId, UserId};

use crate::digest;
use crate::limits::OwnBuckets;

/// Messages per address and hour.
const PER_ADDRESS: u32 = 5;
/// Invitations per person and day, in all their teams.
const PER_PERSON: u32 = 30;
/// Invitations per team and day, for teams without a limit of their own: one may have as many open.
pub(crate) const INVITATIONS_PER_DAY: u32 = 50;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Addresses, people and teams that are tracked. Beyond that new ones are refused until entries expire, which takes a
/// day at most.
const MAX_TRACKED: usize = 20_000;

/// The limits per address, per person and per team.
pub(crate) struct Quotas {
    per_address: DefaultKeyedRateLimiter<[u8; 32]>,
    per_person: DefaultKeyedRateLimiter<UserId>,
    per_team: DefaultKeyedRateLimiter<TeamId>,
    /// Of teams with a limit of their own.
    own: OwnBuckets<TeamId>,
}

impl Default for Quotas {
    fn default() -> Self {
        let count = |count| NonZeroU32::new(count).expect("the constants are not zero");
        // All at once, and then one after each part of the day.
        let per_day = |number| {
            let quota = Quota::with_period(DAY / number).expect("the constants are not zero");
            quota.allow_burst(count(number))
        };
        Self {
            per_address: RateLimiter::keyed(Quota::per_hour(count(PER_ADDRESS))),
            per_person: RateLimiter::keyed(per_day(PER_PERSON)),
            per_team: RateLimiter::keyed(per_day(INVITATIONS_PER_DAY)),
            own: OwnBuckets::new(DAY),
        }
    }
}

impl Quotas {
    /// Takes one message to this address from its limit, whether or not an account has the address.
    pub(crate) fn may_mail(&self, email: &Email) -> bool {
        take(&self.per_address, &digest::of(email.as_str()))
    }

    /// Takes one invitation from the limits of this person and this team. `own` is the team's own limit per day.
    pub(crate) fn may_invite(&self, person: UserId, team: TeamId, own: Option<NonZeroU32>) -> bool {
        let may_team = || match own {
            Some(per_day) => self.own.take(team, per_day).is_ok(),
            None => take(&self.per_team, &team),
        };
        take(&self.per_person, &person) && may_team()
    }

    /// Forgets the own limits of other teams.
    pub(crate) fn retain_own(&self, is_own: impl Fn(TeamId) -> bool) {
        self.own.retain(|team| is_own(*team));
    }
}

fn take<K: std::hash::Hash + Eq + Clone>(limiter: &DefaultKeyedRateLimiter<K>, key: &K) -> bool {
    if limiter.len() >= MAX_TRACKED {
        limiter.retain_recent();
    }
    limiter.len() < MAX_TRACKED && limiter.check_key(key).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_limited_per_address_and_invitations_per_person_and_team() {
        let quotas = Quotas::default();
        let (ada, eve) = (Email::parse("ada@example.com").unwrap(), Email::parse("eve@example.com").unwrap());
        let allowed = (0..20).filter(|_| quotas.may_mail(&ada)).count();
        assert_eq!(allowed, 5);
        assert!(quotas.may_mail(&eve));
        let (person, team) = (|id| UserId(uuid::Uuid::from_u128(id)), |id| TeamId(uuid::Uuid::from_u128(id)));
        // Another team does not help a person, nor another person a team.
        assert_eq!((0..100).filter(|n| quotas.may_invite(person(1), team(n % 4), None)).count(), 30);
        assert_eq!((0..100).filter(|n| quotas.may_invite(person(n + 2), team(9), None)).count(), 50);
        assert!(quotas.may_invite(person(1000), team(10), None));
    }

    #[test]
    fn own_limit_of_a_team_replaces_the_usual_one() {
        let quotas = Quotas::default();
        let (person, team) = (|id| UserId(uuid::Uuid::from_u128(id)), TeamId(uuid::Uuid::from_u128(1)));
        let invited = |own: Option<u32>| {
            let own = own.and_then(NonZeroU32::new);
            (0..200).filter(|n| quotas.may_invite(person(*n), team, own)).count()
        };
        // The people of a case have used up a part of their own limit, which is 30.
        assert_eq!((invited(Some(2)), invited(Some(2)), invited(Some(70))), (2, 0, 70));
        quotas.retain_own(|_| false);
        assert_eq!(invited(None), 50);
    }
}
