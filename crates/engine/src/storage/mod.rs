//! Retention settings, and the disk floor: nothing is created while the disk of the images is almost full, so that what
//! was created can be finished, and the database can still be written.

mod check;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use grabd_domain::Fault;
use grabd_store::DiskSpace;

pub(crate) use check::{check_team, measure, run};

/// What must stay free whatever the size of the disk.
const MIN_FREE_BYTES: u64 = 1 << 30;

/// How long things are kept, and how much. `None`: until they are deleted on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Images of live grabs, from the end of the grab.
    pub images: Option<Duration>,
    /// Live grabs, from their end. Must not be shorter than the window of the usage counts.
    pub grabs: Option<Duration>,
    /// Test grabs, from their end.
    pub test_grabs: Option<Duration>,
    /// Accounts whose address was never verified, and with which nothing was done, from their creation.
    pub unverified: Option<Duration>,
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
