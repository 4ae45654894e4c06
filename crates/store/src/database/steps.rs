//! Compares the applied migration steps with those of this program, so that a database of another version is refused
//! at start and not by a failing statement later.

use std::collections::BTreeMap;

use grabd_migrations::{FormerVersion, Migrator, Source};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ConnectionTrait, EntityTrait};
use sea_orm_migration::seaql_migrations;
use sha2::{Digest, Sha256};

use crate::entities::schema_step;
use crate::{Error, Result};

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Checks that this program has every applied step, in the form in which it was applied.
///
/// # Errors
/// [`Error::NewerSchema`] and [`Error::EditedStep`].
pub(super) async fn check(connection: &impl ConnectionTrait) -> Result<()> {
    let recorded = recorded(connection).await?;
    for name in applied(connection).await? {
        let record = recorded.get(&name);
        let version = record.map_or_else(|| "a later version".to_owned(), |record| record.version.clone());
        let Some(source) = Migrator::SOURCES.iter().find(|source| source.name == name) else {
            return Err(Error::NewerSchema { step: name, version, own: VERSION });
        };
        if record.is_some_and(|record| record.checksum != checksum(source)) {
            return Err(Error::EditedStep { step: name, version, own: VERSION });
        }
    }
    Ok(())
}

/// A migration step that is not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingStep {
    /// Its name.
    pub name: &'static str,
    /// Whether processes of the version before it may continue on the schema after it.
    pub former_may_continue: bool,
}

/// What a migration would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationPlan {
    /// Number of steps that are applied.
    pub applied: usize,
    /// The steps that are not, in their order.
    pub pending: Vec<PendingStep>,
}

impl MigrationPlan {
    /// Whether processes of an earlier version may use the database while the steps are applied, and after.
    pub fn former_may_continue(&self) -> bool {
        // Nobody uses an empty database.
        self.applied == 0 || self.pending.iter().all(|step| step.former_may_continue)
    }
}

/// Compares the applied steps with those of this program.
///
/// # Errors
/// As [`check`].
pub(super) async fn plan(connection: &impl ConnectionTrait) -> Result<MigrationPlan> {
    check(connection).await?;
    let applied = applied(connection).await?;
    let is_pending = |source: &&Source| applied.iter().all(|name| name != source.name);
    let pending = Migrator::SOURCES.iter().filter(is_pending).map(|source| PendingStep {
        name: source.name,
        former_may_continue: source.former_version == FormerVersion::MayContinue,
    });
    Ok(MigrationPlan { applied: applied.len(), pending: pending.collect() })
}

/// Records the checksums of the applied steps that have none: those that were just applied, and those of versions that
/// recorded no checksums.
pub(super) async fn record(connection: &impl ConnectionTrait) -> Result<()> {
    let (applied, recorded) = (applied(connection).await?, recorded(connection).await?);
    let is_new =
        |source: &&Source| applied.iter().any(|name| name == source.name) && !recorded.contains_key(source.name);
    let rows: Vec<schema_step::ActiveModel> = Migrator::SOURCES
        .iter()
        .filter(is_new)
        .map(|source| schema_step::ActiveModel {
            name: Set(source.name.to_owned()),
            checksum: Set(checksum(source)),
            version: Set(VERSION.to_owned()),
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    tracing::info!(steps = rows.len(), "migration steps applied");
    // Another process may record the same.
    let on_conflict = OnConflict::column(schema_step::Column::Name).do_nothing().to_owned();
    schema_step::Entity::insert_many(rows).on_conflict(on_conflict).exec_without_returning(connection).await?;
    Ok(())
}

/// The names of the applied steps.
async fn applied(connection: &impl ConnectionTrait) -> Result<Vec<String>> {
    match seaql_migrations::Entity::find().all(connection).await.map_err(Error::from) {
        Ok(applied) => Ok(applied.into_iter().map(|row| row.version).collect()),
        // The migrations table does not exist.
        Err(Error::Schema(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

async fn recorded(connection: &impl ConnectionTrait) -> Result<BTreeMap<String, schema_step::Model>> {
    match schema_step::Entity::find().all(connection).await.map_err(Error::from) {
        Ok(recorded) => Ok(recorded.into_iter().map(|row| (row.name.clone(), row)).collect()),
        // The table does not exist.
        Err(Error::Schema(_)) => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

fn checksum(source: &Source) -> String {
    Sha256::digest(source.text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use sea_orm_migration::MigratorTrait;

    use super::*;

    /// Steps that were released, with the checksums of their sources. Append to this list with each release.
    const RELEASED: [(&str, &str); 1] =
        [("m0001_initial", "fd42e1e473746e09ddd04c727776f7be1f8030adae9e0796a126b9f6fa09f38a")];

    #[test]
    fn released_steps_are_never_edited() {
        for (name, released) in RELEASED {
            let source = Migrator::SOURCES.iter().find(|source| source.name == name).unwrap();
            assert_eq!(checksum(source), released, "{name} was released: add a new step and restore this one");
        }
    }

    #[test]
    fn former_processes_must_stop_if_one_step_says_so() {
        let step = |former_may_continue| PendingStep { name: "m", former_may_continue };
        let plan = |applied, pending| MigrationPlan { applied, pending };
        assert!(plan(3, vec![]).former_may_continue());
        assert!(plan(3, vec![step(true), step(true)]).former_may_continue());
        assert!(!plan(3, vec![step(true), step(false)]).former_may_continue());
        assert!(plan(0, vec![step(false)]).former_may_continue(), "nobody uses an empty database");
    }

    #[test]
    fn sources_have_the_names_of_the_steps() {
        let steps: Vec<String> = Migrator::migrations().iter().map(|step| step.name().to_owned()).collect();
        let sources: Vec<&str> = Migrator::SOURCES.iter().map(|source| source.name).collect();
        assert_eq!(steps, sources);
        assert!(sources.is_sorted(), "{sources:?}");
    }
}
