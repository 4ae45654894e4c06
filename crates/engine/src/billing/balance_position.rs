//! How far the check of balances has come.

use grabd_domain::ids::TeamId;
use parking_lot::Mutex;

/// The last team that was checked. `None`: the first one is next.
#[derive(Debug, Default)]
pub(crate) struct BalancePosition(Mutex<Option<TeamId>>);

impl BalancePosition {
    pub(crate) fn get(&self) -> Option<TeamId> {
        *self.0.lock()
    }

    pub(crate) fn set(&self, last: Option<TeamId>) {
        *self.0.lock() = last;
    }
}
