//! Measures the free space, and checks what teams store.

use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::team_limits::TeamLimit;

use super::Measured;
use crate::core::Core;
use crate::faults::internal_error;

/// How often the free space is measured.
const INTERVAL: Duration = Duration::from_secs(10);
/// Time limit of a measurement: a network file system may not answer.
const TIMEOUT: Duration = Duration::from_secs(5);
const MEGABYTE: u64 = 1_000_000;

impl Core {
    /// Why nothing can be created, if the disk of the images is almost full. For operators.
    pub fn short_of_disk(&self) -> Option<String> {
        let Measured { free_bytes, floor_bytes } = self.grabs.storage.last().filter(|measured| measured.is_low())?;
        Some(format!("disk ({} MiB free, {} MiB required)", free_bytes >> 20, floor_bytes >> 20))
    }
}

/// Checks that the team's images take no more space than they may. The grab that exceeds the limit is still created.
///
/// # Errors
/// [`Fault::TeamStorageFull`].
pub(crate) async fn check_team(core: &Core, caller: Caller) -> Result<(), Fault> {
    let limit = match core.limits.of(caller.team, TeamLimit::TeamMegabytes) {
        Some(own) => Some(own.into()).filter(|own| *own > 0),
        None => core.settings.retention.team_megabytes,
    };
    let Some(limit_megabytes) = limit else { return Ok(()) };
    if caller.environment == Environment::Test {
        // Placeholders are not stored.
        return Ok(());
    }
    let stored = core.store.stored_bytes(caller.team).await.map_err(internal_error("storage.check_team"))?;
    match stored > limit_megabytes.saturating_mul(MEGABYTE) {
        true => Err(Fault::TeamStorageFull { stored_megabytes: stored.div_ceil(MEGABYTE), limit_megabytes }),
        false => Ok(()),
    }
}

/// Measures the free space. If that fails, the last measurement remains.
pub(crate) async fn measure(core: &Core) {
    match tokio::time::timeout(TIMEOUT, core.grabs.images.disk_space()).await {
        Ok(Ok(space)) => core.grabs.storage.record(Measured::new(space, core.settings.retention.min_free_percent)),
        Ok(Err(error)) => tracing::error!(%error, "the free disk space cannot be measured; trying again"),
        Err(_) => tracing::error!("the disk of the images does not respond; measuring again"),
    }
}

/// Runs until the core stops.
pub(crate) async fn run(core: Core) {
    let mut tick = tokio::time::interval(INTERVAL);
    // The core measured when it started.
    tick.reset();
    loop {
        tokio::select! {
            () = core.stop.cancelled() => return,
            _ = tick.tick() => measure(&core).await,
        }
    }
}
