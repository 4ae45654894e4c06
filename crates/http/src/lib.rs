//! What all HTTP servers of grabd share: REST, MCP, the web app and the delivery of images.
//!
//! Each file is one topic of HTTP, without knowledge of grabd: who sent a request, and how conditional requests, methods and
//! CORS are answered.

mod client_address;
mod cors;
mod etag;
mod methods;

pub use client_address::client_address;
pub use cors::{allow_any_origin, insert_cors_headers};
pub use etag::{etag_of_bytes, known_tags, with_etag};
pub use methods::allow_methods;
