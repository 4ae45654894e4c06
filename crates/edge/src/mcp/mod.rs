//! Model Context Protocol server: Streamable HTTP at one path, without sessions, in the modern era of the protocol
//! (2026-07-28) and the legacy one (2025-03-26 to 2025-11-25).
//!
//! `routes` has the route, and `state` what its handlers share. `host_origin` checks `Host` and `Origin`, `receive`
//! reads a message, `message` parses JSON-RPC, `era` checks the protocol metadata, `methods` handles the protocol's own
//! requests, `call` runs tools, `responder` sends their results, and `resources` reads files. Each tool is a file in `tools/`. To add a tool,
//! describe it in `tools/tools.json` and add its file; a test fails without it.

mod call;
mod era;
mod host_origin;
mod json_rpc;
mod message;
mod methods;
mod open_calls;
mod parts;
mod preview;
mod progress;
mod receive;
mod resources;
mod responder;
mod routes;
mod state;
mod tools;

pub use routes::{Options, router};
