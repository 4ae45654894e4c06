//! Keeps a browser running with contexts ready, replaces it before it wears out and when it dies, and lends tabs.

mod browser;
mod drawing;
mod entrance;
mod first;
mod keeper;
mod lease;
mod lookout;
mod pool;
mod shared;
mod start;

pub use shared::Health;
pub(crate) use shared::Shared;
pub use start::StartError;
