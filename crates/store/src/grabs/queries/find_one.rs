//! Reads of single grabs, which share statements under load.
//!
//! A read that finds no other in progress begins at once. Those that arrive meanwhile are answered by one statement when it
//! has ended, and so on: a statement costs two changes between threads with SQLite and a round trip with PostgreSQL, whether
//! it reads one grab or a hundred. It begins after the reads that it answers, so that each sees what was committed before.

use std::collections::HashMap;

use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::{GrabId, TeamId};
use tokio::runtime::Handle;

use crate::areas::Grabs;
use crate::{Error, Result, Store};

/// The read in progress. Its end lets the next one begin, also when the caller has gone or panicked.
struct Reading<'a>(&'a Store);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if self.0.shared_reads.has_more() {
            match Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn(answer_waiting(self.0.clone()))),
                // At the end of the process. The waiting reads have no caller any more.
                Err(_) => self.0.shared_reads.abandon(),
            }
        }
    }
}

impl Grabs<'_> {
    /// Finds a grab of a caller.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_grab(self, team: TeamId, environment: Environment, id: GrabId) -> Result<Option<Grab>> {
        let Some(answer) = self.store.shared_reads.join(id) else {
            let _reading = Reading(self.store);
            let found = self.find_scoped(team, environment, id).await;
            return found.inspect_err(|error| self.store.shared_reads.fail_in_outage(error));
        };
        match answer.await.unwrap_or(Err(Error::Closed)) {
            // The unreadable row may be that of another caller.
            Err(error) if error.concerns_row() => self.find_scoped(team, environment, id).await,
            found => Ok(found?.filter(|grab| grab.team == team && grab.environment == environment)),
        }
    }
}

async fn answer_waiting(store: Store) {
    let _reading = Reading(&store);
    let waiting = store.shared_reads.take();
    let mut ids: Vec<GrabId> = waiting.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    let found: Result<HashMap<GrabId, Grab>> =
        store.grabs().read_grabs(&ids).await.map(|grabs| grabs.into_iter().map(|grab| (grab.id, grab)).collect());
    if let Err(error) = &found {
        store.shared_reads.fail_in_outage(error);
    }
    for (id, sender) in waiting {
        // The caller may have gone.
        drop(sender.send(found.as_ref().map(|grabs| grabs.get(&id).cloned()).map_err(Clone::clone)));
    }
}
