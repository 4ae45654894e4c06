//! A client of the public REST API.

mod call;
mod client;
mod grab;
mod retry;

pub(crate) use call::ApiResponse;
pub(crate) use client::Api;
pub(crate) use grab::{Grab, describe, describe_region, difference_image};
pub(crate) use retry::{RateLimit, is_rate_limited};
