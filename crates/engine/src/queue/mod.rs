//! The job queue: assigns committed jobs to renderers, and requeues them when a renderer is lost.
//!
//! The job table is the queue. State in memory only provides hints and may be lost. `dispatcher` tracks sessions and
//! their idle slots, `lease_loop` leases jobs for them, `watchers` notifies waiting callers, and `sweep` cleans up
//! expired leases and deadlines. `cleanup` deletes what has expired, while `clock_check` trusts the clock.

mod cleanup;
mod clock_check;
mod dispatcher;
mod erasure;
pub(crate) mod lease_loop;
pub(crate) mod sweep;
pub(crate) mod watchers;

pub use dispatcher::AttachedRenderer;
pub(crate) use dispatcher::{Dispatcher, EndedLease, Lease, Occupancy, OpenSlots, Reservation};
pub(crate) use watchers::Watchers;
