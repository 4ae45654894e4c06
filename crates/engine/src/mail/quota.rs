//! How many letters one person may be sent, and one team may have sent, so that grabd is nobody's means to pester others.

use std::num::NonZeroU32;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use grabd_domain::accounts::Email;
use grabd_domain::ids::TeamId;

use crate::digest;

/// Letters to one address per hour.
const TO_ONE: u32 = 5;
/// Invitations by one team per hour.
const BY_TEAM: u32 = 30;
/// Addresses and teams that are remembered. Beyond that nobody new is written to until others have been forgotten, which
/// takes an hour at most.
const MOST: usize = 20_000;

/// Both limits.
pub(crate) struct Quotas {
    to_one: DefaultKeyedRateLimiter<[u8; 32]>,
    by_team: DefaultKeyedRateLimiter<TeamId>,
}

impl Default for Quotas {
    fn default() -> Self {
        let per_hour = |count| Quota::per_hour(NonZeroU32::new(count).expect("the constants above are not zero"));
        Self { to_one: RateLimiter::keyed(per_hour(TO_ONE)), by_team: RateLimiter::keyed(per_hour(BY_TEAM)) }
    }
}

impl Quotas {
    /// May one more letter go to this address? It counts whether or not anybody has it.
    pub(crate) fn may_write_to(&self, email: &Email) -> bool {
        take(&self.to_one, &digest::of(email.as_str()))
    }

    /// May this team invite one more?
    pub(crate) fn may_invite(&self, team: TeamId) -> bool {
        take(&self.by_team, &team)
    }
}

fn take<K: std::hash::Hash + Eq + Clone>(limiter: &DefaultKeyedRateLimiter<K>, key: &K) -> bool {
    if limiter.len() >= MOST {
        limiter.retain_recent();
    }
    limiter.len() < MOST && limiter.check_key(key).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_pestered() {
        let quotas = Quotas::default();
        let (ada, eve) = (Email::parse("ada@example.com").unwrap(), Email::parse("eve@example.com").unwrap());
        let written = (0..20).filter(|_| quotas.may_write_to(&ada)).count();
        assert_eq!(written, 5);
        assert!(quotas.may_write_to(&eve));
        let team = TeamId(uuid::Uuid::from_u128(1));
        assert_eq!((0..50).filter(|_| quotas.may_invite(team)).count(), 30);
    }
}
