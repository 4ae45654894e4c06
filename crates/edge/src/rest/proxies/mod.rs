//! Handlers of `/v1/proxies`.

mod endpoints;
mod examples;
mod operations;
mod request;
mod schema;
mod wire;

pub(super) use endpoints::{create, delete, fetch, list, update};
pub(super) use operations::{create_operation, delete_operation, fetch_operation, list_operation, update_operation};
pub(super) use schema::{create_proxy, update_proxy};
