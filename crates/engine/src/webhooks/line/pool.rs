//! The attempts at endpoints of one pace, and whose turn is next.

use std::collections::{HashMap, VecDeque};

use grabd_domain::ids::{EndpointId, PayerId};

use super::Pace;

/// How many attempts a pool may make at the same time.
#[derive(Clone, Copy, Debug)]
struct Limits {
    total: usize,
    /// For one payer. At most half of the total, so that no payer alone keeps the others waiting.
    per_payer: usize,
    per_endpoint: usize,
}

/// Connections to endpoints that do not respond cost some memory and no processor time, so there are as many of these as
/// of others. An endpoint that may not respond is tried with one message at a time.
const fn limits(pace: Pace) -> Limits {
    match pace {
        Pace::Quick => Limits { total: 32, per_payer: 16, per_endpoint: 4 },
        Pace::Unknown => Limits { total: 16, per_payer: 4, per_endpoint: 1 },
        Pace::Late => Limits { total: 32, per_payer: 8, per_endpoint: 4 },
        Pace::Silent => Limits { total: 32, per_payer: 2, per_endpoint: 1 },
    }
}

/// The pools of all paces.
#[derive(Debug)]
pub(super) struct Pools {
    quick: Pool,
    unknown: Pool,
    late: Pool,
    silent: Pool,
}

#[derive(Debug)]
pub(super) struct Pool {
    limits: Limits,
    in_progress: usize,
    /// Payers with endpoints that wait, and with attempts in progress.
    payers: HashMap<PayerId, Payer>,
    /// Payers with endpoints that wait, the next one first.
    turns: VecDeque<PayerId>,
}

#[derive(Debug, Default)]
struct Payer {
    in_progress: usize,
    /// Endpoints with deliveries that wait, the next one first.
    turns: VecDeque<EndpointId>,
}

impl Default for Pools {
    fn default() -> Self {
        let pool = |pace| Pool { limits: limits(pace), in_progress: 0, payers: HashMap::new(), turns: VecDeque::new() };
        Self {
            quick: pool(Pace::Quick),
            unknown: pool(Pace::Unknown),
            late: pool(Pace::Late),
            silent: pool(Pace::Silent),
        }
    }
}

impl Pools {
    pub(super) const fn of(&mut self, pace: Pace) -> &mut Pool {
        match pace {
            Pace::Quick => &mut self.quick,
            Pace::Unknown => &mut self.unknown,
            Pace::Late => &mut self.late,
            Pace::Silent => &mut self.silent,
        }
    }
}

impl Pool {
    /// Notes that an endpoint has deliveries that wait.
    pub(super) fn add(&mut self, payer: PayerId, endpoint: EndpointId) {
        let of = self.payers.entry(payer).or_default();
        if of.turns.contains(&endpoint) {
            return;
        }
        if of.turns.is_empty() {
            self.turns.push_back(payer);
        }
        of.turns.push_back(endpoint);
    }

    /// Notes that no delivery of an endpoint waits here.
    pub(super) fn remove(&mut self, payer: PayerId, endpoint: EndpointId) {
        let Some(of) = self.payers.get_mut(&payer) else { return };
        of.turns.retain(|other| *other != endpoint);
        if of.turns.is_empty() {
            self.turns.retain(|other| *other != payer);
            self.forget_idle(payer);
        }
    }

    /// Starts an attempt: for the payer with the fewest in progress, then for the one that has waited longest. `may_start`
    /// says whether an endpoint has fewer attempts than this limit. None: there are enough attempts, or none waits that may
    /// start.
    pub(super) fn next(&mut self, may_start: impl Fn(&EndpointId, usize) -> bool) -> Option<(PayerId, EndpointId)> {
        let Limits { total, per_payer, per_endpoint } = self.limits;
        if self.in_progress >= total {
            return None;
        }
        let is_free = |endpoint: &EndpointId| may_start(endpoint, per_endpoint);
        let eligible = self.turns.iter().enumerate().filter_map(|(at, payer)| {
            let of = self.payers.get(payer).filter(|of| of.in_progress < per_payer)?;
            Some((of.in_progress, at, of.turns.iter().position(is_free)?))
        });
        let (_, at, turn) = eligible.min()?;
        let payer = self.turns.remove(at)?;
        self.turns.push_back(payer);
        let of = self.payers.get_mut(&payer)?;
        let endpoint = of.turns.remove(turn)?;
        of.turns.push_back(endpoint);
        of.in_progress += 1;
        self.in_progress += 1;
        Some((payer, endpoint))
    }

    /// Starts an attempt that was begun in another pool. False: there are enough.
    pub(super) fn start(&mut self, payer: PayerId) -> bool {
        let of_payer = self.payers.get(&payer).map_or(0, |of| of.in_progress);
        if self.in_progress >= self.limits.total || of_payer >= self.limits.per_payer {
            return false;
        }
        self.in_progress += 1;
        self.payers.entry(payer).or_default().in_progress += 1;
        true
    }

    /// Ends an attempt.
    pub(super) fn end(&mut self, payer: PayerId) {
        self.in_progress = self.in_progress.saturating_sub(1);
        if let Some(of) = self.payers.get_mut(&payer) {
            of.in_progress = of.in_progress.saturating_sub(1);
        }
        self.forget_idle(payer);
    }

    fn forget_idle(&mut self, payer: PayerId) {
        if self.payers.get(&payer).is_some_and(|of| of.in_progress == 0 && of.turns.is_empty()) {
            self.payers.remove(&payer);
        }
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.in_progress == 0 && self.payers.is_empty() && self.turns.is_empty()
    }
}
