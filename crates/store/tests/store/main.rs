//! Tests of the store. Every case runs on SQLite and on PostgreSQL, unless it is specific to one of them.
#![expect(clippy::unwrap_used, reason = "tests and their harness fail by panicking")]

mod harness;

mod accounts;
mod admission;
mod audit;
mod billing;
mod complete;
mod create;
mod credits;
mod delete;
mod erase;
mod expire;
mod fail;
mod fairness;
mod files;
mod first_steps;
mod idempotency;
mod images;
mod key_usage;
mod lease;
mod limits;
mod list;
mod list_plans;
mod model;
mod nodes;
mod oauth;
mod operator;
mod operator_plans;
mod passkeys;
mod people;
mod placeholder;
mod postgres;
mod races;
mod release;
mod retention;
mod reuse;
mod second_factor;
mod service_lock;
mod set_aside;
mod sqlite;
mod steps;
mod teams;
mod unverified;
mod verification;
mod webhooks;
