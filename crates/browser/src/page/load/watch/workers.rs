//! The dedicated workers of a page.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// Workers that run as soon as they are started. A page that starts more at the same time may start hundreds: if those ran, the
/// browser would hardly be able to report the others.
const AT_ONCE: u32 = 8;

/// After this time without a new worker, further ones run.
const PAUSE: Duration = Duration::from_millis(100);

/// The workers of a page, each with its own thread and heap.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    /// The URL of the script of each running worker, by its session.
    running: HashMap<String, String>,
    /// Sessions whose requests are not watched yet.
    unwatched: VecDeque<String>,
    /// The number of started workers.
    started: u32,
    /// When the last one was started.
    last_start: Option<Instant>,
}

impl Workers {
    pub(super) fn start(&mut self, session: String, url: String, now: Instant) {
        self.started += 1;
        self.last_start = Some(now);
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

    /// Takes the session of a new worker that may run, to watch its requests.
    pub(super) fn take_unwatched(&mut self, now: Instant) -> Option<String> {
        if self.are_starting(now) { None } else { self.unwatched.pop_front() }
    }

    /// Whether new workers do not run yet, because more of them are probably being started.
    pub(super) fn are_starting(&self, now: Instant) -> bool {
        let is_recent = self.last_start.is_some_and(|last| now < last + PAUSE);
        !self.unwatched.is_empty() && self.started > AT_ONCE && is_recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_workers_are_not_running() {
        let mut workers = Workers::default();
        let now = Instant::now();
        workers.start("a".into(), "blob:1".into(), now);
        workers.start("b".into(), "blob:2".into(), now);
        assert_eq!((workers.take_unwatched(now).as_deref(), workers.sessions().len()), (Some("a"), 2));
        workers.end("b");
        assert_eq!((workers.take_unwatched(now), workers.sessions()), (None, vec!["a".to_owned()]));
        workers.end("a");
        assert!(!workers.are_running());
        assert_eq!(workers.started(), 2);
    }

    #[test]
    fn many_workers_run_when_no_more_are_started() {
        let (mut workers, now) = (Workers::default(), Instant::now());
        for number in 0..AT_ONCE {
            workers.start(number.to_string(), String::new(), now);
            assert_eq!(workers.take_unwatched(now), Some(number.to_string()));
        }
        workers.start("last".into(), String::new(), now);
        assert!(workers.take_unwatched(now).is_none() && workers.are_starting(now));
        assert!(!workers.are_starting(now + PAUSE));
        assert_eq!(workers.take_unwatched(now + PAUSE).as_deref(), Some("last"));
    }
}
