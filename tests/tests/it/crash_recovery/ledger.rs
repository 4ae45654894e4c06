//! Checks the ledger continuously: a correct final balance may have been wrong in between.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, ensure};
use grabd_store::Store;
use serde_json::Value;

use super::crash_test::{CrashTest, Team};

/// Interval of the checks.
const EVERY: Duration = Duration::from_millis(250);

impl CrashTest {
    /// Checks the ledger until it is wrong.
    pub(crate) async fn watch_ledger(&self) -> Result<()> {
        let mut tick = tokio::time::interval(EVERY);
        loop {
            tick.tick().await;
            for team in &self.teams {
                // Read the spent credits before the usage, because grabs that end in between only increase them.
                let spent = team.seen_done.load(Ordering::SeqCst);
                let (free, held) = self.credits(team).await?;
                let sum = free + held + i64::from(spent);
                let granted = i64::from(team.granted);
                ensure!(sum <= granted, "{free} free, {held} held and {spent} spent exceed the {granted} granted");
            }
            // Read directly, whether or not the service is running.
            let store = Store::open(&self.dirs.database_url()).await?;
            let drift = store.credits().verify_ledger().await?;
            store.close().await;
            ensure!(drift.is_empty(), "during the run, the ledger does not balance: {drift:?}");
        }
    }

    /// The free and the held credits of a team.
    pub(crate) async fn credits(&self, team: &Team) -> Result<(i64, i64)> {
        let (status, _, usage) =
            self.json(|client, base| client.get(format!("{base}/usage")).bearer_auth(&team.key)).await?;
        let number = |name: &str| usage["credits"][name].as_i64();
        match (status, number("total"), number("held")) {
            (200, Some(total), Some(held)) => Ok((total, held)),
            _ => Err(anyhow::anyhow!("the usage request returned {status} {}", Value::to_string(&usage))),
        }
    }
}
