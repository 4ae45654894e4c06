//! Rate limits per recipient address, and per inviting person and team, so that grabd cannot be used to send spam.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use grabd_domain::accounts::Email;
use grabd_domain::ids::{TeamId, UserId};

use crate::digest;

/// Messages per address and hour.
const PER_ADDRESS: u32 = 5;
/// Invitations per person and day, in all their teams.
const PER_PERSON: u32 = 30;
/// Invitations per team and day: one may have as many open.
const PER_TEAM: u32 = 50;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Addresses, people and teams that are tracked. Beyond that new ones are refused until entries expire, which takes a
/// day at most.
const MAX_TRACKED: usize = 20_000;

/// The limits per address, per person and per team.
pub(crate) struct Quotas {
    per_address: DefaultKeyedRateLimiter<[u8; 32]>,
    per_person: DefaultKeyedRateLimiter<UserId>,
    per_team: DefaultKeyedRateLimiter<TeamId>,
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
            per_team: RateLimiter::keyed(per_day(PER_TEAM)),
        }
    }
}

impl Quotas {
    /// Takes one message to this address from its limit, whether or not an account has the address.
    pub(crate) fn may_mail(&self, email: &Email) -> bool {
        take(&self.per_address, &digest::of(email.as_str()))
    }

    /// Takes one invitation from the limits of this person and this team.
    pub(crate) fn may_invite(&self, person: UserId, team: TeamId) -> bool {
        take(&self.per_person, &person) && take(&self.per_team, &team)
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
        assert_eq!((0..100).filter(|n| quotas.may_invite(person(1), team(n % 4))).count(), 30);
        assert_eq!((0..100).filter(|n| quotas.may_invite(person(n + 2), team(9))).count(), 50);
        assert!(quotas.may_invite(person(1000), team(10)));
    }
}
