//! The pending requests of a page, and how long each of them delays the image.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::cdp::Kind;

/// The time within which received data is drawn.
pub(super) const QUIET: Duration = Duration::from_millis(100);

/// The number of open requests that are tracked.
const MAX_PENDING: usize = 1024;

/// The stored length of a URL: enough to find the element that uses it.
const URL_BYTES: usize = 2048;

/// After this time text is drawn without its font, as browsers do.
const FONT_LIMIT: Duration = Duration::from_secs(3);

/// If nothing of a body arrives for this long, the page does not read it or it does not end.
const BODY_GAP: Duration = Duration::from_millis(400);

/// The number of responses on one socket that are waited for: to a handshake and to a request. Later ones are
/// heartbeats.
const MAX_SOCKET_RESPONSES: u32 = 2;

/// A body that still arrives after this time is a stream.
const BODY_LIMIT: Duration = Duration::from_secs(4);

/// How long data requests of scripts and messages of sockets are waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WaitLimit {
    /// The page looks complete; an open request may be a long poll.
    #[default]
    Short,
    /// The page shows that it is loading.
    Long,
}

impl WaitLimit {
    fn duration(self) -> Duration {
        match self {
            Self::Short => Duration::from_secs(1),
            Self::Long => Duration::from_secs(4),
        }
    }
}

/// How long a request delays the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hold {
    /// Until this time, unless it ends before.
    Until(Instant),
    /// Until it ends.
    UntilEnd,
}

/// The requests of a page that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pending: HashMap<String, Pending>,
    /// When data last arrived.
    data_at: Option<Instant>,
    /// When a request last started, progressed or ended.
    pub(crate) progress_at: Option<Instant>,
}

#[derive(Debug)]
struct Pending {
    kind: Kind,
    url: String,
    started: Instant,
    /// When the response head was received.
    answered: Option<Instant>,
    /// When bytes of the body, or a message, were last received.
    received: Option<Instant>,
    /// When an expected message was last received: the first one, or the response to a sent message.
    awaited: Option<Instant>,
    /// When the page last sent a message whose response is waited for.
    sent: Option<Instant>,
    /// The number of such messages.
    sent_count: u32,
    bytes: u64,
    length: Option<u64>,
    /// True if it cannot change the image.
    irrelevant: bool,
}

impl Pending {
    /// `data_at` is the time when data last arrived for the page.
    fn hold(&self, wait_limit: WaitLimit, data_at: Option<Instant>) -> Hold {
        let limit = wait_limit.duration();
        match self.kind {
            Kind::Other => Hold::Until(self.started),
            _ if self.irrelevant => Hold::Until(self.started),
            Kind::Document | Kind::Script | Kind::Style | Kind::Image => Hold::UntilEnd,
            Kind::Font => Hold::Until(self.started + FONT_LIMIT),
            // The worker starts soon after its script has arrived. A shared one does so without an event.
            Kind::Worker => Hold::Until(match self.answered {
                Some(answered) => answered + QUIET,
                None => self.started + limit,
            }),
            Kind::Data => Hold::Until(match (self.answered, self.received) {
                // While other data arrives, more is expected.
                (None, _) => {
                    let expected = data_at.map_or(self.started, |at| at.max(self.started)) + limit;
                    expected.min(self.started + WaitLimit::Long.duration())
                }
                (Some(answered), None) => answered + QUIET,
                (Some(_), Some(_)) if self.is_complete() => self.started,
                (Some(answered), Some(last)) => (last + BODY_GAP).min(answered + BODY_LIMIT),
            }),
            Kind::Socket | Kind::Events => Hold::Until(match (self.awaited, self.received) {
                (Some(awaited), Some(last)) if self.sent.is_none_or(|sent| sent <= last) => match wait_limit {
                    WaitLimit::Short => awaited + QUIET,
                    WaitLimit::Long => (last + BODY_GAP).min(self.started + limit),
                },
                // The server has nothing else to say.
                (None, _) if self.kind == Kind::Events => self.started + BODY_LIMIT,
                // The first message, or a response, is expected.
                (_, _) => (self.sent.unwrap_or(self.started) + limit).min(self.started + BODY_LIMIT),
            }),
        }
    }

