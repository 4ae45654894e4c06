//! Hints between the processes of a cluster: "a job waits" wakes the dispatchers of the cores, and "this grab has
//! changed" those who wait for it, wherever they wait.
//!
//! *Invariant:* a hint has no secrets and no authority, and only causes a read of the database. The database is also
//! polled, so losing every hint costs at most one poll interval. Giving a hint never waits.

mod connection;
mod hints;
mod remote;
mod run;
mod settings;

pub(crate) use hints::{Changed, Hints};
pub(crate) use remote::Bus;
pub(crate) use run::run;
pub use settings::BusSettings;
