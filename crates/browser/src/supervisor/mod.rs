//! Runs browsers with prepared tabs, replaces browsers that are worn out or dead, and leases tabs.

mod browser;
mod drawing;
mod first_browser;
mod lanes;
mod lease;
mod network_setup;
mod occupancy;
mod page_excess;
mod pool;
mod restart;
mod setup;
mod shared;
mod start;
mod supervise;
mod watchdog;

pub use shared::Health;
pub(crate) use shared::Shared;
pub use start::StartError;
