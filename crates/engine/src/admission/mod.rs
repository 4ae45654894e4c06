//! Admission of live renders: nobody keeps render slots busy for free.
//!
//! - A synchronous grab is refused at once if its expected wait is longer than its request can wait.
//! - Slots are shared by payer. That is a rule of the queue: see `grabd_store`'s creates and leases.
//! - Some slots are kept for payers that have paid while one of them is active.
//! - Each payer may use a number of seconds of failed renders per minute. Then its creates are refused, and its
//!   waiting jobs are delayed, until the budget is refilled.
//!
//! The last two are limits against strangers: they do not apply in a service without any, except to teams with a budget of
//! their own.
//!
//! The state is in memory. A restart forgets it, which costs one minute of budgets.

mod admit;
mod ended_lease;
mod load;
mod pressure;
mod read_pressure;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::admission::{FailureBudget, Payer, RenderTime};
use grabd_domain::ids::PayerId;
use grabd_domain::{Fault, Timestamp};
use parking_lot::Mutex;

use crate::limits::TeamLimits;

pub(crate) use admit::{admit, charge, own_load, refuse_wait, slot_used, slots, wait_limit};
pub(crate) use ended_lease::EndedLease;
pub(crate) use load::{Load, Occupancy};
pub(crate) use pressure::LastPressure;
pub use pressure::{Pressure, QueuePressure};

/// Settings of the operator.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether limits against strangers apply: the service is open to users whom its operator does not know.
    pub has_strangers: bool,
    /// Seconds of failed renders per minute of a payer that has paid. At least one.
    pub failed_seconds_per_minute: u32,
    /// The same for a payer that never paid. At least one.
    pub failed_seconds_per_minute_unpaid: u32,
    /// Percentage of the slots that is kept for payers that have paid.
    pub paid_slots_percent: u32,
}

impl Settings {
    /// Seconds of failed renders per minute of a payer without its own budget. `None`: any number.
    pub(crate) fn failed_seconds(&self, has_paid: bool) -> Option<u32> {
        let seconds = if has_paid { self.failed_seconds_per_minute } else { self.failed_seconds_per_minute_unpaid };
        self.has_strangers.then_some(seconds)
    }

    /// Percentage of the slots that is kept for payers that have paid while one of them is active.
    pub const fn kept_percent(&self) -> u32 {
        if self.has_strangers { self.paid_slots_percent } else { 0 }
    }
}

/// How long slots are kept after the last create of a payer that has paid.
const PAYING_ACTIVITY: Duration = Duration::from_secs(60 * 60);
/// Maximum number of remembered budgets. Full ones are forgotten first. More than this many payers cannot have failed
/// renders within a minute with the maximum number of slots.
const MAX_BUDGETS: usize = 16_384;

/// The state of admission.
pub(crate) struct Admission {
    settings: Settings,
    /// Budgets of payers that have their own.
    limits: Arc<TeamLimits>,
    state: Mutex<State>,
}

/// The lock is only held for a few map operations, hence no asynchronous one.
#[derive(Default)]
struct State {
    /// Of all renders.
    all: RenderTime,
    /// Of renders for payers that have paid.
    paid: RenderTime,
    /// Budgets that are not full.
    budgets: HashMap<PayerId, FailureBudget>,
    paying_seen_at: Option<Timestamp>,
}

/// How a slot was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotUse {
    /// For an image.
    Fine,
    /// For a page that failed, or until its deadline or its caller ended the grab.
    Failed,
}

impl Admission {
    pub(crate) fn new(settings: Settings, limits: Arc<TeamLimits>) -> Self {
        Self { settings, limits, state: Mutex::default() }
    }

    /// Percentage of the slots that is kept for payers that have paid now.
    pub(crate) fn kept_percent(&self, now: Timestamp) -> u32 {
        let seen = self.state.lock().paying_seen_at;
        let is_active = seen.is_some_and(|seen| now.since(seen) < PAYING_ACTIVITY);
        if is_active { self.settings.kept_percent() } else { 0 }
    }

