//! The server binary as a library, so that the tests start the same service as an operator.
//!
//! `config/` reads settings. `wiring` builds all components. `serve/` runs the listeners and shuts them down. `admin/`
//! and `doctor` are the operator's commands. To add a setting, start with `config/default.toml`.
//!
//! *Invariant:* only this crate reads the environment, and there are no globals: `wiring` builds everything.

pub mod admin;
pub mod allocator;
mod commands_store;
pub mod config;
mod data_dir_lock;
mod database_url;
pub mod doctor;
pub mod migrate;
mod net;
mod output;
mod program_cache;
pub mod run_dir;
pub mod serve;
pub mod wiring;
