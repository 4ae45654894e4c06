//! Writes the waiting requests every second, and keeps the newest of each team and day.

use std::time::Duration;

use grabd_domain::Day;
use grabd_domain::ids::TeamId;
use tokio::time::MissedTickBehavior;

use super::written::TeamAndKind;
use crate::billing::find_payer;
use crate::error::Error;
use crate::service::Core;

const INTERVAL: Duration = Duration::from_secs(1);
/// Requests written in one transaction, which must not delay others.
const BATCH: usize = 100;

/// How many requests of a team are kept for each day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestsPerDay {
    /// Those that were refused or failed.
    pub refused: u32,
    /// Those that were accepted.
    pub accepted: u32,
}

const USUAL: RequestsPerDay = RequestsPerDay { refused: 8000, accepted: 2000 };
/// Accounts of strangers cost nothing, so what they store must be little.
const UNPAID: RequestsPerDay = RequestsPerDay { refused: 300, accepted: 100 };

/// How many requests of a team are kept for each day.
///
/// # Errors
/// When the database cannot be read.
pub async fn requests_per_day(core: &Core, team: TeamId) -> Result<RequestsPerDay, Error> {
    if !core.settings.abuse.has_strangers {
        return Ok(USUAL);
    }
    Ok(if find_payer(core, team).await?.has_paid { USUAL } else { UNPAID })
}

/// Runs until the core stops, and then writes what is left.
pub(crate) async fn run(core: Core) {
    let mut tick = tokio::time::interval(INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_last = tokio::select! {
            () = core.stop.cancelled() => true,
            _ = tick.tick() => false,
        };
        write(&core).await;
        if is_last {
            break;
        }
    }
}

/// Writes the waiting requests, and deletes the oldest of teams with many.
pub(super) async fn write(core: &Core) {
    let waiting = core.requests.take();
    if waiting.is_empty() {
        return;
    }
    for batch in waiting.chunks(BATCH) {
        if let Err(error) = core.store.requests().record_requests(batch.to_vec()).await {
            core.metrics.requests_not_recorded("database", u64::try_from(batch.len()).unwrap_or(u64::MAX));
            tracing::warn!(%error, count = batch.len(), "API requests could not be recorded");
        }
    }
    let kinds: Vec<TeamAndKind> = waiting.iter().map(|request| (request.team, request.is_refused())).collect();
    for (team, is_refused) in core.requests.count_written(&kinds) {
        if let Err(error) = trim(core, team, is_refused).await {
            let error = error.into_fault();
            tracing::warn!(%error, "old API requests of a team could not be deleted; they are with later ones");
        }
    }
}

/// Deletes all but the newest requests of a team of today.
async fn trim(core: &Core, team: TeamId, is_refused: bool) -> Result<(), Error> {
    let RequestsPerDay { refused, accepted } = requests_per_day(core, team).await?;
    let kept = if is_refused { refused } else { accepted };
    core.store.requests().trim_requests(team, is_refused, Day::of(core.now()), kept).await?;
    Ok(())
}
