//! The REST face over a scripted core: a real tonic service that says what a test tells it and keeps what it was asked.

mod create;
mod delete;
mod errors;
mod events;
mod fetch;
mod frame;
mod limits;
mod list;
mod public;
mod support;
mod webhooks;