    /// Notes that a payer that has paid is active. In a cluster, another process may have created its grab.
    pub(crate) fn note_paying(&self, now: Timestamp) {
        self.state.lock().paying_seen_at = Some(now);
    }

    /// Refuses a create while the payer's budget of failed renders is empty.
    fn check(&self, payer: Payer, now: Timestamp) -> Result<(), Fault> {
        let mut state = self.state.lock();
        if payer.has_paid {
            state.paying_seen_at = Some(now);
        }
        let Some(per_minute) = self.per_minute(payer) else { return Ok(()) };
        match state.budgets.get(&payer.id).map(|budget| budget.wait(per_minute, now)) {
            None | Some(Duration::ZERO) => Ok(()),
            Some(wait) => Err(Fault::FailedRenderTimeExceeded { per_minute, retry_after_s: whole_seconds(wait) }),
        }
    }

    /// Whether the payer's budget is empty, so that its jobs wait.
    pub(crate) fn is_out_of_budget(&self, payer: Payer, now: Timestamp) -> bool {
        let Some(per_minute) = self.per_minute(payer) else { return false };
        let wait = self.state.lock().budgets.get(&payer.id).map(|budget| budget.wait(per_minute, now));
        wait.is_some_and(|wait| !wait.is_zero())
    }

    /// Records the end of a render. Returns until when the payer's waiting jobs must be delayed.
    fn record(&self, payer: Payer, took: Duration, used: SlotUse, now: Timestamp) -> Option<Timestamp> {
        {
            let mut state = self.state.lock();
            state.all.observe(took);
            if payer.has_paid {
                state.paid.observe(took);
            }
        }
        match used {
            SlotUse::Fine => None,
            SlotUse::Failed => self.spend(payer, took, now),
        }
    }

    /// Takes the time from the payer's budget. Returns until when its waiting jobs must be delayed.
    fn spend(&self, payer: Payer, took: Duration, now: Timestamp) -> Option<Timestamp> {
        let per_minute = self.per_minute(payer)?;
        let mut state = self.state.lock();
        if state.budgets.len() >= MAX_BUDGETS {
            self.forget_full(&mut state, now);
        }
        if state.budgets.len() >= MAX_BUDGETS && !state.budgets.contains_key(&payer.id) {
            return None;
        }
        let budget = state.budgets.entry(payer.id).or_insert_with(|| FailureBudget::full(per_minute, now));
        budget.spend(per_minute, took, now);
        Some(budget.wait(per_minute, now)).filter(|wait| !wait.is_zero()).map(|wait| now + wait)
    }

    /// Forgets full budgets, so that the map has only payers whose renders failed within minutes.
    pub(crate) fn forget_full_budgets(&self, now: Timestamp) {
        let mut state = self.state.lock();
        self.forget_full(&mut state, now);
        state.budgets.shrink_to_fit();
    }

    /// The rate of payers without their own is that of unpaid ones. It forgets the budget of a payer that has paid
    /// too early, which is harmless.
    fn forget_full(&self, state: &mut State, now: Timestamp) {
        let usual = self.settings.failed_seconds_per_minute_unpaid;
        state.budgets.retain(|id, budget| !budget.is_full(self.limits.budget_of(*id).unwrap_or(usual), now));
    }

    /// The load of these slots.
    pub(crate) fn load(&self, occupancy: Occupancy) -> Load {
        let state = self.state.lock();
        Load { occupancy, render: state.all.smoothed(), paid_render: state.paid.smoothed() }
    }

    /// The payer's seconds of failed renders per minute. `None`: any number.
    fn per_minute(&self, payer: Payer) -> Option<u32> {
        self.limits.budget_of(payer.id).or_else(|| self.settings.failed_seconds(payer.has_paid))
    }
}

/// Rounded up, at least one.
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests;
