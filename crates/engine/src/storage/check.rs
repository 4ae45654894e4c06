//! Measures the free space, and checks what teams store.

use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::team_limits::TeamLimit;
use grabd_store::grabs::PayerStorage;

use super::{Creator, Measured, Shortage};
use crate::error::Error;
use crate::service::Core;

/// How often the free space is measured.
const INTERVAL: Duration = Duration::from_secs(10);
/// Time limit of a measurement: a network file system may not answer.
const TIMEOUT: Duration = Duration::from_secs(5);
const MEGABYTE: u64 = 1_000_000;
/// Maximum number of payers that are refused first while the disk is short of space.
const MAX_LARGEST: u32 = 1000;

impl Core {
    /// Why some or all creates are refused, if the disk of the images is almost full. For operators.
    pub fn short_of_disk(&self) -> Option<String> {
        let is_short = |measured: &Measured| measured.shortage() != Shortage::None;
        let Measured { free_bytes, total_bytes: _, floor_bytes } = self.grabs.storage.last().filter(is_short)?;
        Some(format!("disk ({} MiB free, {} MiB required)", free_bytes >> 20, floor_bytes >> 20))
    }
}

/// Checks that the disk has enough free space for a create.
///
/// # Errors
/// [`Fault::StorageFull`].
pub(crate) fn check_disk(core: &Core, creator: Creator) -> Result<(), Fault> {
    core.grabs.storage.check(creator).inspect_err(|_| core.metrics.admission_refused("disk"))
}

/// Checks that the team's images take no more space than they may. The grab that exceeds the limit is still created.
///
/// # Errors
/// [`Fault::TeamStorageFull`].
pub(crate) async fn check_team(core: &Core, caller: Caller) -> Result<(), Error> {
    let limit = match core.limits.of(caller.team, TeamLimit::TeamMegabytes) {
        Some(own) => Some(own.into()).filter(|own| *own > 0),
        None => core.settings.retention.team_megabytes,
    };
    let Some(limit_megabytes) = limit else { return Ok(()) };
    if caller.environment == Environment::Test {
        // Placeholders are not stored.
        return Ok(());
    }
    let stored = core.store.grabs().stored_bytes(caller.team).await?;
    match stored > limit_megabytes.saturating_mul(MEGABYTE) {
        true => Err(Fault::TeamStorageFull { stored_megabytes: stored.div_ceil(MEGABYTE), limit_megabytes }.into()),
        false => Ok(()),
    }
}

/// Measures the free space. If that fails, the last measurement remains.
pub(crate) async fn measure(core: &Core) {
    match tokio::time::timeout(TIMEOUT, core.grabs.images.disk_space()).await {
        Ok(Ok(space)) => {
            let measured = Measured::new(space, core.settings.retention.min_free_percent);
            core.grabs.storage.record(measured);
            if measured.shortage() >= Shortage::Largest {
                find_largest(core).await;
            }
        }
        Ok(Err(error)) => tracing::error!(%error, "the free disk space cannot be measured; trying again"),
        Err(_) => tracing::error!("the disk of the images does not respond; measuring again"),
    }
}

/// Finds the payers that store the most. If that fails, those found before remain.
async fn find_largest(core: &Core) {
    match core.store.grabs().largest_payers(MAX_LARGEST).await {
        Ok((payers, all)) => {
            let mut sum = 0_u64;
            let is_among = |payer: &PayerStorage| {
                let is_missing = sum < all / 2;
                sum = sum.saturating_add(payer.bytes);
                is_missing
            };
            let largest = payers.into_iter().take_while(is_among).map(|payer| payer.payer);
            core.grabs.storage.set_largest(largest.collect());
        }
        Err(error) => tracing::error!(%error, "the accounts that store the most cannot be read"),
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
