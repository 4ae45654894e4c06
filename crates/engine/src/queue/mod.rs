//! From a committed job to a renderer's hands, and back when a renderer is lost.
//!
//! The job table is the queue; everything here is a hint about it and may be lost. `dispatcher` knows which sessions have
//! a free slot, `pump` leases jobs for them, `watchers` tells who waits, `sweep` mends what nobody finished.

mod dispatcher;
pub(crate) mod pump;
pub(crate) mod sweep;
pub(crate) mod watchers;

pub use dispatcher::Attached;
pub(crate) use dispatcher::{Dispatcher, Lease, Reservation};
pub(crate) use watchers::Watchers;
