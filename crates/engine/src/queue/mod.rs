//! The job queue: assigns committed jobs to renderers, and requeues them when a renderer is lost.
//!
//! The job table is the queue. State in memory only provides hints and may be lost. `dispatcher` tracks sessions and
//! their idle slots, `lease_loop` leases jobs for them, `watchers` notifies waiting callers, and `sweep` cleans up
//! expired leases and deadlines. `hints` reads what other processes have changed. `cleanup` deletes what has expired, while `clock_check` trusts the clock.

pub(crate) mod cleanup;
mod clock_check;
mod dispatcher;
mod end_open;
mod erasure;
mod expiry;
mod final_steps;
pub(crate) mod hints;
pub(crate) mod lease_loop;
mod progress;
mod record_end;
mod request_spans;
mod retention;
pub(crate) mod secrets;
mod shorten;
mod step;
pub(crate) mod sweep;
pub(crate) mod watchers;

use std::sync::Arc;

use crate::admission::{self, Admission, LastPressure};
use crate::limits::TeamLimits;
pub use dispatcher::{AttachedRenderer, Lease, SessionMessage, SessionSlots};
pub(crate) use dispatcher::{Dispatcher, OpenSlots, RequestedFiles, Reservation};
pub(crate) use end_open::{TEAM_DELETED, end_open_grabs};
pub(crate) use final_steps::{EvidenceStep, FinalSteps};
pub(crate) use progress::CleanupProgress;
pub(crate) use record_end::record_end;
pub(crate) use request_spans::RequestSpans;
pub(crate) use watchers::Watchers;

/// The state of the queue in memory.
pub(crate) struct Queue {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) admission: Admission,
    pub(crate) watchers: Watchers,
    pub(crate) pressure: LastPressure,
    pub(crate) request_spans: RequestSpans,
}

impl Queue {
    pub(crate) fn new(settings: admission::Settings, limits: Arc<TeamLimits>) -> Self {
        let (dispatcher, watchers) = (Dispatcher::default(), Watchers::default());
        let admission = Admission::new(settings, limits);
        let (pressure, request_spans) = (LastPressure::default(), RequestSpans::default());
        Self { dispatcher, admission, watchers, pressure, request_spans }
    }
}
