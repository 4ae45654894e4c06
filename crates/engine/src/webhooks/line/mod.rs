//! The line of due deliveries: which of them is sent next. Kept in memory, since the database has what it consists of.
//!
//! The payer with the fewest attempts in progress is next, then the one that has waited longest, and the endpoints of an
//! payer take turns. Endpoints are tried from one of four pools, by the response to their last attempt, and each pool has
//! attempts of its own. So endpoints that do not respond only delay others that do not respond either, whatever their number.

mod pace;
mod pool;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::ids::{DeliveryId, EndpointId, PayerId};
use grabd_store::webhooks::DueDelivery;

pub(crate) use self::pace::{Pace, QUICK_LIMIT};
use self::pool::Pools;

/// How long the pace of an endpoint is remembered.
const REMEMBERED: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// Maximum number of endpoints whose pace is remembered. Beyond it, those seen longest ago are forgotten.
const MAX_REMEMBERED: usize = 20_000;
/// Maximum number of deliveries in the line, which have 100 bytes each. Beyond it, those of the payer with the most are
/// left to a later reading of the database.
const MAX_WAITING: usize = 50_000;

/// An attempt that may start, or is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) delivery: DeliveryId,
    pub(crate) endpoint: EndpointId,
    payer: PayerId,
    /// The pool whose attempts it counts in.
    pool: Pace,
}

/// The due deliveries that wait, and the attempts in progress.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pools: Pools,
    endpoints: HashMap<EndpointId, Endpoint>,
    /// Attempts in progress.
    turns: HashMap<DeliveryId, Turn>,
    /// Deliveries that wait or are being sent.
    known: HashSet<DeliveryId>,
    waiting: usize,
    paces: HashMap<EndpointId, (Pace, Timestamp)>,
}

/// An endpoint with deliveries that wait or are being sent.
#[derive(Debug)]
struct Endpoint {
    payer: PayerId,
    waiting: VecDeque<DeliveryId>,
    in_progress: usize,
}

impl Line {
    /// Adds deliveries that are due, in the order in which they became due, unless they are in the line.
    pub(crate) fn add(&mut self, due: impl IntoIterator<Item = DueDelivery>, now: Timestamp) {
        for DueDelivery { id, endpoint, payer, due_at: _, has_timed_out } in due {
            if !self.known.insert(id) {
                continue;
            }
            if has_timed_out && self.pace(endpoint) == Pace::Unknown {
                self.remember(endpoint, Pace::Silent, now);
            }
            let pace = self.pace(endpoint);
            let of = self.endpoints.entry(endpoint).or_insert_with(|| Endpoint {
                payer,
                waiting: VecDeque::new(),
                in_progress: 0,
            });
            of.waiting.push_back(id);
            self.waiting += 1;
            if of.waiting.len() == 1 {
                self.pools.of(pace).add(of.payer, endpoint);
            }
            if self.waiting > MAX_WAITING {
                self.leave_out_last();
            }
        }
    }

    /// The attempts that may start now. Each must be ended with [`Line::end`].
    pub(crate) fn take(&mut self) -> Vec<Turn> {
        let mut turns = Vec::new();
        for pace in Pace::ALL {
            while let Some(turn) = self.take_from(pace) {
                turns.push(turn);
            }
        }
        turns
    }

    fn take_from(&mut self, pace: Pace) -> Option<Turn> {
        let endpoints = &self.endpoints;
        let may_start = |endpoint: &EndpointId, limit: usize| {
            endpoints.get(endpoint).is_some_and(|endpoint| endpoint.in_progress < limit)
        };
        let (payer, endpoint) = self.pools.of(pace).next(may_start)?;
        let of = self.endpoints.get_mut(&endpoint)?;
        let delivery = of.waiting.pop_front()?;
        of.in_progress += 1;
        self.waiting -= 1;
        if of.waiting.is_empty() {
            self.pools.of(pace).remove(payer, endpoint);
        }
        let turn = Turn { delivery, endpoint, payer, pool: pace };
        self.turns.insert(delivery, turn);
        Some(turn)
    }

