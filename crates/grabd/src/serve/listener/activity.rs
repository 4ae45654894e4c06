//! Tracks what a connection is doing, and since when.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::connection_limits::Timeouts;

/// The connection preface of HTTP/2 (RFC 9113 section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The state of a connection, updated by its stream and its responses.
pub(super) struct ConnectionActivity(Mutex<State>);

struct State {
    /// Requests with unfinished responses.
    requests: usize,
    /// Between requests: what the client is expected to send.
    awaited: Awaited,
    /// Start of that wait.
    since: Instant,
    /// Number of preface bytes received, as long as only those have been received.
    preface: Option<usize>,
    /// HTTP/2 peers send frames between requests.
    is_http2: bool,
    /// Response parts that the client has not read, with the time since which they wait, oldest first.
    pending: BTreeMap<u64, Instant>,
    next_pending: u64,
    /// Time since which the socket accepts no data.
    blocked: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// The rest of a header: of the first one, or of one that has begun.
    Header,
    /// The start of a request.
    Request,
}

/// What to do with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Keep it open.
    Wait,
    /// Close it gracefully: the client was idle for too long, or does not read a response. Other requests on it
    /// may finish first, since a proxy or a service may share it between many users.
    Close,
    /// Close it immediately: nothing more can be delivered over it.
    Abort,
}

/// An open request.
pub(super) struct ActiveRequest(Arc<ConnectionActivity>);

/// A part of a response that the client has not read yet.
pub(super) struct PendingPart {
    activity: Arc<ConnectionActivity>,
    number: u64,
}

impl ConnectionActivity {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            requests: 0,
            awaited: Awaited::Header,
            since: Instant::now(),
            preface: Some(0),
            is_http2: false,
            pending: BTreeMap::new(),
            next_pending: 0,
            blocked: None,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Records received bytes.
    pub(super) fn record_received(&self, bytes: &[u8]) {
        let mut state = self.state();
        if let Some(before) = state.preface {
            let (received, expected) = (bytes, &PREFACE[before..]);
            let length = received.len().min(expected.len());
            match received[..length] == expected[..length] {
                true if before + length == PREFACE.len() => {
                    state.preface = None;
                    state.is_http2 = true;
                    state.set_awaited(Awaited::Request);
                }
                true => state.preface = Some(before + length),
                false => state.preface = None,
            }
        } else if state.requests == 0 && !state.is_http2 && state.awaited == Awaited::Request {
            state.set_awaited(Awaited::Header);
        }
    }

    /// Records that the socket accepted data.
    pub(super) fn record_written(&self) {
        self.state().blocked = None;
    }

    /// Records that the socket accepts no data.
    pub(super) fn record_blocked(&self) {
        self.state().blocked.get_or_insert_with(Instant::now);
    }

    /// Records a request whose header has arrived.
    pub(super) fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        self.state().requests += 1;
        ActiveRequest(Arc::clone(self))
    }

    /// Records a response part that the client must read.
    pub(super) fn add_pending(self: &Arc<Self>) -> PendingPart {
        let mut state = self.state();
        let number = state.next_pending;
        state.next_pending += 1;
        state.pending.insert(number, Instant::now());
        PendingPart { activity: Arc::clone(self), number }
    }

    /// The action to take now. `crowded` means that other connections wait for capacity.
    pub(super) fn action(&self, timeouts: Timeouts, crowded: bool) -> Action {
        let state = self.state();
        let now = Instant::now();
        let has_expired = |since: Instant| now.duration_since(since) >= timeouts.answer;
        if state.blocked.is_some_and(has_expired) {
            return Action::Abort;
        }
        if state.pending.first_key_value().is_some_and(|(_, since)| has_expired(*since)) {
            return Action::Close;
        }
        if state.requests > 0 {
            return Action::Wait;
        }
        let waited = now.duration_since(state.since);
        match state.awaited {
            Awaited::Header if waited >= timeouts.header => Action::Abort,
            Awaited::Request if waited >= timeouts.idle || crowded => Action::Close,
            Awaited::Header | Awaited::Request => Action::Wait,
        }
    }
}

impl State {
    fn set_awaited(&mut self, awaited: Awaited) {
        self.awaited = awaited;
        self.since = Instant::now();
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        if state.requests == 0 {
            state.set_awaited(Awaited::Request);
        }
    }
}

impl Drop for PendingPart {
    fn drop(&mut self) {
        self.activity.state().pending.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    const TIMEOUTS: Timeouts =
        Timeouts { header: Duration::from_secs(10), idle: Duration::from_secs(60), answer: Duration::from_secs(30) };

    fn activity() -> Arc<ConnectionActivity> {
        Arc::new(ConnectionActivity::new())
    }

    /// Advances the clock until an action is due. Returns the seconds and the action.
    async fn until(activity: &ConnectionActivity) -> (u64, Action) {
        for seconds in 0..1000 {
            match activity.action(TIMEOUTS, false) {
                Action::Wait => advance(Duration::from_secs(1)).await,
                action @ (Action::Close | Action::Abort) => return (seconds, action),
            }
        }
        (1000, Action::Wait)
    }

    #[tokio::test(start_paused = true)]
    async fn first_header_must_arrive_within_ten_seconds() {
        let silent = activity();
        assert_eq!(until(&silent).await, (10, Action::Abort));
        for first in [&b"G"[..], b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r"] {
            let activity = activity();
            for _ in 0..9 {
                activity.record_received(first);
                advance(Duration::from_secs(1)).await;
            }
            assert_eq!(until(&activity).await, (1, Action::Abort));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connection_is_closed_after_a_minute_or_when_capacity_is_needed() {
        let activity = activity();
        activity.record_received(b"GET / HTTP/1.1\r\n\r\n");
        let request = activity.begin_request();
        assert_eq!(until(&activity).await, (1000, Action::Wait));
        drop(request);
        assert_eq!(activity.action(TIMEOUTS, true), Action::Close);
        assert_eq!(until(&activity).await, (60, Action::Close));
        // A second header has the same time limit as the first.
        activity.record_received(b"G");
        assert_eq!(until(&activity).await, (10, Action::Abort));
    }

    #[tokio::test(start_paused = true)]
    async fn http2_frames_between_requests_do_not_extend_the_idle_timeout() {
        let activity = activity();
        activity.record_received(&PREFACE[..20]);
        activity.record_received(&PREFACE[20..]);
        for _ in 0..59 {
            activity.record_received(b"ping");
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(until(&activity).await, (1, Action::Close));
    }

    #[tokio::test(start_paused = true)]
    async fn unread_response_part_closes_the_connection() {
        let activity = activity();
        let _request = activity.begin_request();
        for _ in 0..10 {
            let piece = activity.add_pending();
            advance(Duration::from_secs(29)).await;
            assert_eq!(activity.action(TIMEOUTS, false), Action::Wait);
            drop(piece);
        }
        let (_old, new) = (activity.add_pending(), activity.add_pending());
        drop(new);
        assert_eq!(until(&activity).await, (30, Action::Close));
    }

    #[tokio::test(start_paused = true)]
    async fn blocked_time_counts_from_the_first_failed_write() {
        let activity = activity();
        let _request = activity.begin_request();
        for _ in 0..29 {
            activity.record_blocked();
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(until(&activity).await, (1, Action::Abort));
        activity.record_written();
        assert_eq!(activity.action(TIMEOUTS, false), Action::Wait);
    }
}
