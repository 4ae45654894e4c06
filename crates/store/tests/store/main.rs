//! The store on real databases: every case runs on SQLite and on PostgreSQL, unless it is about one of them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its harness too")]

mod harness;

mod accounts;
mod billing;
mod complete;
mod create;
mod credits;
mod delete;
mod expire;
mod fail;
mod fairness;
mod idempotency;
mod images;
mod lease;
mod list;
mod list_plans;
mod model;
mod oauth;
mod operator;
mod operator_plans;
mod people;
mod placeholder;
mod postgres;
mod races;
mod release;
mod sqlite;
mod teams;
mod webhooks;
