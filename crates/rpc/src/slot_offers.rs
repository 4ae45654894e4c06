//! The slots of a renderer that is attached to several cores. Each slot is offered to one core at a time, so it is
//! never promised twice. A core that does not use an offer returns it, and the slot is offered to the next core.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

/// All slots of a renderer. The lock is only held for a few map operations, hence a std mutex.
pub(crate) struct SlotOffers(Mutex<State>);

struct State {
    /// Slots that are neither offered nor in use.
    free: usize,
    cores: BTreeMap<SocketAddr, Offered>,
    /// The core that got the last offer. The next one is offered to the one after it.
    last: Option<SocketAddr>,
}

struct Offered {
    /// Slots that are offered to this core, and that it has neither used nor returned.
    slots: usize,
    /// Takes the number of further offered slots.
    offers: mpsc::UnboundedSender<usize>,
}

impl SlotOffers {
    pub(crate) fn new(slots: usize) -> Self {
        Self(Mutex::new(State { free: slots, cores: BTreeMap::new(), last: None }))
    }

    /// Adds a core whose session began. Returns the offers for it. At most as many are queued as there are slots.
    pub(crate) fn add_core(&self, core: SocketAddr) -> mpsc::UnboundedReceiver<usize> {
        let (offers, receiver) = mpsc::unbounded_channel();
        let mut state = self.lock();
        if let Some(former) = state.cores.insert(core, Offered { slots: 0, offers }) {
            state.free += former.slots;
        }
        state.distribute();
        receiver
    }

    /// Removes a core whose session ended. What was offered to it is offered to others.
    pub(crate) fn remove_core(&self, core: SocketAddr) {
        let mut state = self.lock();
        if let Some(former) = state.cores.remove(&core) {
            state.free += former.slots;
        }
        state.distribute();
    }

    /// Number of cores with a session.
    pub(crate) fn core_count(&self) -> usize {
        self.lock().cores.len()
    }

    /// A core used an offered slot. Returns whether it had one.
    pub(crate) fn take(&self, core: SocketAddr) -> bool {
        let mut state = self.lock();
        match state.cores.get_mut(&core) {
            Some(offered) if offered.slots > 0 => {
                offered.slots -= 1;
                true
            }
            Some(_) | None => false,
        }
    }

    /// A core returned offered slots that it did not use. The next core gets them.
    pub(crate) fn return_from(&self, core: SocketAddr, slots: usize) {
        let mut state = self.lock();
        let Some(offered) = state.cores.get_mut(&core) else { return };
        let returned = slots.min(offered.slots);
        offered.slots -= returned;
        state.free += returned;
        state.last = Some(core);
        state.distribute();
    }

    /// A slot in use became free.
    pub(crate) fn free(&self) {
        let mut state = self.lock();
        state.free += 1;
        state.distribute();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn distribute(&mut self) {
        while self.free > 0 {
            let Some(next) = self.next() else { return };
            let Some(offered) = self.cores.get_mut(&next) else { return };
            self.last = Some(next);
            if offered.offers.send(1).is_err() {
                // The session is ending; it removes its core.
                let former = self.cores.remove(&next);
                self.free += former.map_or(0, |former| former.slots);
                continue;
            }
            offered.slots += 1;
            self.free -= 1;
        }
    }

    /// The core after the last one, in a circle.
    fn next(&self) -> Option<SocketAddr> {
        let after = self.last.and_then(|last| {
            let later = self.cores.range((std::ops::Bound::Excluded(last), std::ops::Bound::Unbounded)).next();
            later.map(|(core, _)| *core)
        });
        after.or_else(|| self.cores.keys().next().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(number: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, number], 1))
    }

    fn count(receiver: &mut mpsc::UnboundedReceiver<usize>) -> usize {
        std::iter::from_fn(|| receiver.try_recv().ok()).sum()
    }

    #[test]
    fn slot_is_offered_to_one_core_at_a_time_in_turns() {
        let offers = SlotOffers::new(3);
        let mut first = offers.add_core(core(1));
        assert_eq!(count(&mut first), 3);
        let mut second = offers.add_core(core(2));
        assert_eq!(count(&mut second), 0, "all are offered to the first");
        offers.return_from(core(1), 2);
        assert_eq!((count(&mut first), count(&mut second)), (1, 1), "the next core is first");
        // Two at the first, one at the second.
        assert!(offers.take(core(2)));
        assert!(!offers.take(core(2)), "it has no other");
        assert!(offers.take(core(1)) && offers.take(core(1)) && !offers.take(core(1)));
        offers.return_from(core(1), 5);
        assert_eq!((count(&mut first), count(&mut second)), (0, 0), "it has nothing to return");
        offers.free();
        offers.free();
        assert_eq!((count(&mut first), count(&mut second)), (1, 1));
    }

    #[test]
    fn offers_to_a_lost_core_go_to_the_others() {
        let offers = SlotOffers::new(2);
        let mut first = offers.add_core(core(1));
        let mut second = offers.add_core(core(2));
        assert!(offers.take(core(1)));
        offers.remove_core(core(1));
        assert_eq!((count(&mut first), count(&mut second)), (2, 1));
        // The one in use becomes free when its render has ended.
        offers.free();
        assert_eq!(count(&mut second), 1);
        let mut again = offers.add_core(core(1));
        offers.return_from(core(2), 1);
        assert_eq!((count(&mut again), count(&mut second)), (1, 0));
        // A receiver that is gone gets no offer.
        drop(again);
        offers.return_from(core(2), 1);
        offers.remove_core(core(1));
        assert_eq!(count(&mut second), 2);
    }
}
