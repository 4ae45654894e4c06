//! Leases that have ended, for the payers of their slots.

use grabd_domain::Timestamp;
use grabd_domain::admission::Payer;
use grabd_domain::ids::{GrabId, LeaseToken, SessionId};

use super::{Dispatcher, State};
use crate::admission::EndedLease;

impl State {
    /// Removes a lease that has ended. Its renderer may report that the slot is used for longer.
    pub(super) fn end_lease(&mut self, token: LeaseToken) -> Option<EndedLease> {
        let held = self.leases.remove(&token)?;
        self.ended.leases.insert(token, (held.session, held.ended));
        Some(held.ended)
    }

    /// The number of slots that ended leases of payers that never paid still use. No more than there are slots that are
    /// neither idle nor leased: a renderer of an earlier version does not tell when a slot is free.
    pub(super) fn unpaid_in_use(&self) -> usize {
        let count = |id: &SessionId| {
            let unpaid = |(session, ended): &&(SessionId, EndedLease)| session == id && !ended.payer.has_paid;
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
    /// The payer of a lease of this session that has ended. `None` the next time.
    pub(crate) fn take_ended(&self, session: SessionId, token: LeaseToken) -> Option<Payer> {
        let mut state = self.lock();
        state.ended.leases.get(&token).filter(|(of, _)| *of == session)?;
        state.ended.leases.remove(&token).map(|(_, ended)| ended.payer)
    }

    /// Notes how long the slot of an attempt that was lost was used. If the grab fails, its page is probably the cause.
    pub(crate) fn note_lost(&self, grab: GrabId, ended: EndedLease, now: Timestamp) {
        let lost = ended.lost.saturating_add(ended.used(now));
        self.lock().ended.lost.insert(grab, (lost, now));
    }
}
