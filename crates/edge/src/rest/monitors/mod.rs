//! Handlers of `/v1/monitors`.

mod endpoints;
pub(super) mod examples;
mod feed;
mod history;
mod operations;
mod request;
mod runs;
mod schema;
mod wire;

pub(super) use endpoints::{accept, create, create_batch, delete, fetch, list, update};
pub(super) use feed::{close_feed, open_feed};
pub(super) use history::history;
pub(super) use operations::{
    accept_operation, close_feed_operation, create_batch_operation, create_operation, delete_operation,
    fetch_operation, history_operation, list_operation, open_feed_operation, runs_operation, update_operation,
};
pub(crate) use request::parse as settings;
pub(super) use runs::runs;
pub(super) use schema::{accept_baseline, create_monitor, create_monitor_batch, update_monitor};
pub(crate) use wire::{monitor as shown_monitor, run as shown_run};
