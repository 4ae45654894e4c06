//! Tests of the REST API with a mock core: a real tonic service that returns scripted responses and records its
//! requests.

mod batch;
mod common;
mod create;
mod delete;
mod errors;
mod events;
mod fetch;
mod limits;
mod list;
mod public;
mod read;
mod support;
mod webhooks;
