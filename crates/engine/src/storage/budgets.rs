//! What is known of the bytes that accounts store.

use std::collections::HashMap;
use std::time::Duration;

use grabd_domain::ids::TeamId;
use grabd_domain::storage::StoredBytes;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long the bytes of the other teams are known.
const KNOWN: Duration = Duration::from_secs(10);
/// Maximum number of teams that are remembered. Beyond it, all are forgotten, which costs a query for each.
const MAX_TEAMS: usize = 10_000;

/// What the other teams of the accounts of recent creates store.
#[derive(Default)]
pub(crate) struct Budgets(Mutex<HashMap<TeamId, (Instant, StoredBytes)>>);

impl Budgets {
    pub(super) fn get(&self, team: TeamId) -> Option<StoredBytes> {
        self.0.lock().get(&team).filter(|(at, _)| at.elapsed() < KNOWN).map(|(_, others)| *others)
    }

    pub(super) fn put(&self, team: TeamId, others: StoredBytes) {
        let mut known = self.0.lock();
        if known.len() >= MAX_TEAMS {
            known.retain(|_, (at, _)| at.elapsed() < KNOWN);
        }
        if known.len() >= MAX_TEAMS {
            known.clear();
        }
        known.insert(team, (Instant::now(), others));
    }

    /// Forgets what is known of a team, and returns it.
    pub(super) fn take(&self, team: TeamId) -> StoredBytes {
        self.0.lock().remove(&team).map_or(StoredBytes::default(), |(_, others)| others)
    }
}
