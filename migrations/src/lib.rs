//! The schema of both databases, one file per step.
//!
//! To change the schema, add `mNNNN_what.rs`, list it in [`Migrator`] and keep the step readable by the program that ran
//! before it: first widen, in a later release narrow. A released step is never edited.
//!
//! *Invariant:* nothing here knows an entity or a domain type. A step must do tomorrow what it did when it was released,
//! so it may not change when code does.

use sea_orm_migration::prelude::*;

mod m0001_initial;

/// Every step, in the order it is applied.
#[derive(Debug)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(m0001_initial::Migration)]
    }
}
