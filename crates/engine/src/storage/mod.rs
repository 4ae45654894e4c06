//! Limits of what is stored: what payers may store, and the disk floor.
//!
//! While the disk of the images is almost full, little is created, so that what was created can be finished, and the database
//! can still be written. Those who pay nothing are refused first, then those who store the most, and all others last.

mod budget;
mod budgets;
mod check;

use std::collections::HashSet;

use grabd_domain::Fault;
use grabd_domain::admission::Payer;
use grabd_domain::ids::PayerId;
use grabd_images::DiskSpace;
use parking_lot::Mutex;

pub(crate) use budget::{ceiling_of, live_ceiling, refuse, test_ceiling};
pub(crate) use budgets::Budgets;
pub(crate) use check::{check_disk, check_team, measure, run};

/// What must stay free whatever the size of the disk.
const MIN_FREE_BYTES: u64 = 1 << 30;

/// The last measurement of the disk.
#[derive(Debug, Default)]
pub(crate) struct Storage(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    measured: Option<Measured>,
    /// The largest payers, which together store half of everything. Empty while the disk has enough space for them.
    largest: HashSet<PayerId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measured {
    free_bytes: u64,
    total_bytes: u64,
    /// What must be free.
    floor_bytes: u64,
}

/// How short the disk is of free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shortage {
    /// It has enough.
    None,
    /// Below the floor: creates that cost nothing are refused.
    Free,
    /// Below three quarters of it: those of the largest payers, too.
    Largest,
    /// Below half of it: all.
    All,
}

/// Who wants to create a grab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Creator {
    /// A test key.
    Test,
    /// A payer that never paid, in a service with strangers.
    Unpaid,
    /// Another payer.
    Other(PayerId),
}

impl Creator {
    /// The payer of a live grab.
    pub(crate) const fn live(payer: Payer, has_strangers: bool) -> Self {
        if has_strangers && !payer.has_paid { Self::Unpaid } else { Self::Other(payer.id) }
    }
}

impl Measured {
    fn new(space: DiskSpace, min_free_percent: u8) -> Self {
        let share = space.total_bytes / 100 * u64::from(min_free_percent);
        let floor_bytes = if min_free_percent == 0 { 0 } else { share.max(MIN_FREE_BYTES) };
        let DiskSpace { free_bytes, total_bytes } = space;
        Self { free_bytes, total_bytes, floor_bytes }
    }

    const fn shortage(self) -> Shortage {
        let Self { free_bytes, total_bytes: _, floor_bytes } = self;
        if free_bytes >= floor_bytes {
            Shortage::None
        } else if free_bytes >= floor_bytes / 4 * 3 {
            Shortage::Free
        } else if free_bytes >= floor_bytes / 2 {
            Shortage::Largest
        } else {
            Shortage::All
        }
    }
}

impl Storage {
    fn last(&self) -> Option<Measured> {
        self.0.lock().measured
    }

    /// Checks that a grab may be created.
    ///
    /// # Errors
    /// [`Fault::StorageFull`].
    pub(crate) fn check(&self, creator: Creator) -> Result<(), Fault> {
        let state = self.0.lock();
        let is_refused = match state.measured.map_or(Shortage::None, Measured::shortage) {
            Shortage::None => false,
            Shortage::Free => matches!(creator, Creator::Test | Creator::Unpaid),
            Shortage::Largest => match creator {
                Creator::Test | Creator::Unpaid => true,
                Creator::Other(payer) => state.largest.contains(&payer),
            },
            Shortage::All => true,
        };
        if is_refused { Err(Fault::StorageFull) } else { Ok(()) }
    }

    /// The disk of the images, at most ten seconds ago. `None` before the first measurement.
    pub(crate) fn disk(&self) -> Option<DiskSpace> {
        let Measured { free_bytes, total_bytes, floor_bytes: _ } = self.last()?;
        Some(DiskSpace { free_bytes, total_bytes })
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        self.last().map_or(0, |measured| measured.free_bytes)
    }

    pub(crate) fn floor_bytes(&self) -> u64 {
        self.last().map_or(0, |measured| measured.floor_bytes)
    }

    fn record(&self, measured: Measured) {
        let before = self.0.lock().measured.replace(measured);
        let Measured { free_bytes, total_bytes: _, floor_bytes } = measured;
        let (before, after) = (before.map_or(Shortage::None, Measured::shortage), measured.shortage());
        if after > before {
            let refused = match after {
                Shortage::None => "nothing",
                Shortage::Free => "creates of test keys and of accounts that never paid",
                Shortage::Largest => "creates of test keys, of accounts that never paid and of the largest accounts",
                Shortage::All => "all creates",
            };
            tracing::error!(free_bytes, floor_bytes, refused, "the disk of the images is almost full");
        } else if after < before && after == Shortage::None {
            tracing::info!(free_bytes, floor_bytes, "the disk has enough free space again");
        }
        if after == Shortage::None {
            self.set_largest(HashSet::new());
        }
    }

    fn set_largest(&self, payers: HashSet<PayerId>) {
        self.0.lock().largest = payers;
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

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
            let shortage = Measured::new(space, percent).shortage();
            assert_eq!(shortage != Shortage::None, is_low, "{free} of {total}, {percent} %");
        }
    }

    #[test]
    fn those_who_pay_nothing_are_refused_first_and_small_payers_last() {
        let payer = |n| PayerId(Uuid::from_u128(n));
        let storage = Storage::default();
        let creators = [Creator::Test, Creator::Unpaid, Creator::Other(payer(1)), Creator::Other(payer(2))];
        let refused = |storage: &Storage| creators.map(|creator| storage.check(creator).is_err());
        assert_eq!(refused(&storage), [false; 4], "not measured yet");
        for (free_bytes, expected) in [
            (100, [false, false, false, false]),
            (99, [true, true, false, false]),
            (75, [true, true, false, false]),
            (74, [true, true, true, false]),
            (50, [true, true, true, false]),
            (49, [true, true, true, true]),
            (100, [false, false, false, false]),
        ] {
            storage.record(Measured { free_bytes, total_bytes: 1000, floor_bytes: 100 });
            storage.set_largest(HashSet::from([payer(1)]));
            assert_eq!(refused(&storage), expected, "{free_bytes}");
        }
    }
}
