//! The use-cases of grabd, the background workers, and the gRPC services over the use-cases.
//!
//! A use-case is a folder named after its noun (`grabs/`, `accounts/`, `oauth/`, `billing/`, `webhooks/`, `mail/`,
//! `operator/`) with one file per verb. To add an RPC, write the use-case, then its service method in `rpc/`.
//! Conversions destructure completely, so a new field is a compile error until it is handled.
//!
//! *Invariant:* this crate has no HTTP interface, no browser and no SQL. It uses the browser only through
//! [`grabd_domain::render::Renderer`]. Interfaces are clients of its gRPC services, except for the web pages, which
//! call use-cases with a [`grabd_domain::credentials::Caller`] that [`accounts::TeamMember`] has authorized and
//! rate-limited.

pub mod accounts;
pub mod admission;
pub mod billing;
mod cache;
pub mod clock;
mod core;
mod digest;
mod domains;
pub mod export;
mod failpoints;
pub mod grabs;
pub mod links;
pub mod mail;
mod metrics;
pub mod oauth;
pub mod operator;
pub mod origin;
pub mod outgoing;
pub mod placeholder;
pub mod pricing;
mod queue;
pub mod random;
mod render_metadata;
pub mod renderer;
pub mod rotation;
pub mod rpc;
mod storage;
pub mod vault;
pub mod webhooks;
mod workers;

pub use crate::core::{Core, Image, ImageError, Operations, Parts, Settings};
pub use crate::failpoints::Failpoints;
pub use crate::storage::Retention;
