//! What one connection is doing, and since when: the one place that knows whose turn it is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::Patience;

/// What an HTTP/2 client says first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The state of a connection, told by its line and its answers.
pub(super) struct Pulse(Mutex<State>);

struct State {
    /// Requests whose answers are not over.
    requests: usize,
    /// Between requests: what is awaited.
    awaited: Awaited,
    /// Since when.
    since: Instant,
    /// How much of the preface has come, for as long as nothing else has.
    preface: Option<usize>,
    /// HTTP/2 peers say things between requests that are no requests.
    is_http2: bool,
    /// Parts of answers that it is the client's turn to take, oldest first.
    owed: BTreeMap<u64, Instant>,
    next_owed: u64,
    /// Since when the line takes nothing.
    blocked: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// The end of a header: of the first one, or of one that has begun.
    Header,
    /// The beginning of one.
    Request,
}

/// What is to be done about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Wait,
    /// Its client is told to go: it has asked for nothing for long, or leaves an answer lying. What else is under way
    /// on it may end first, as that may be for other people when a proxy or a whole service shares the connection.
    Close,
    /// It ends here: nobody would get anything over it.
    Cut,
}

/// A request that is under way.
pub(super) struct Ongoing(Arc<Pulse>);

/// A part of an answer that the client has not taken yet.
pub(super) struct Owed {
    pulse: Arc<Pulse>,
    number: u64,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            requests: 0,
            awaited: Awaited::Header,
            since: Instant::now(),
            preface: Some(0),
            is_http2: false,
            owed: BTreeMap::new(),
            next_owed: 0,
            blocked: None,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client has sent something.
    pub(super) fn heard(&self, bytes: &[u8]) {
        let mut state = self.state();
        if let Some(before) = state.preface {
            let (said, expected) = (bytes, &PREFACE[before..]);
            let length = said.len().min(expected.len());
            match said[..length] == expected[..length] {
                true if before + length == PREFACE.len() => {
                    state.preface = None;
                    state.is_http2 = true;
                    state.awaits(Awaited::Request);
                }
                true => state.preface = Some(before + length),
                false => state.preface = None,
            }
        } else if state.requests == 0 && !state.is_http2 && state.awaited == Awaited::Request {
            state.awaits(Awaited::Header);
        }
    }

    /// The line has taken something.
    pub(super) fn moved(&self) {
        self.state().blocked = None;
    }

    /// The line takes nothing.
    pub(super) fn blocked(&self) {
        self.state().blocked.get_or_insert_with(Instant::now);
    }

    /// A request's header is here.
    pub(super) fn begin(self: &Arc<Self>) -> Ongoing {
        self.state().requests += 1;
        Ongoing(Arc::clone(self))
    }

    /// From now on it is the client's turn.
    pub(super) fn owe(self: &Arc<Self>) -> Owed {
        let mut state = self.state();
        let number = state.next_owed;
        state.next_owed += 1;
        state.owed.insert(number, Instant::now());
        Owed { pulse: Arc::clone(self), number }
    }

    /// What is to be done now. `crowded` when others wait for this connection's place.
    pub(super) fn verdict(&self, patience: Patience, crowded: bool) -> Verdict {
        let state = self.state();
        let now = Instant::now();
        let is_over = |since: Instant| now.duration_since(since) >= patience.answer;
        if state.blocked.is_some_and(is_over) {
            return Verdict::Cut;
        }
        if state.owed.first_key_value().is_some_and(|(_, since)| is_over(*since)) {
            return Verdict::Close;
        }
        if state.requests > 0 {
            return Verdict::Wait;
        }
        let waited = now.duration_since(state.since);
        match state.awaited {
            Awaited::Header if waited >= patience.header => Verdict::Cut,
            Awaited::Request if waited >= patience.idle || crowded => Verdict::Close,
            Awaited::Header | Awaited::Request => Verdict::Wait,
        }
    }
}

impl State {
    fn awaits(&mut self, awaited: Awaited) {
        self.awaited = awaited;
        self.since = Instant::now();
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        if state.requests == 0 {
            state.awaits(Awaited::Request);
        }
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.pulse.state().owed.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    const PATIENCE: Patience =
        Patience { header: Duration::from_secs(10), idle: Duration::from_secs(60), answer: Duration::from_secs(30) };

    fn pulse() -> Arc<Pulse> {
        Arc::new(Pulse::new())
    }

    /// After how many seconds something is done, and what.
    async fn until(pulse: &Pulse) -> (u64, Verdict) {
        for seconds in 0..1000 {
            match pulse.verdict(PATIENCE, false) {
                Verdict::Wait => advance(Duration::from_secs(1)).await,
                verdict @ (Verdict::Close | Verdict::Cut) => return (seconds, verdict),
            }
        }
        (1000, Verdict::Wait)
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_header_has_ten_seconds_however_it_trickles() {
        let silent = pulse();
        assert_eq!(until(&silent).await, (10, Verdict::Cut));
        for first in [&b"G"[..], b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r"] {
            let pulse = pulse();
            for _ in 0..9 {
                pulse.heard(first);
                advance(Duration::from_secs(1)).await;
            }
            assert_eq!(until(&pulse).await, (1, Verdict::Cut));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_has_a_minute_unless_its_place_is_wanted() {
        let pulse = pulse();
        pulse.heard(b"GET / HTTP/1.1\r\n\r\n");
        let request = pulse.begin();
        assert_eq!(until(&pulse).await, (1000, Verdict::Wait));
        drop(request);
        assert_eq!(pulse.verdict(PATIENCE, true), Verdict::Close);
        assert_eq!(until(&pulse).await, (60, Verdict::Close));
        // A second header has as long as the first one.
        pulse.heard(b"G");
        assert_eq!(until(&pulse).await, (10, Verdict::Cut));
    }

    #[tokio::test(start_paused = true)]
    async fn what_http2_says_between_requests_is_no_request() {
        let pulse = pulse();
        pulse.heard(&PREFACE[..20]);
        pulse.heard(&PREFACE[20..]);
        for _ in 0..59 {
            pulse.heard(b"ping");
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(until(&pulse).await, (1, Verdict::Close));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_taken_piece_by_piece_or_not_at_all() {
        let pulse = pulse();
        let _request = pulse.begin();
        for _ in 0..10 {
            let piece = pulse.owe();
            advance(Duration::from_secs(29)).await;
            assert_eq!(pulse.verdict(PATIENCE, false), Verdict::Wait);
            drop(piece);
        }
        let (_old, new) = (pulse.owe(), pulse.owe());
        drop(new);
        assert_eq!(until(&pulse).await, (30, Verdict::Close));
    }

    #[tokio::test(start_paused = true)]
    async fn a_blocked_line_is_blocked_from_the_first_refusal_on() {
        let pulse = pulse();
        let _request = pulse.begin();
        for _ in 0..29 {
            pulse.blocked();
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(until(&pulse).await, (1, Verdict::Cut));
        pulse.moved();
        assert_eq!(pulse.verdict(PATIENCE, false), Verdict::Wait);
    }
}
