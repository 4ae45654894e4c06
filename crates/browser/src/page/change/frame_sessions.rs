//! The sessions of frames of other sites.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sessions of the frames of other sites that steps named, by the ids of the frames. The browser ends them with the browser
/// context of the capture.
#[derive(Default)]
pub(in crate::page) struct FrameSessions(Mutex<HashMap<String, Arc<str>>>);

impl FrameSessions {
    /// The session of a frame, if there is one.
    pub(in crate::page) fn find(&self, frame: &str) -> Option<Arc<str>> {
        self.lock().get(frame).cloned()
    }

    /// Stores the session of a frame. Each step names a few frames, so that there are never many.
    pub(in crate::page) fn remember(&self, frame: &str, session: &Arc<str>) {
        self.lock().insert(frame.to_owned(), Arc::clone(session));
    }

    /// Removes the session of a frame that cannot be used in it.
    pub(in crate::page) fn forget(&self, frame: &str) {
        self.lock().remove(frame);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
