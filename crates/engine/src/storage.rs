//! Retention settings, and the disk floor: nothing is created while the disk of the images is almost full, so that what
//! was created can be finished, and the database can still be written.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Environment};
use grabd_store::DiskSpace;

use crate::core::{Core, internal_error};

/// How often the free space is measured.
const INTERVAL: Duration = Duration::from_secs(10);
/// Time limit of a measurement: a network file system may not answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// What must stay free whatever the size of the disk.
const MIN_FREE_BYTES: u64 = 1 << 30;
const MEGABYTE: u64 = 1_000_000;

/// How long things are kept, and how much. `None`: until they are deleted on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Images of live grabs, from the end of the grab.
    pub images: Option<Duration>,
    /// Live grabs, from their end. Must not be shorter than the window of the usage counts.
    pub grabs: Option<Duration>,
    /// Test grabs, from their end.
    pub test_grabs: Option<Duration>,
    /// Maximum size of the images of a team's live grabs, in megabytes. `None`: not limited.
    pub team_megabytes: Option<u64>,
    /// Percentage of the images' disk that must be free for creates, and at least 1 GiB. 0: creates need no free space.
    pub min_free_percent: u8,
}

/// The last measurement of the disk.
#[derive(Debug, Default)]
pub(crate) struct Storage(Mutex<Option<Measured>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measured {
    free_bytes: u64,
    /// What must be free.
    floor_bytes: u64,
}

impl Measured {
    fn new(space: DiskSpace, min_free_percent: u8) -> Self {
        let share = space.total_bytes / 100 * u64::from(min_free_percent);
        let floor_bytes = if min_free_percent == 0 { 0 } else { share.max(MIN_FREE_BYTES) };
        Self { free_bytes: space.free_bytes, floor_bytes }
    }

    const fn is_low(self) -> bool {
        self.free_bytes < self.floor_bytes
    }
}

impl Storage {
    fn last(&self) -> Option<Measured> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that a grab may be created.
    ///
    /// # Errors
    /// [`Fault::StorageFull`].
    pub(crate) fn check(&self) -> Result<(), Fault> {
        match self.last() {
            Some(measured) if measured.is_low() => Err(Fault::StorageFull),
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        self.last().map_or(0, |measured| measured.free_bytes)
    }

    pub(crate) fn floor_bytes(&self) -> u64 {
        self.last().map_or(0, |measured| measured.floor_bytes)
    }

    fn record(&self, measured: Measured) {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(measured);
        let Measured { free_bytes, floor_bytes } = measured;
        match (before.is_some_and(Measured::is_low), measured.is_low()) {
            (false, true) => tracing::error!(
                free_bytes,
                floor_bytes,
                "the disk of the images is almost full; creates are refused until there is more free space"
            ),
            (true, false) => tracing::info!(free_bytes, floor_bytes, "the disk has enough free space again"),
            (true, true) | (false, false) => {}
        }
    }
}

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
    let Some(limit_megabytes) = core.settings.retention.team_megabytes else { return Ok(()) };
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

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn floor_is_the_larger_of_one_gib_and_the_share_of_the_disk() {
        for (free, total, percent, is_low) in [
            (GIB, 10 * GIB, 5, false),
            (GIB - 1, 10 * GIB, 5, true),
            (5 * GIB, 100 * GIB, 5, false),
            (5 * GIB - 100, 100 * GIB, 5, true),
            (GIB, 100 * GIB, 1, false),
            (0, 100 * GIB, 0, false),
        ] {
            let space = DiskSpace { free_bytes: free, total_bytes: total };
            assert_eq!(Measured::new(space, percent).is_low(), is_low, "{free} of {total}, {percent} %");
        }
    }

    #[test]
    fn creates_are_refused_only_while_the_disk_is_low() {
        let storage = Storage::default();
        assert_eq!(storage.check(), Ok(()));
        for (free_bytes, expected) in [(1, Err(Fault::StorageFull)), (2, Ok(()))] {
            storage.record(Measured { free_bytes, floor_bytes: 2 });
            assert_eq!(storage.check(), expected);
        }
    }
}
