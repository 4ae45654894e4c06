//! Proxies of teams: servers through which pages are loaded.
//!
//! `manage` has the use-cases of callers. `login` encrypts user names and passwords. `route` checks the proxy that a
//! capture names, reads what its renderer needs when it is rendered, and records failures.

mod login;
mod manage;
mod route;

pub use manage::{change, create, get, list, remove};
pub(crate) use route::{RouteError, check, record_failure, route};
