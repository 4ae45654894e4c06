//! Proxies of teams, through which pages are loaded.
//!
//! `create`, `change` and `queries` are for callers. `usage` reads what a renderer needs, and records when a proxy was
//! used and that it failed.

mod change;
mod create;
mod proxy_ref;
mod queries;
mod usage;

pub use change::{ChangeProxyOutcome, ProxyUpdate};
pub use create::{CreateProxyOutcome, NewProxyRow};
pub use proxy_ref::ProxyRef;
pub use usage::SealedRoute;
