//! The use-cases of grabd, the workers that carry them on, and the gRPC services over them.
//!
//! A use-case is a folder named after its noun (`grabs/`, `accounts/`, `oauth/`, `billing/`, `webhooks/`, `mail/`,
//! `operator/`) with one file per verb. To add an RPC, write the use-case, then its service method in `rpc/`; conversions
//! destructure fully, so a new field does not compile until it is placed.
//!
//! *Invariant:* no HTTP face, no browser and no SQL in here. The engine meets the browser only as
//! [`grabd_domain::render::Renderer`], and every face only as a client of its gRPC services, or as the pages are: with a
//! [`grabd_domain::credentials::Caller`] that [`accounts::Insider`] has let in and counted.

pub mod accounts;
pub mod billing;
mod cache;
pub mod chance;
pub mod clock;
mod core;
mod digest;
mod failpoints;
pub mod grabs;
pub mod mail;
mod metrics;
pub mod oauth;
pub mod operator;
pub mod outgoing;
pub mod placeholder;
pub mod pricing;
mod queue;
pub mod renderer;
pub mod rpc;
pub mod vault;
pub mod webhooks;

pub use crate::core::{Core, Image, ImageError, Parts, Settings};
pub use crate::failpoints::Failpoints;
