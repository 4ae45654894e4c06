//! The sums, looked at all the time: an end that comes out may have been wrong in between.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, ensure};
use grabd_store::Store;
use serde_json::Value;

use super::world::{Team, World};

/// How often.
const EVERY: Duration = Duration::from_millis(250);

impl World {
    /// Looks at the books until they are wrong.
    pub(crate) async fn watch_books(&self) -> Result<()> {
        let mut tick = tokio::time::interval(EVERY);
        loop {
            tick.tick().await;
            for team in &self.teams {
                // What was seen before is spent: what a usage that is asked afterwards says comes on top.
                let spent = team.seen_done.load(Ordering::SeqCst);
                let (free, held) = self.credits(team).await?;
                let sum = free + held + i64::from(spent);
                let granted = i64::from(team.granted);
                ensure!(sum <= granted, "{free} free, {held} held and {spent} spent are more than {granted} granted");
            }
            // Beside the service, or instead of it while there is none.
            let store = Store::open(&self.home.database_url()).await?;
            let drift = store.verify_ledger().await?;
            store.close().await;
            ensure!(drift.is_empty(), "in the middle of it, the books do not balance: {drift:?}");
        }
    }

    /// Credits of a team that are free, and those that are held.
    pub(crate) async fn credits(&self, team: &Team) -> Result<(i64, i64)> {
        let (status, _, usage) =
            self.json(|client, base| client.get(format!("{base}/usage")).bearer_auth(&team.key)).await?;
        let number = |name: &str| usage["credits"][name].as_i64();
        match (status, number("total"), number("held")) {
            (200, Some(total), Some(held)) => Ok((total, held)),
            _ => Err(anyhow::anyhow!("usage is answered {status} {}", Value::to_string(&usage))),
        }
    }
}
