//! The routes of `/v1`, one file each, and shared code. `routes` lists them, and `state` is what they share.
//!
//! A request passes `common_headers` (request id, trace), `request_layer` (rate limit by address), the file of its
//! route and `call` (gRPC call). The response is built by `wire` (JSON) or `error` (error envelope). `openapi`
//! generates the OpenAPI document, and `docs` renders pages of it, which the web app shows.

mod batch;
pub(crate) mod body;
pub(crate) mod call;
mod captures;
pub(crate) mod challenges;
mod common_headers;
mod cors;
pub(crate) mod create;
mod delete;
mod docs;
pub(crate) mod error;
mod etag;
mod events;
mod fetch;
pub(crate) mod fields;
pub(crate) mod headers;
mod idempotency_key;
pub(crate) mod json;
pub(crate) mod large_body;
mod links;
mod list;
mod methods;
pub(crate) mod monitors;
mod openapi;
pub(crate) mod options;
mod page;
mod path_id;
mod paths;
mod prefer;
mod pricing;
mod pricing_packets;
#[cfg(any(test, feature = "fuzzing"))]
pub mod properties;
mod proxies;
mod query;
pub(crate) mod rate_limit_headers;
mod read;
mod request_id;
pub(crate) mod request_layer;
mod routes;
mod several;
mod sites;
mod state;
mod usage;
mod watch;
mod webhooks;
pub(crate) mod wire;

pub use common_headers::common_headers;
pub use docs::{ReferencePage, reference_pages};
pub use error::error_response;
pub use methods::allow_methods;
pub use routes::router;
pub use state::Options;
