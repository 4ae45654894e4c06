//! Leases that have ended, for the accounts of their slots.

use std::collections::HashMap;
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::admission::Account;
use grabd_domain::ids::{GrabId, LeaseToken, SessionId};

use super::{Dispatcher, MAX_LEASE, State};

/// A lease that has ended, for the account of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedLease {
    /// The account of the grab.
    pub(crate) account: Account,
    /// When the slot was assigned.
    pub(crate) since: Timestamp,
    /// Number of the attempt.
    pub(crate) attempt: u32,
    /// How long the slots of earlier attempts were used, which this process lost.
    pub(crate) lost: Duration,
}

/// Leases that ended a short time ago. Their number is bounded by the time for which they are remembered.
#[derive(Default)]
pub(super) struct EndedLeases {
    /// Their slots may still be in use.
    leases: HashMap<LeaseToken, (SessionId, EndedLease)>,
    /// How long the slots of attempts were used that were lost, and when the last one was, by grab.
    lost: HashMap<GrabId, (Duration, Timestamp)>,
}

impl EndedLeases {
    pub(super) fn forget_session(&mut self, id: SessionId) {
        self.leases.retain(|_, (session, _)| *session != id);
    }

    pub(super) fn forget_expired(&mut self, now: Timestamp) {
        self.leases.retain(|_, (_, ended)| now.since(ended.since) < 2 * MAX_LEASE);
        self.lost.retain(|_, (_, at)| now.since(*at) < MAX_LEASE);
    }

    /// How long the slots of earlier attempts at a grab were used.
    pub(super) fn take_lost(&mut self, grab: GrabId) -> Duration {
        self.lost.remove(&grab).map_or(Duration::ZERO, |(lost, _)| lost)
    }
}

impl State {
    /// Removes a lease that has ended. Its renderer may report that the slot is used for longer.
    pub(super) fn end_lease(&mut self, token: LeaseToken) -> Option<EndedLease> {
        let held = self.leases.remove(&token)?;
        self.ended.leases.insert(token, (held.session, held.ended));
        Some(held.ended)
    }

    /// The number of slots that ended leases of accounts that never paid still use. No more than there are slots that are
    /// neither idle nor leased: a renderer of an earlier version does not tell when a slot is free.
    pub(super) fn unpaid_in_use(&self) -> usize {
        let count = |id: &SessionId| {
            let unpaid = |(session, ended): &&(SessionId, EndedLease)| session == id && !ended.account.has_paid;
            self.ended.leases.values().filter(unpaid).count()
        };
        let in_use = self.sessions.iter().map(|(id, session)| {
            let leased = self.leases.values().filter(|held| held.session == *id).count();
            count(id).min(session.slots.all().saturating_sub(session.idle + leased))
        });
        in_use.sum()
    }
}

impl Dispatcher {
    /// The account of a lease of this session that has ended. `None` the next time.
    pub(crate) fn take_ended(&self, session: SessionId, token: LeaseToken) -> Option<Account> {
        let mut state = self.lock();
        state.ended.leases.get(&token).filter(|(of, _)| *of == session)?;
        state.ended.leases.remove(&token).map(|(_, ended)| ended.account)
    }

    /// Notes how long the slot of an attempt that was lost was used. If the grab fails, its page is probably the cause.
    pub(crate) fn note_lost(&self, grab: GrabId, ended: EndedLease, now: Timestamp) {
        let lost = ended.lost.saturating_add(ended.used(now));
        self.lock().ended.lost.insert(grab, (lost, now));
    }
}