    /// Moves an attempt that takes long to the attempts of late endpoints. False: they are too many, so it must end.
    pub(crate) fn slow_down(&mut self, delivery: DeliveryId) -> bool {
        let Some(turn) = self.turns.get_mut(&delivery) else { return false };
        if matches!(turn.pool, Pace::Late | Pace::Silent) {
            return true;
        }
        if !self.pools.of(Pace::Late).start(turn.payer) {
            return false;
        }
        self.pools.of(turn.pool).end(turn.payer);
        turn.pool = Pace::Late;
        true
    }

    /// Ends an attempt. `pace` is how the endpoint responded, if it was made.
    pub(crate) fn end(&mut self, delivery: DeliveryId, pace: Option<Pace>, now: Timestamp) {
        let Some(turn) = self.turns.remove(&delivery) else { return };
        self.known.remove(&delivery);
        if let Some(pace) = pace {
            self.change_pace(turn.endpoint, pace, now);
        }
        self.pools.of(turn.pool).end(turn.payer);
        if let Some(of) = self.endpoints.get_mut(&turn.endpoint) {
            of.in_progress = of.in_progress.saturating_sub(1);
            if of.in_progress == 0 && of.waiting.is_empty() {
                self.endpoints.remove(&turn.endpoint);
            }
        }
    }

    /// Whether more deliveries can be added without others being left out.
    pub(crate) const fn has_room(&self) -> bool {
        self.waiting < MAX_WAITING
    }

    fn pace(&self, endpoint: EndpointId) -> Pace {
        self.paces.get(&endpoint).map_or(Pace::Unknown, |(pace, _)| *pace)
    }

    /// Moves the waiting deliveries of the endpoint to the pool of its pace.
    fn change_pace(&mut self, endpoint: EndpointId, pace: Pace, now: Timestamp) {
        let before = self.pace(endpoint);
        self.remember(endpoint, pace, now);
        if before == pace {
            return;
        }
        if let Some(of) = self.endpoints.get(&endpoint).filter(|of| !of.waiting.is_empty()) {
            self.pools.of(before).remove(of.payer, endpoint);
            self.pools.of(pace).add(of.payer, endpoint);
        }
    }

    fn remember(&mut self, endpoint: EndpointId, pace: Pace, now: Timestamp) {
        self.paces.insert(endpoint, (pace, now));
        if self.paces.len() > MAX_REMEMBERED {
            self.forget(now);
        }
    }

    /// Forgets endpoints that were seen long ago and have no delivery in the line; at least a tenth of them if possible.
    fn forget(&mut self, now: Timestamp) {
        let mut seen: Vec<Timestamp> = self.paces.values().map(|(_, at)| *at).collect();
        seen.sort_unstable();
        let oldest = seen.get(MAX_REMEMBERED / 10).copied().unwrap_or(now).max(now - REMEMBERED);
        let endpoints = &self.endpoints;
        self.paces.retain(|endpoint, (_, at)| *at > oldest || endpoints.contains_key(endpoint));
    }

    /// Leaves out the delivery that was added last of the payer with the most.
    fn leave_out_last(&mut self) {
        let mut of_payer: HashMap<PayerId, usize> = HashMap::new();
        for endpoint in self.endpoints.values() {
            *of_payer.entry(endpoint.payer).or_default() += endpoint.waiting.len();
        }
        let Some((payer, _)) = of_payer.into_iter().max_by_key(|(_, waiting)| *waiting) else { return };
        let of_payer = self.endpoints.iter_mut().filter(|(_, of)| of.payer == payer);
        let Some((&endpoint, of)) = of_payer.max_by_key(|(_, of)| of.waiting.len()) else { return };
        // A tenth at once, since finding the payer takes some time.
        for _ in 0..of.waiting.len().div_ceil(10) {
            if let Some(delivery) = of.waiting.pop_back() {
                self.known.remove(&delivery);
                self.waiting -= 1;
            }
        }
        if of.waiting.is_empty() {
            let pace = self.pace(endpoint);
            self.pools.of(pace).remove(payer, endpoint);
        }
    }
}
