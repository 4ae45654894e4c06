//! Persistent storage: teams, keys, people and their apps, credits, grabs and jobs in one database.
//!
//! - [`grabs`], [`credits`], [`accounts`], [`oauth`], [`webhooks`], [`monitors`], [`proxies`], [`sites`], [`evidence`],
//!   [`audit`], [`limits`], [`operator`], [`retention`],
//!   [`image_places`] and [`vault`] have one file per change, and their reads in `queries`. Each rule of the job path or of
//!   the credits is the body of one `Transaction::apply`. Statements take their locks in this order: team, job, grab, team
//!   storage, lot.
//! - `database/` opens the two databases and runs transactions on them.
//! - `entities/` has one file per table, and `codes.rs` the integer codes of enums.
//! - [`nodes`] has the processes of a cluster, [`requests`] the recorded API requests, and [`identity`] the keys for signatures.
//!
//! Reads and changes are methods of [`areas`]: `store.grabs().complete(..)`. To add a change, add a file to its module with its
//! argument type, `impl Transaction` for it and a method of its area. To add a column, add a migration step, extend the entity
//! and fix what no longer compiles.
//!
//! *Invariant:* this crate reads no clock and generates no random numbers: `now`, ids, tokens and random bits are
//! arguments; the database's clock is read only to confirm the program's. No entity and no type of the database library
//! is public, and a transaction waits for nothing but the database.

pub mod accounts;
pub mod areas;
pub mod audit;
pub mod credits;
pub mod evidence;
pub mod grabs;
pub mod identity;
pub mod image_places;
pub mod limits;
pub mod low_balance;
pub mod monitors;
pub mod nodes;
pub mod oauth;
pub mod operator;
pub mod proxies;
pub mod requests;
pub mod retention;
pub mod sites;
pub mod vault;
pub mod webhooks;

mod actor;
mod codes;
mod database;
mod entities;
mod error;
mod first_owner;
mod open_sites;
mod padded;
mod set_aside;
mod shared_reads;
mod store;
mod team_lock;
mod team_name;
mod transfer;

pub use actor::Actor;
pub use database::{Kind, LockMode, MigrationPlan, Notifications, OtherService, PendingStep, ServiceLock};
pub use error::{Cause, Error, Result};
pub use store::Store;
pub use transfer::CopiedTable;
