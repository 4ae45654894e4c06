//! Domain types and pure rules: grabs, credits, keys and limits. Shared by all other crates.
//!
//! To add a rule, put it next to its type and test it with a table of cases. To add an error that callers see, add a
//! variant to [`Fault`] and [`Code`]; the REST and gRPC servers do not compile until they handle it.
//!
//! *Invariant:* this crate does no I/O, never waits, and reads no clock or random numbers. It knows no wire format.
//! Rules get their inputs as arguments.
#![warn(missing_docs)]

pub mod accounts;
pub mod address;
pub mod admission;
pub mod audit;
pub mod capture;
pub mod contact_link;
pub mod credentials;
pub mod credits;
pub mod domains;
pub mod faults;
pub mod grabs;
pub mod idempotency;
pub mod identity;
pub mod ids;
pub mod limits;
pub mod links;
pub mod monitor;
pub mod oauth;
pub mod permissions;
pub mod pricing;
#[cfg(any(test, feature = "fuzzing"))]
pub mod properties;
pub mod proxies;
pub mod render;
pub mod site;
pub mod storage;
pub mod target;
pub mod team_limits;
pub mod teams;
pub mod timestamp;
pub mod webhooks;

pub use faults::{Code, ErrorCause, Fault};
pub use timestamp::{Day, Timestamp};
