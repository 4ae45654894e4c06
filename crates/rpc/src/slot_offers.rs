//! The slots of a renderer that is attached to several cores. Each slot is offered to one core at a time, so it is
//! never promised twice. A core that does not use an offer returns it, and the slot is offered to the next core.
//!
//! When the session with a core breaks, the renderer reports that to other cores, which requeue its grabs.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio::sync::mpsc;

/// Number of cores that a broken session is reported to. One is enough, unless it is going away, too.
const REPORT_TO: usize = 2;

/// A message for a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CoreMessage {
    /// Offers this number of further slots.
    Offer(usize),
    /// The session with this id, with another core, broke.
    BrokenSession(String),
}

/// All slots of a renderer. The lock is only held for a few map operations, hence no asynchronous one.
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
    messages: mpsc::UnboundedSender<CoreMessage>,
}

impl SlotOffers {
    pub(crate) fn new(slots: usize) -> Self {
        Self(Mutex::new(State { free: slots, cores: BTreeMap::new(), last: None }))
    }

    /// Adds a core whose session began. Returns the messages for it: at most as many offers as there are slots, and one
    /// message for each session that breaks.
    pub(crate) fn add_core(&self, core: SocketAddr) -> mpsc::UnboundedReceiver<CoreMessage> {
        let (messages, receiver) = mpsc::unbounded_channel();
        let mut state = self.0.lock();
        if let Some(former) = state.cores.insert(core, Offered { slots: 0, messages }) {
            state.free += former.slots;
        }
        state.distribute();
        receiver
    }

    /// Removes a core whose session ended. What was offered to it is offered to others.
    pub(crate) fn remove_core(&self, core: SocketAddr) {
        let mut state = self.0.lock();
        if let Some(former) = state.cores.remove(&core) {
            state.free += former.slots;
        }
        state.distribute();
    }

    /// Reports to other cores that the session with a core broke. That core must have been removed before.
    pub(crate) fn report_broken(&self, session: &str) {
        for offered in self.0.lock().cores.values().take(REPORT_TO) {
            // A session that is ending takes no messages.
            let _ = offered.messages.send(CoreMessage::BrokenSession(session.to_owned()));
        }
    }

    /// Number of cores with a session.
    pub(crate) fn core_count(&self) -> usize {
        self.0.lock().cores.len()
    }

    /// A core used an offered slot. Returns whether it had one.
    pub(crate) fn take(&self, core: SocketAddr) -> bool {
        let mut state = self.0.lock();
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
        let mut state = self.0.lock();
        let Some(offered) = state.cores.get_mut(&core) else { return };
        let returned = slots.min(offered.slots);
        offered.slots -= returned;
        state.free += returned;
        state.last = Some(core);
        state.distribute();
    }

    /// A slot in use became free.
    pub(crate) fn free(&self) {
        let mut state = self.0.lock();
        state.free += 1;
        state.distribute();
    }
}

impl State {
    fn distribute(&mut self) {
        while self.free > 0 {
            let Some(next) = self.next() else { return };
            let Some(offered) = self.cores.get_mut(&next) else { return };
            self.last = Some(next);
            if offered.messages.send(CoreMessage::Offer(1)).is_err() {
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

    fn count(receiver: &mut mpsc::UnboundedReceiver<CoreMessage>) -> usize {
        let offered = |message| match message {
            CoreMessage::Offer(slots) => slots,
            CoreMessage::BrokenSession(session) => panic!("{session}"),
        };
        std::iter::from_fn(|| receiver.try_recv().ok()).map(offered).sum()
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

    #[test]
    fn broken_session_is_reported_to_two_other_cores() {
        let offers = SlotOffers::new(1);
        let mut receivers: Vec<_> = (1..=4).map(|number| offers.add_core(core(number))).collect();
        offers.remove_core(core(1));
        let offered = |receiver: &mut mpsc::UnboundedReceiver<CoreMessage>| receiver.try_recv();
        assert_eq!(
            receivers.iter_mut().filter_map(|receiver| offered(receiver).ok()).count(),
            2,
            "both offers of the slot"
        );
        offers.report_broken("s");
        let reported: Vec<_> = receivers.iter_mut().map(|receiver| receiver.try_recv().ok()).collect();
        let broken = Some(CoreMessage::BrokenSession("s".to_owned()));
        assert_eq!(reported, [None, broken.clone(), broken, None]);
    }
}
