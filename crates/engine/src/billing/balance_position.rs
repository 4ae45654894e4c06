//! How far the check of balances has come.

use std::sync::{Mutex, PoisonError};

use grabd_domain::ids::TeamId;

/// The last team that was checked. `None`: the first one is next.
#[derive(Debug, Default)]
pub(crate) struct BalancePosition(Mutex<Option<TeamId>>);

impl BalancePosition {
    pub(crate) fn get(&self) -> Option<TeamId> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, last: Option<TeamId>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }
}