    fn is_complete(&self) -> bool {
        self.length.is_some_and(|length| self.bytes >= length)
    }

    /// Returns true if its response may still change the image.
    fn is_unsettled(&self, now: Instant) -> bool {
        match self.kind {
            Kind::Other | Kind::Socket => false,
            _ if self.irrelevant => false,
            // Without its first event, the content may be missing.
            Kind::Events => self.received.is_none(),
            Kind::Document | Kind::Script | Kind::Style | Kind::Image | Kind::Font => true,
            Kind::Worker => self.answered.is_none(),
            Kind::Data => match (self.answered, self.received) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(_), Some(last)) => !self.is_complete() && now < last + BODY_GAP,
            },
        }
    }
}

impl Requests {
    /// Adds a request, unless too many are tracked.
    pub(crate) fn begin(&mut self, request: String, kind: Kind, url: &str, now: Instant) {
        self.progress_at = Some(now);
        if self.pending.len() >= MAX_PENDING && !self.pending.contains_key(&request) {
            return;
        }
        let mut end = url.len().min(URL_BYTES);
        while !url.is_char_boundary(end) {
            end -= 1;
        }
        let pending = Pending {
            kind,
            url: url[..end].to_owned(),
            started: now,
            answered: None,
            received: None,
            awaited: None,
            sent: None,
            sent_count: 0,
            bytes: 0,
            length: None,
            irrelevant: false,
        };
        self.pending.insert(request, pending);
    }

    /// Records the response head of a request.
    pub(crate) fn answer(&mut self, request: &str, length: Option<u64>, now: Instant) {
        if let Some(pending) = self.pending.get_mut(request) {
            if pending.kind == Kind::Data {
                self.data_at = Some(now);
            }
            pending.answered = Some(now);
            pending.length = length;
            self.progress_at = Some(now);
        }
    }

    /// Records received bytes of the body, or a message.
    pub(crate) fn receive(&mut self, request: &str, bytes: u64, now: Instant) {
        if let Some(pending) = self.pending.get_mut(request) {
            if pending.received.is_none_or(|last| pending.sent.is_some_and(|sent| sent > last)) {
                pending.awaited = Some(now);
            }
            pending.received = Some(now);
            pending.bytes = pending.bytes.saturating_add(bytes);
            self.progress_at = Some(now);
        }
    }

    /// Records a message that the page sent over the socket.
    pub(crate) fn send(&mut self, request: &str, now: Instant) {
        if let Some(pending) = self.pending.get_mut(request) {
            let is_answered = pending.sent.is_none_or(|sent| pending.received.is_some_and(|last| last >= sent));
            if is_answered && pending.sent_count < MAX_SOCKET_RESPONSES {
                pending.sent = Some(now);
                pending.sent_count += 1;
            }
        }
    }

    /// Removes a request.
    pub(crate) fn end(&mut self, request: &str, now: Instant) {
        if self.pending.remove(request).is_some() {
            self.progress_at = Some(now);
        }
    }

    /// Records that the headers of a response have arrived, which is the only event about the script of a worker.
    pub(crate) fn receive_headers(&mut self, request: &str, now: Instant) {
        if let Some(pending) = self.pending.get_mut(request).filter(|pending| pending.kind == Kind::Worker) {
            pending.answered.get_or_insert(now);
            self.progress_at = Some(now);
        }
    }

    /// Ends the oldest request for this script, because a worker has started with it.
    pub(crate) fn worker_started(&mut self, url: &str, now: Instant) {
        let of = |pending: &Pending| pending.kind == Kind::Worker && url.starts_with(&pending.url);
        let scripts = self.pending.iter().filter(|(_, pending)| of(pending));
        let first = scripts.min_by_key(|(_, pending)| pending.started).map(|(request, _)| request.clone());
        if let Some(request) = first {
            self.end(&request, now);
        }
    }

