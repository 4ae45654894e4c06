//! `grabd migrate`.

use std::fmt::Write;

use grabd_store::{MigrationPlan, PendingStep, Store};

use crate::commands_store;
use crate::config::Config;
use crate::wiring;

/// What the command prints, and whether it succeeded.
pub struct Report {
    /// The lines.
    pub text: String,
    /// With `check`: whether processes of an earlier version may continue.
    pub success: bool,
}

/// Brings the schema up to date, or with `check` says what that would do.
///
/// # Errors
/// When the database cannot be opened, or is of a newer version.
pub async fn run(config: &Config, check: bool) -> anyhow::Result<Report> {
    if check && let Some(file) = commands_store::missing_file(config)? {
        let text = format!("There is no database {}: `grabd serve` or `grabd migrate` creates it.\n", file.display());
        return Ok(Report { text, success: true });
    }
    if !check {
        commands_store::check_owner(config)?;
    }
    let store = wiring::open_store(config).await?;
    let report = report(&store, check, &wiring::describe_database(config)).await;
    store.close().await;
    report
}

async fn report(store: &Store, check: bool, database: &str) -> anyhow::Result<Report> {
    if check {
        let plan = store.plan_migration().await?;
        return Ok(Report { text: describe(&plan, database)?, success: plan.former_may_continue() });
    }
    store.migrate().await?;
    Ok(Report { text: format!("The schema of {database} is up to date.\n"), success: true })
}

fn describe(plan: &MigrationPlan, database: &str) -> Result<String, std::fmt::Error> {
    let MigrationPlan { applied, pending } = plan;
    if pending.is_empty() {
        return Ok(format!("The schema of {database} is up to date: nothing would run.\n"));
    }
    let mut text = format!("{database} has {applied} of {} steps. These would run:\n", applied + pending.len());
    for PendingStep { name, former_may_continue } in pending {
        let former = if *former_may_continue { "may continue" } else { "must stop before" };
        writeln!(text, "  {name:24}  processes of the version before it {former}")?;
    }
    text.push_str(match (applied, plan.former_may_continue()) {
        (0, _) => "The database is empty.\n",
        (_, true) => {
            "Processes that run may continue until they are replaced. They cannot start again once a step has run.\n"
        }
        (_, false) => "Stop all processes first.\n",
    });
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_what_to_do_are_described() {
        let step = |name, former_may_continue| PendingStep { name, former_may_continue };
        let text = |applied, pending| describe(&MigrationPlan { applied, pending }, "DB").unwrap();
        assert!(text(3, vec![]).contains("nothing would run"));
        let gradual = text(3, vec![step("m0004_a", true)]);
        assert!(gradual.contains("3 of 4") && gradual.contains("m0004_a") && gradual.contains("may continue until"));
        let abrupt = text(3, vec![step("m0004_a", true), step("m0005_b", false)]);
        assert!(abrupt.contains("must stop before") && abrupt.ends_with("Stop all processes first.\n"), "{abrupt}");
        assert!(text(0, vec![step("m0001_a", false)]).ends_with("The database is empty.\n"));
    }
}
