//! REST `/v1` and MCP servers. Both are clients of the gRPC services, in this process or over a channel.
//!
//! To add a REST endpoint, add a file in `rest/`, a line in its `routes` and, for a new response type, a struct in
//! `rest/wire/mod.rs`. For a tool, see [`mcp`]. A new error code does not compile until `rest/error.rs` has a row for it.
//!
//! `reading/` makes texts of the files of grabs, which both serve.
//!
//! *Invariant:* this crate only translates. The core validates credentials, fields and limits. Of the workspace, it
//! imports only the contract with the table of options, what all HTTP servers share, and the memory that it shares with
//! the rest of the process.

pub mod mcp;
mod reading;
mod rest;
pub mod transport;

#[cfg(any(test, feature = "fuzzing"))]
pub use rest::properties;
pub use rest::{Options, ReferencePage, allow_methods, common_headers, error_response, reference_pages, router};
