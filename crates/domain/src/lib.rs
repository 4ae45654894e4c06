//! What a grab, a credit, a key and a limit *are*: parsed types and pure rules, shared by every other crate.
//!
//! To add a rule, put it beside the type it is about and give it a table of cases. To add a caller-visible failure,
//! add a row to [`Fault`] and [`Code`]; the wires will not compile until they answer it.
//!
//! *Invariant:* nothing here waits, reads a clock, draws a random number, opens a socket or knows a wire format.
//! Whatever a rule needs is an argument.
#![warn(missing_docs)]

pub mod accounts;
pub mod address;
pub mod capture;
pub mod credentials;
pub mod credits;
pub mod faults;
pub mod grabs;
pub mod idempotency;
pub mod ids;
pub mod limits;
pub mod oauth;
pub mod pricing;
#[cfg(any(test, feature = "fuzzing"))]
pub mod properties;
pub mod render;
pub mod target;
pub mod teams;
pub mod timestamp;
pub mod webhooks;

pub use faults::{Code, Fault};
pub use timestamp::{Day, Timestamp};