    /// Returns true if the script of a worker has arrived, and no worker has started with it: it is a shared worker, or the
    /// script is of no use.
    pub(crate) fn has_unreported_worker(&self, now: Instant) -> bool {
        let has_started = |pending: &Pending| pending.answered.is_some_and(|answered| answered + QUIET <= now);
        self.pending.values().any(|pending| pending.kind == Kind::Worker && has_started(pending))
    }

    /// Returns true if no request is pending, except sockets and scripts of workers that have arrived. The browser counts
    /// event streams as requests, but not sockets.
    pub(crate) fn is_empty(&self) -> bool {
        let has_arrived = |pending: &Pending| pending.kind == Kind::Worker && pending.answered.is_some();
        self.pending.values().all(|pending| pending.kind == Kind::Socket || has_arrived(pending))
    }

    /// Removes all requests, because another document is shown.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }

    /// How long the requests delay the image in total; `None` if they do not.
    pub(crate) fn hold(&self, wait_limit: WaitLimit, now: Instant) -> Option<Hold> {
        self.pending
            .values()
            .map(|pending| pending.hold(wait_limit, self.data_at))
            .filter(|hold| *hold > Hold::Until(now))
            .max()
    }

    /// The number of requests that may still change the image.
    pub(crate) fn unsettled(&self, now: Instant) -> u32 {
        let count = self.pending.values().filter(|pending| pending.is_unsettled(now)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Returns true if the page still waits for data that it requested.
    pub(crate) fn awaits_data(&self) -> bool {
        let due = |pending: &Pending| match pending.kind {
            Kind::Data => pending.answered.is_none(),
            Kind::Worker => pending.answered.is_none(),
            Kind::Document | Kind::Script | Kind::Style | Kind::Image | Kind::Font => false,
            Kind::Socket | Kind::Events | Kind::Other => false,
        };
        self.pending.values().any(due)
    }

    /// Returns true if a socket or an event stream is open.
    pub(crate) fn awaits_messages(&self) -> bool {
        self.pending.values().any(|pending| matches!(pending.kind, Kind::Socket | Kind::Events))
    }

    /// Returns true if an open socket or event stream has received a message.
    pub(crate) fn has_messages(&self) -> bool {
        let is_socket = |pending: &Pending| matches!(pending.kind, Kind::Socket | Kind::Events);
        self.pending.values().any(|pending| is_socket(pending) && pending.received.is_some())
    }

    /// The URLs of the requests that delay the image, if all of them are for images and frames, which may be out of
    /// view.
    pub(crate) fn only_images_and_frames(&self, now: Instant) -> Option<Vec<String>> {
        let holding =
            || self.pending.values().filter(|pending| pending.hold(WaitLimit::Short, self.data_at) > Hold::Until(now));
        let all = holding().all(|pending| matches!(pending.kind, Kind::Image | Kind::Document));
        let urls: Vec<String> = holding().map(|pending| pending.url.clone()).collect();
        (all && !urls.is_empty()).then_some(urls)
    }

    /// Marks requests for these URLs as irrelevant for the image.
    pub(crate) fn set_irrelevant(&mut self, urls: &[String]) {
        for pending in self.pending.values_mut().filter(|pending| urls.contains(&pending.url)) {
            pending.irrelevant = true;
        }
    }

    /// Marks all requests as relevant again, because the image shows more than the viewport.
    pub(crate) fn reset_irrelevant(&mut self) {
        self.pending.values_mut().for_each(|pending| pending.irrelevant = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: WaitLimit = WaitLimit::Short;
    const MS: Duration = Duration::from_millis(1);

    fn requests(kind: Kind) -> (Requests, Instant) {
        let (mut requests, now) = (Requests::default(), Instant::now());
        requests.begin("1".into(), kind, "http://a/1", now);
        (requests, now)
    }

    #[test]
    fn documents_scripts_styles_and_images_hold_until_they_end() {
        for kind in [Kind::Document, Kind::Script, Kind::Style, Kind::Image] {
            let (mut requests, now) = requests(kind);
            let late = now + Duration::from_secs(60);
            assert_eq!(requests.hold(SHORT, late), Some(Hold::UntilEnd), "{kind:?}");
            assert_eq!(requests.unsettled(late), 1, "{kind:?}");
            requests.end("1", late);
            assert_eq!((requests.hold(SHORT, late), requests.unsettled(late)), (None, 0), "{kind:?}");
        }
    }

    #[test]
    fn fonts_hold_for_a_limited_time() {
        let (requests, now) = requests(Kind::Font);
        assert_eq!(requests.hold(SHORT, now), Some(Hold::Until(now + FONT_LIMIT)));
        assert_eq!(requests.hold(SHORT, now + FONT_LIMIT), None);
        assert_eq!(requests.unsettled(now + FONT_LIMIT), 1);
    }

    #[test]
    fn data_holds_longer_with_the_long_wait_limit() {
        let (requests, now) = requests(Kind::Data);
        let (short, long) = (WaitLimit::Short.duration(), WaitLimit::Long.duration());
        assert_eq!(requests.hold(SHORT, now), Some(Hold::Until(now + short)));
        assert_eq!(requests.hold(SHORT, now + short), None);
        assert_eq!(requests.hold(WaitLimit::Long, now + short), Some(Hold::Until(now + long)));
        assert!(requests.awaits_data());
        assert_eq!(requests.unsettled(now + long), 1, "the data may still arrive");
    }

    #[test]
    fn data_holds_longer_while_other_data_arrives() {
        let (mut requests, now) = requests(Kind::Data);
        requests.begin("2".into(), Kind::Data, "http://a/2", now);
        requests.answer("2", Some(0), now + 800 * MS);
        requests.end("2", now + 800 * MS);
        assert_eq!(requests.hold(SHORT, now), Some(Hold::Until(now + 1800 * MS)));
        requests.begin("3".into(), Kind::Data, "http://a/3", now);
        requests.answer("3", Some(0), now + 3500 * MS);
        requests.end("3", now + 3500 * MS);
        assert_eq!(requests.hold(SHORT, now), Some(Hold::Until(now + WaitLimit::Long.duration())));
    }

    #[test]
    fn unread_body_does_not_hold() {
        let (mut requests, now) = requests(Kind::Data);
        requests.answer("1", None, now);
        assert_eq!(requests.hold(SHORT, now), Some(Hold::Until(now + QUIET)));
        assert_eq!((requests.hold(SHORT, now + QUIET), requests.unsettled(now + QUIET)), (None, 0));
    }

    #[test]
    fn body_holds_while_it_arrives_up_to_a_limit() {
        let (mut requests, now) = requests(Kind::Data);
        requests.answer("1", Some(10), now);
        requests.receive("1", 9, now + 5 * MS);
        assert_eq!(requests.hold(SHORT, now), Some(Hold::Until(now + 5 * MS + BODY_GAP)));
        assert_eq!(requests.unsettled(now + 5 * MS), 1);
        requests.receive("1", 1, now + 6 * MS);
        assert_eq!(
            (requests.hold(SHORT, now + 6 * MS), requests.unsettled(now + 6 * MS)),
            (None, 0),
            "the body is complete"
        );
        let (mut stream, now) = self::requests(Kind::Data);
        stream.answer("1", None, now);
        stream.receive("1", 1, now + BODY_LIMIT);
        assert_eq!(stream.hold(SHORT, now + BODY_LIMIT), None, "a stream does not hold");
        assert_eq!(stream.unsettled(now + BODY_LIMIT), 1, "the stream is still open");
    }

    #[test]
    fn socket_holds_until_its_first_message_or_a_response() {
        for kind in [Kind::Socket, Kind::Events] {
            let (mut requests, now) = requests(kind);
            // A server sends events only if it has something to say.
            let (first, is_missing) = if kind == Kind::Events { (BODY_LIMIT, 1) } else { (1000 * MS, 0) };
            assert_eq!(requests.hold(SHORT, now), Some(Hold::Until(now + first)));
            assert_eq!(requests.unsettled(now), is_missing);
            requests.receive("1", 0, now + 50 * MS);
            assert_eq!(requests.hold(SHORT, now), Some(Hold::Until(now + 50 * MS + QUIET)));
            requests.send("1", now + 60 * MS);
            assert_eq!(requests.hold(SHORT, now), Some(Hold::Until(now + 1060 * MS)));
            requests.receive("1", 0, now + 500 * MS);
            assert_eq!(requests.hold(SHORT, now + 500 * MS), Some(Hold::Until(now + 500 * MS + QUIET)));
            requests.receive("1", 0, now + 900 * MS);
            assert_eq!(requests.hold(SHORT, now + 900 * MS), None, "nothing was sent since");
            requests.send("1", now + 910 * MS);
            requests.receive("1", 0, now + 920 * MS);
            requests.send("1", now + 930 * MS);
            assert_eq!(requests.hold(SHORT, now + 1100 * MS), None, "a heartbeat");
            assert_eq!(requests.hold(WaitLimit::Long, now), Some(Hold::Until(now + 920 * MS + BODY_GAP)));
            assert_eq!(requests.unsettled(now), 0);
        }
    }

    #[test]
    fn worker_start_ends_the_request_for_its_script() {
        let (mut requests, now) = requests(Kind::Worker);
        requests.begin("2".into(), Kind::Worker, "http://a/2", now + MS);
        assert_eq!(requests.hold(SHORT, now), Some(Hold::Until(now + MS + Duration::from_secs(1))));
        for url in ["http://a/2", "http://a/2", "http://a/1"] {
            requests.worker_started(url, now + 2 * MS);
        }
        assert_eq!((requests.hold(SHORT, now), requests.unsettled(now)), (None, 0));
    }

    #[test]
    fn script_of_a_shared_worker_does_not_hold_after_its_response() {
        let (mut requests, now) = requests(Kind::Worker);
        assert_eq!(requests.unsettled(now), 1);
        requests.receive_headers("1", now + MS);
        assert_eq!(requests.hold(SHORT, now), Some(Hold::Until(now + MS + QUIET)));
        assert_eq!((requests.unsettled(now + MS), requests.awaits_data()), (0, false));
        assert!(!requests.has_unreported_worker(now + MS) && requests.has_unreported_worker(now + MS + QUIET));
        requests.worker_started("http://a/1", now + 2 * MS);
        assert!(!requests.has_unreported_worker(now + 2 * QUIET));
    }

    #[test]
    fn irrelevant_requests_do_not_hold() {
        let (mut requests, now) = requests(Kind::Image);
        requests.begin("2".into(), Kind::Document, "http://a/2", now);
        let mut urls = requests.only_images_and_frames(now).unwrap();
        urls.sort();
        assert_eq!(urls, ["http://a/1", "http://a/2"]);
        requests.set_irrelevant(&urls);
        assert_eq!((requests.hold(SHORT, now), requests.unsettled(now)), (None, 0));
        assert_eq!(requests.only_images_and_frames(now), None);
        requests.reset_irrelevant();
        assert_eq!(requests.hold(SHORT, now), Some(Hold::UntilEnd));
        requests.begin("3".into(), Kind::Script, "http://a/3", now);
        assert_eq!(requests.only_images_and_frames(now), None, "a script may change the image");
    }

    #[test]
    fn pending_requests_are_bounded() {
        let (mut requests, now) = requests(Kind::Image);
        for number in 0..2 * MAX_PENDING {
            requests.begin(number.to_string(), Kind::Image, &"ü".repeat(URL_BYTES), now);
        }
        assert_eq!(requests.pending.len(), MAX_PENDING);
        assert!(requests.pending.values().all(|pending| pending.url.len() <= URL_BYTES));
    }
}
