//! The server binary as a library, so that the tests start exactly what an operator starts.
//!
//! `config/` reads settings, `wiring` builds everything once, `serve/` runs the listeners and drains them, `admin/` and
//! `doctor` are the operator's tools. To add a setting, write it into `config/default.toml` first.
//!
//! *Invariant:* only this crate reads the environment, and nothing is a global: everything is built in `wiring`.

pub mod admin;
pub mod config;
pub mod doctor;
mod run_dir;
pub mod serve;
mod single;
pub mod wiring;
