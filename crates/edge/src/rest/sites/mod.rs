//! Handlers of `/v1/sites`.

mod endpoints;
pub(super) mod examples;
mod operations;
mod pages;
mod request;
mod schema;
mod wire;

pub(super) use endpoints::{cancel, create, delete, fetch, list};
pub(super) use operations::{
    cancel_operation, create_operation, delete_operation, fetch_operation, list_operation, pages_operation,
};
pub(super) use pages::pages;
pub(super) use schema::create_site;
