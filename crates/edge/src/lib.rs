//! REST `/v1` and MCP: faces that are only clients of the gRPC services, in this process or over a channel.
//!
//! To add an endpoint of REST, give it a file in `rest/`, a line in [`router`] and, where its answer is new, a struct in
//! `rest/wire.rs`. For a tool, see [`mcp`]. A new error code does not compile until `rest/error.rs` has a row for it.
//!
//! *Invariant:* nothing is decided here. Whether a credential, a field or a limit holds is the core's to say; this crate
//! translates, and imports no crate of ours but the generated contract.

pub mod mcp;
mod rest;
pub mod transport;

#[cfg(any(test, feature = "fuzzing"))]
pub use rest::properties;
pub use rest::{Options, client_address, manners, only, open_to_browsers, refuse, router, subscriber};
