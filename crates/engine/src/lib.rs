//! The use-cases of grabd, and the background workers.
//!
//! A use-case is a folder named after its noun (`grabs/`, `accounts/`, `oauth/`, `billing/`, `webhooks/`, `monitors/`,
//! `proxies/`, `sites/`, `mail/`, `operator/`, `trail/`) with one file per verb.
//!
//! *Invariant:* this crate has no HTTP or gRPC interface, no browser and no SQL. Its use-cases are called by the gRPC
//! services of `grabd-rpc`, whose clients are REST and MCP, and by the web pages, with a
//! [`grabd_domain::credentials::Caller`] that [`accounts::TeamMember`] has authorized and rate-limited. Browsers attach
//! as [`renderers`].

pub mod accounts;
pub mod admission;
mod api_grab;
mod api_monitor;
mod api_site;
pub mod billing;
pub mod bus;
mod cache;
pub mod client_address;
pub mod clock;
pub mod cluster;
pub mod csv;
mod digest;
mod domains;
mod error;
pub mod evidence;
pub mod export;
mod failpoints;
pub mod grabs;
pub mod identity;
mod image_digest;
pub mod limits;
pub mod links;
mod list_parameters;
pub mod mail;
mod metrics;
pub mod monitors;
pub mod oauth;
pub mod operator;
pub mod outgoing;
pub mod placeholder;
pub mod pricing;
pub mod proxies;
mod queue;
pub mod random;
pub mod renderers;
pub mod requests;
mod retention;
pub mod rotation;
pub mod samples;
mod service;
pub mod sites;
mod storage;
mod targets;
mod tolerance;
pub mod trail;
pub mod vault;
pub mod webhooks;
mod workers;

pub use crate::api_grab::grab_json;
pub use crate::api_monitor::monitor_json;
pub use crate::api_site::site_json;
pub use crate::error::{Error, InternalError};
pub use crate::failpoints::Failpoints;
pub use crate::grabs::{Attachment, Image, ImageError};
pub use crate::retention::Retention;
pub use crate::service::{Core, Operations, Parts, Settings};
