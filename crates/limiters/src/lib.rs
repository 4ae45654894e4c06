//! How often and how much at the same time somebody may use something that others use as well.
//!
//! [`KeyedLimiter`] and [`AddressLimiter`] count requests over time, [`Turns`] counts work in progress. Each has a bounded
//! number of keys. There is no common quota for those beyond: the key that is forgotten has the most of its quota, and
//! among client addresses, the end site with the most addresses loses some of them first.
//!
//! *Invariant:* nobody is refused because of the number of others.

mod address;
mod buckets;
mod keyed;
mod network;
mod quota;
mod turns;

pub use address::{AddressLimiter, EndSiteQuota};
pub use keyed::KeyedLimiter;
pub use network::{client_network, end_site};
pub use quota::{Quota, Window, whole_seconds};
pub use turns::{Busy, Turn, Turns};
