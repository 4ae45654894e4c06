//! The dedicated workers of a page.

use std::collections::{HashMap, VecDeque};

/// The workers of a page, each with its own thread and heap.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    /// The URL of the script of each running worker, by its session.
    running: HashMap<String, String>,
    /// Sessions whose requests are not watched yet.
    unwatched: VecDeque<String>,
    /// The number of started workers.
    started: u32,
}

impl Workers {
    pub(super) fn start(&mut self, session: String, url: String) {
        self.started += 1;
        self.unwatched.push_back(session.clone());
        self.running.insert(session, url);
    }

    pub(super) fn end(&mut self, session: &str) {
        self.running.remove(session);
        self.unwatched.retain(|unwatched| unwatched != session);
    }

    /// The number of workers that were started, also of those that have ended.
    pub(crate) fn started(&self) -> u32 {
        self.started
    }

    /// The sessions of the running workers.
    pub(crate) fn sessions(&self) -> Vec<String> {
        self.running.keys().cloned().collect()
    }

    /// Returns true if a reported worker is running.
    pub(super) fn are_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Takes the session of a new worker, to watch its requests.
    pub(super) fn take_unwatched(&mut self) -> Option<String> {
        self.unwatched.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_workers_are_not_running() {
        let mut workers = Workers::default();
        workers.start("a".into(), "blob:1".into());
        workers.start("b".into(), "blob:2".into());
        assert_eq!((workers.take_unwatched().as_deref(), workers.sessions().len()), (Some("a"), 2));
        workers.end("b");
        assert_eq!((workers.take_unwatched(), workers.sessions()), (None, vec!["a".to_owned()]));
        workers.end("a");
        assert!(!workers.are_running());
        assert_eq!(workers.started(), 2);
    }
}
