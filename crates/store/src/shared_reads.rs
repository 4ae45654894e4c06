//! Reads of single grabs that wait for the one in progress, and then share a statement.

use std::mem;

use grabd_domain::grabs::Grab;
use grabd_domain::ids::GrabId;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{Error, Result};

/// Maximum grabs per statement.
const BATCH: usize = 128;

pub(crate) type Answer = Result<Option<Grab>>;

/// A grab to be read, and where the answer goes.
pub(crate) type WaitingRead = (GrabId, oneshot::Sender<Answer>);

/// The reads of all clones of a store. One is in progress at a time.
#[derive(Debug, Default)]
pub(crate) struct SharedReads(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_reading: bool,
    /// At most one for each open request, whose number the servers limit.
    waiting: Vec<WaitingRead>,
}

impl SharedReads {
    /// Waits for the read in progress. `None` if there is none: now the caller has to read, and then to call
    /// [`SharedReads::has_more`].
    pub(crate) fn join(&self, id: GrabId) -> Option<oneshot::Receiver<Answer>> {
        let mut state = self.0.lock();
        if !mem::replace(&mut state.is_reading, true) {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.push((id, sender));
        Some(receiver)
    }

    /// Ends the read in progress. If others wait for it, the next one begins and has to be answered.
    pub(crate) fn has_more(&self) -> bool {
        let mut state = self.0.lock();
        state.is_reading = !state.waiting.is_empty();
        state.is_reading
    }

    /// Ends the read in progress, and those that wait for it without an answer.
    pub(crate) fn abandon(&self) {
        *self.0.lock() = State::default();
    }

    /// The reads that are answered next.
    pub(crate) fn take(&self) -> Vec<WaitingRead> {
        let mut state = self.0.lock();
        let count = state.waiting.len().min(BATCH);
        state.waiting.drain(..count).collect()
    }

    /// During an outage, the reads that wait fail with the one in progress: each would wait as long for the same error.
    pub(crate) fn fail_in_outage(&self, error: &Error) {
        if error.is_outage() {
            for (_, sender) in mem::take(&mut self.0.lock().waiting) {
                drop(sender.send(Err(error.clone())));
            }
        }
    }
}
