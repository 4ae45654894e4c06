//! When keys and grants were last used. The times are written in one batch per sweep, outside of requests.

use std::collections::HashSet;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Principal;
use grabd_store::Store;
use parking_lot::Mutex;

/// Principals that called since the last write.
#[derive(Default)]
pub(crate) struct LastUse(Mutex<HashSet<Principal>>);

impl LastUse {
    /// Records a call.
    pub(crate) fn record(&self, principal: Principal) {
        self.0.lock().insert(principal);
    }

    /// Writes `now` as the last use of the recorded principals.
    pub(crate) async fn write(&self, store: &Store, now: Timestamp) -> Result<(), grabd_store::Error> {
        let callers = std::mem::take(&mut *self.0.lock());
        let (mut keys, mut grants) = (Vec::new(), Vec::new());
        for caller in callers {
            match caller {
                Principal::Key(key) => keys.push(key),
                Principal::Grant(grant) => grants.push(grant),
                // Sessions update their own last use.
                Principal::User(_) => {}
            }
        }
        store.accounts().touch_keys(keys, now).await?;
        store.oauth().touch_grants(grants, now).await
    }
}
