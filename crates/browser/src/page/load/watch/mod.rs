//! The state of one page, derived from its events in the order in which the browser sent them.

mod document;
mod end;
mod failing;
mod record;
mod requesters;
mod requests;
mod workers;
mod world;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grabd_domain::capture::RequestRule;
use grabd_domain::grabs::Challenge;
use tokio::sync::Notify;
use tokio::time::Instant;
use url::Url;

pub(crate) use self::document::{Document, Navigation};
pub(crate) use self::end::{Excess, Gone};
pub(crate) use self::failing::{FailedRequest, FailingRequests};
pub(crate) use self::record::{Exchange, Record, RecordedRequest, TlsDetails};
pub(crate) use self::requesters::{DocumentOrigin, Requesters};
pub(crate) use self::requests::{Hold, Requests, WaitLimit};
pub(crate) use self::workers::Workers;
pub(crate) use self::world::World;

use self::world::DocumentWorld;
use crate::cdp::{Event, Head, Kind, PausedRequest, Sink};

/// The number of pending responses whose bytes are counted separately.
const MAX_COUNTED_RESPONSES: usize = 1024;

/// The maximum decoded size of one response. A few kilobytes can decode to gigabytes.
const MAX_RESPONSE_BYTES: u64 = 50 << 20;

/// The maximum decoded size of all responses together.
const MAX_PAGE_BYTES: u64 = 100 << 20;

/// The maximum number of workers of a page, each with its own thread and heap. Large applications start a dozen.
const MAX_WORKERS: u32 = 64;

/// The maximum size of all events of a page. A busy page has a few megabytes; a flood of events, for example by sockets
/// or long `data:` URLs, would delay those of other pages.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// The number of stored response heads of documents. Only the last few loaders can still become the current document.
const MAX_HEADS: usize = 16;

/// The maximum number of paused requests.
const MAX_PAUSED: usize = 4096;

/// How long a paused request waits for the event that says which document caused it. It usually came before.
pub(crate) const REQUESTER_WAIT: Duration = Duration::from_millis(500);

/// A document that takes longer than this to load counts as slow.
const SLOW_LOAD: Duration = Duration::from_millis(300);

/// Records the state of a page.
#[derive(Default)]
pub(crate) struct Watch {
    seen: Mutex<WatchState>,
    changed: Notify,
}

/// The state behind [`Watch`].
#[derive(Debug, Default)]
pub(crate) struct WatchState {
    main_frame: String,
    /// The document in the main frame. The blank page of a prepared tab does not count.
    pub(crate) document: Option<Document>,
    /// The pending navigation of the main frame.
    pub(crate) navigation: Option<Navigation>,
    /// The number of main-frame navigations.
    pub(crate) navigations: u32,
    /// The number of redirects that the main frame followed, by HTTP or by the page.
    pub(crate) redirects: u32,
    /// The last main-frame navigation that ended without a document: a download or an empty response.
    pub(crate) aborted: Option<Navigation>,
    /// True if a download was refused.
    pub(crate) download: bool,
    /// When the current document was committed.
    pub(crate) committed_at: Option<Instant>,
    /// When the current document was parsed.
    pub(crate) parsed_at: Option<Instant>,
    /// When the load event of the current document came.
    pub(crate) loaded_at: Option<Instant>,
    /// True if an image of the page was taken.
    pub(crate) has_image: bool,
    /// True if the current document broke off while it was received.
    pub(crate) is_cut: bool,
    /// True if the current document was received to its end.
    pub(crate) is_received: bool,
    /// The number of started requests that could change the image.
    pub(crate) starts: u64,
    /// Pending requests.
    pub(crate) requests: Requests,
    heads: VecDeque<(String, Head)>,
    /// Decoded bytes of each pending response.
    received: HashMap<String, u64>,
    /// Decoded bytes of all responses.
    received_total: u64,
    /// Bytes of all events.
    event_bytes: usize,
    /// The number of grants of virtual time that have expired.
    pub(crate) grants_expired: u64,
    /// The page's workers.
    pub(crate) workers: Workers,
    /// The limit that the page exceeded.
    pub(crate) excess: Option<Excess>,
    /// True if the page's navigation is blocked. Its further navigations are then ignored.
    pub(crate) navigation_blocked: bool,
    /// The number of navigations until then.
    pub(crate) navigations_before_block: u32,
    /// Paused requests, to be answered, and when they arrived.
    paused: VecDeque<(PausedRequest, Instant)>,
    /// Which document caused which request, if that matters.
    requesters: Option<Box<Requesters>>,
    /// The bot protection service whose challenge the current document looks like.
    page_challenge: Option<Challenge>,
    /// The isolated world of our scripts in the document.
    world: Option<DocumentWorld>,
    /// The number of changes of databases, if they are tracked.
    pub(crate) database_changes: u64,
    /// The URL of the last window that the page wanted to open.
    prevented_window: Option<String>,
    /// The number of opened dialogs.
    pub(crate) dialogs: u32,
    /// Open dialogs. True for one about leaving the page.
    unanswered: VecDeque<bool>,
    /// How the page ended, if it did.
    pub(crate) gone: Option<Gone>,
    /// What the page requested and logged, if that is recorded.
    pub(crate) record: Option<Box<Record>>,
    /// The requests with which the capture fails, if there are rules about them.
    pub(crate) failing: Option<Box<FailingRequests>>,
}

impl Watch {
    /// Creates the state of a page with this main frame.
    pub(crate) fn new(main_frame: &str) -> Arc<Self> {
        let seen = WatchState { main_frame: main_frame.to_owned(), ..WatchState::default() };
        Arc::new(Self { seen: Mutex::new(seen), changed: Notify::new() })
    }

    /// The receiver of the page's events.
    pub(crate) fn sink(self: &Arc<Self>) -> Sink {
        let watch = self.clone();
        Arc::new(move |bytes, event| {
            let mut seen = watch.lock();
            // Bodies arrive in many parts, and no waiter depends on them.
            let is_relevant = !matches!(event, None | Some(Event::DataReceived { .. }));
            seen.event_bytes = seen.event_bytes.saturating_add(bytes);
            if seen.event_bytes > MAX_EVENT_BYTES {
                seen.excess.get_or_insert(Excess::Bytes);
            }
            if let Some(event) = event {
                seen.apply(event, Instant::now());
            }
            let is_relevant = is_relevant || seen.excess.is_some();
            drop(seen);
            if is_relevant {
                watch.changed.notify_waiters();
            }
        })
    }

    /// The receiver of the events of one of the page's workers. Only its requests, its own workers and its end count.
    pub(crate) fn worker_sink(self: &Arc<Self>, worker: String) -> Sink {
        let page = self.sink();
        let watch = self.clone();
        Arc::new(move |bytes, event| {
            let event = match event {
                Some(Event::Detached) => {
                    watch.lock().workers.end(&worker);
                    None
                }
                // The browser does not name the types of these requests: they are scripts and data.
                Some(Event::RequestStarted { request, loader, kind, url, redirected, details, frame: _ }) => {
                    let kind = if matches!(kind, Kind::Script | Kind::Worker) { Kind::Script } else { Kind::Data };
                    Some(Event::RequestStarted { request, loader, frame: None, kind, url, redirected, details })
                }
                Some(Event::ResponseReceived { request, loader, head, length, details, kind: _ }) => {
                    Some(Event::ResponseReceived { request, loader, kind: Kind::Data, head, length, details })
                }
                event => event.filter(is_of_worker),
            };
            page(bytes, event);
            watch.changed.notify_waiters();
        })
    }

    /// Reads the current state.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&WatchState) -> T) -> T {
        read(&self.lock())
    }

    /// Discards the state of the blank page. Only later events count.
    pub(crate) fn reset(&self) {
        let mut seen = self.lock();
        *seen =
            WatchState { main_frame: std::mem::take(&mut seen.main_frame), gone: seen.gone, ..WatchState::default() };
    }

    /// Records from now on what the page requests and logs, and the heads of its requests if they are archived.
    pub(crate) fn start_record(&self, with_exchanges: bool) {
        self.lock().record = Some(Box::new(Record::new(with_exchanges)));
    }

    /// Notes from now on the requests with which the capture fails.
    pub(crate) fn start_failing(&self, rules: &[RequestRule]) {
        self.lock().failing = Some(Box::new(FailingRequests::new(rules)));
    }

    /// Records from now on which document causes which request.
    pub(crate) fn start_requesters(&self) {
        self.lock().requesters = Some(Box::default());
    }

    /// The main frame and the loader of the current document.
    pub(crate) fn frame_and_loader(&self) -> (String, Option<String>) {
        self.read(|seen| (seen.main_frame.clone(), seen.document.as_ref().map(|document| document.loader.clone())))
    }

    /// The sessions of the running workers.
    pub(crate) fn worker_sessions(&self) -> Vec<String> {
        self.read(|seen| seen.workers.sessions())
    }

    /// Records that the current document is loaded. The script that waits for the load event may return before the browser
    /// reports it.
    pub(crate) fn set_loaded(&self) {
        self.lock().loaded_at.get_or_insert_with(Instant::now);
        self.changed.notify_waiters();
    }

    /// Records that an image of the page was taken.
    pub(crate) fn set_image_taken(&self) {
        self.lock().has_image = true;
        self.changed.notify_waiters();
    }

    /// Marks all requests as relevant again.
    pub(crate) fn reset_irrelevant(&self) {
        self.lock().requests.reset_irrelevant();
    }

    /// Marks requests for these URLs as irrelevant for the image.
    pub(crate) fn set_irrelevant(&self, urls: &[String]) {
        self.lock().requests.set_irrelevant(urls);
        self.changed.notify_waiters();
    }

    /// Records the bot protection service whose challenge the current document looks like.
    pub(crate) fn set_challenge(&self, challenge: Option<Challenge>) {
        self.lock().page_challenge = challenge;
    }

    /// Takes the URL of the last window that the page wanted to open.
    pub(crate) fn take_prevented_window(&self) -> Option<String> {
        self.lock().prevented_window.take()
    }

    /// Records that navigation is blocked from now on.
    pub(crate) fn set_navigation_blocked(&self) {
        {
            let mut seen = self.lock();
            seen.navigation_blocked = true;
            seen.navigations_before_block = seen.navigations;
        }
        self.changed.notify_waiters();
    }

    /// Waits until `find` returns a value; `None` at the deadline. Cancel-safe.
    pub(crate) async fn until<T>(
        &self,
        deadline: Instant,
        mut find: impl FnMut(&mut WatchState) -> Option<T>,
    ) -> Option<T> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(found) = find(&mut self.lock()) {
                return Some(found);
            }
            tokio::time::timeout_at(deadline, changed).await.ok()?;
        }
    }

    /// Waits until the page has ended. Cancel-safe.
    pub(crate) async fn gone(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.read(|seen| seen.gone.is_some()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no request delays the image; `false` at the deadline. Cancel-safe.
    pub(crate) async fn at_rest(&self, deadline: Instant, wait_limit: WaitLimit) -> bool {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let now = Instant::now();
            match self.read(|seen| seen.requests.hold(wait_limit, now)) {
                None => return true,
                Some(_) if now >= deadline => return false,
                // Check again after whichever comes first.
                Some(Hold::Until(then)) => _ = tokio::time::timeout_at(then.min(deadline), changed).await,
                Some(Hold::UntilEnd) => _ = tokio::time::timeout_at(deadline, changed).await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true for the events of a worker that concern its page.
fn is_of_worker(event: &Event) -> bool {
    matches!(
        event,
        Event::WorkerStarted { .. }
            | Event::DataReceived { .. }
            | Event::RequestFinished { .. }
            | Event::RequestFailed { .. }
            | Event::SocketOpened { .. }
            | Event::SocketSent { .. }
            | Event::MessageReceived { .. }
            | Event::SocketClosed { .. }
    )
}

impl WatchState {
    /// Takes the next open dialog. True if it is about leaving the page.
    pub(crate) fn take_dialog(&mut self) -> Option<bool> {
        self.unanswered.pop_front()
    }

    /// Takes the session of a new worker, to watch its requests.
    pub(crate) fn take_unwatched_worker(&mut self, now: Instant) -> Option<String> {
        self.workers.take_unwatched(now)
    }

    /// Whether new workers wait until no more of them are started.
    pub(crate) fn workers_are_starting(&self, now: Instant) -> bool {
        self.workers.are_starting(now)
    }

    /// Takes the next paused request for which a decision can be made.
    pub(crate) fn take_paused(&mut self, now: Instant) -> Option<PausedRequest> {
        let is_ready =
            |(paused, since): &(PausedRequest, Instant)| now >= *since + REQUESTER_WAIT || !self.is_early(paused);
        let first = self.paused.iter().position(is_ready)?;
        self.paused.remove(first).map(|(paused, _)| paused)
    }

    /// Whether the document that caused a request is not known yet.
    fn is_early(&self, paused: &PausedRequest) -> bool {
        let Some(requesters) = &self.requesters else { return false };
        if paused.is_document() || paused.request.is_none() {
            // Only the document that is about to be committed can name its own origin before.
            let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
            let referrer = paused.referrer().and_then(origin);
            let next = self.navigation.as_ref().and_then(|navigation| origin(&navigation.url));
            let current = self.document.as_ref().and_then(|document| origin(&document.url));
            return referrer.is_some() && referrer == next && referrer != current && !self.is_for_main(paused);
        }
        paused.request.as_ref().is_some_and(|request| !requesters.knows(request))
    }

    /// Whether a paused request is for the main frame.
    pub(crate) fn is_for_main(&self, paused: &PausedRequest) -> bool {
        paused.frame == self.main_frame
    }

    /// The origin of the document that caused a paused request. `None` if it is not known.
    pub(crate) fn requester(&self, paused: &PausedRequest) -> Option<&DocumentOrigin> {
        self.requesters.as_ref()?.origin(paused.request.as_ref()?)
    }

    /// Returns true if a worker is running, or may be: shared workers are not reported.
    pub(crate) fn has_workers(&self, now: Instant) -> bool {
        self.workers.are_running() || self.requests.has_unreported_worker(now)
    }

    /// The navigation that will replace the current document.
    pub(crate) fn pending_navigation(&self) -> Option<&Navigation> {
        self.navigation.as_ref().filter(|_| !self.navigation_blocked)
    }

    /// Returns true if the current document loads slowly.
    pub(crate) fn loads_slowly(&self) -> bool {
        self.committed_at.is_some_and(|at| at.elapsed() > SLOW_LOAD)
    }

    /// Returns true if the current document is not, or will soon not be, `loader`'s.
    pub(crate) fn is_replaced(&self, loader: &str) -> bool {
        self.pending_navigation().is_some() || self.document.as_ref().is_none_or(|document| document.loader != loader)
    }

    fn apply(&mut self, event: Event, now: Instant) {
        if let Some(record) = &mut self.record {
            record.note(&event, &self.main_frame, now);
        }
        if let Some(requesters) = &mut self.requesters {
            requesters.note(&event);
        }
        if let Some(failing) = &mut self.failing {
            failing.note(&event);
        }
        match event {
            Event::FrameNavigated { is_main: true, frame: _, loader, url, unreachable_url } => {
                self.commit(loader, url, unreachable_url, now);
            }
            Event::FrameNavigated { is_main: false, .. } => {}
            Event::NavigatedWithinDocument { frame, url } => {
                if let Some(document) = self.document.as_mut().filter(|_| frame == self.main_frame) {
                    document.url = url;
                }
            }
            Event::DomContentLoaded => self.parsed_at = Some(now),
            Event::Loaded => self.loaded_at = Some(now),
            // Only recorded.
            Event::Logged { .. } => {}
            Event::RequestStarted { request, loader, frame, kind, url, .. } => {
                if kind == Kind::Document && request == loader && frame.as_deref() == Some(&self.main_frame) {
                    self.navigate(loader, url);
                } else if kind != Kind::Other {
                    self.begin(request, kind, &url, now);
                }
            }
            Event::ResponseReceived { loader, kind: Kind::Document, head, request, length, .. } => {
                self.requests.answer(&request, length, now);
                self.record_response(loader, head);
            }
            Event::ResponseReceived { request, length, .. } => self.requests.answer(&request, length, now),
            Event::DataReceived { request, bytes } => {
                self.requests.receive(&request, bytes, now);
                self.receive(request, bytes);
            }
            Event::SocketOpened { request } => self.requests.begin(request, Kind::Socket, "", now),
            Event::SocketSent { request } => self.requests.send(&request, now),
            Event::MessageReceived { request } => {
                self.requests.receive(&request, 0, now);
            }
            Event::SocketClosed { request } => self.requests.end(&request, now),
            Event::RequestFinished { request } => {
                self.is_received |= self.document.as_ref().is_some_and(|document| document.loader == request);
                self.received.remove(&request);
                self.requests.end(&request, now);
            }
            Event::RequestFailed { request, error } => {
                self.received.remove(&request);
                self.requests.end(&request, now);
                self.fail(&request, error);
            }
            Event::DialogOpened { is_before_unload } => {
                self.dialogs += 1;
                // A dialog blocks its page, so several are open only across navigations.
                self.unanswered.truncate(4);
                self.unanswered.push_back(is_before_unload);
            }
            Event::DownloadBegan => self.download = true,
            Event::RequestPaused(paused) => {
                // Further requests stay paused. Real pages have at most some hundred at a time.
                if self.paused.len() < MAX_PAUSED {
                    self.paused.push_back((paused, now));
                }
            }
            Event::HeadersReceived { request } => self.requests.receive_headers(&request, now),
            Event::WorkerStarted { session, url } => {
                self.requests.worker_started(&url, now);
                self.workers.start(session, url, now);
                if self.workers.started() > MAX_WORKERS {
                    self.excess.get_or_insert(Excess::Workers);
                }
            }
            Event::DatabaseChanged => self.database_changes += 1,
            Event::WindowPrevented { url } => self.prevented_window = Some(url),
            Event::TimeBudgetExpired => self.grants_expired += 1,
            Event::Crashed => self.gone = Some(Gone::Crashed),
            Event::Detached => _ = self.gone.get_or_insert(Gone::Closed),
        }
    }

    fn navigate(&mut self, loader: String, url: String) {
        if self.navigations > 0 && !self.navigation_blocked {
            self.redirects += 1;
        }
        if self.navigation.as_ref().is_none_or(|navigation| navigation.loader != loader) {
            self.navigations += 1;
        }
        self.aborted = None;
        self.navigation = Some(Navigation { loader, url, error: None, head: None });
    }

    fn commit(&mut self, loader: String, url: String, unreachable_url: Option<String>, now: Instant) {
        let navigation = self.navigation.take_if(|navigation| navigation.loader == loader || unreachable_url.is_some());
        if navigation.is_none() {
            // URLs without a request, such as `about:blank`, also count, since a page can loop through them.
            self.navigations += 1;
        }
        let error = navigation.and_then(|navigation| navigation.error);
        let head = self.heads.iter().rev().find(|(of, _)| *of == loader).map(|(_, head)| head.clone());
        self.document = Some(Document { loader, url, unreachable_url, error, head });
        (self.committed_at, self.parsed_at, self.loaded_at, self.aborted) = (Some(now), None, None, None);
        (self.is_cut, self.is_received) = (false, false);
        self.page_challenge = None;
        self.requests.clear();
    }

    /// The bot protection service whose challenge the current document is.
    pub(crate) fn challenge(&self) -> Option<Challenge> {
        let marked = self.document.as_ref().and_then(|document| document.head.as_ref()?.challenge);
        marked.or(self.page_challenge)
    }

    fn record_response(&mut self, loader: String, head: Head) {
        if let Some(document) = self.document.as_mut().filter(|document| document.loader == loader) {
            document.head.get_or_insert_with(|| head.clone());
        }
        if let Some(navigation) = self.navigation.as_mut().filter(|navigation| navigation.loader == loader) {
            navigation.head = Some(head.clone());
        }
        if self.heads.len() == MAX_HEADS {
            self.heads.pop_front();
        }
        self.heads.push_back((loader, head));
    }

    fn fail(&mut self, request: &str, error: String) {
        match self.navigation.as_mut().filter(|navigation| navigation.loader == request) {
            // An aborted navigation shows no error page: the old document stays.
            Some(navigation) if error == "net::ERR_ABORTED" => {
                navigation.error = Some(error);
                self.aborted = self.navigation.take();
            }
            // The browser's error page follows.
            Some(navigation) => navigation.error = Some(error),
            None => {
                if let Some(document) = self.document.as_mut().filter(|document| document.loader == request) {
                    self.is_cut = true;
                    document.error.get_or_insert(error);
                }
            }
        }
    }

    /// Whether nothing of the current document has come but its header fields.
    pub(crate) fn has_no_content(&self) -> bool {
        let has_bytes = |document: &Document| self.received.contains_key(&document.loader);
        !self.is_received && self.parsed_at.is_none() && self.document.as_ref().is_some_and(|seen| !has_bytes(seen))
    }

    fn begin(&mut self, request: String, kind: Kind, url: &str, now: Instant) {
        self.starts += 1;
        self.requests.begin(request, kind, url, now);
    }

    fn receive(&mut self, request: String, bytes: u64) {
        self.received_total = self.received_total.saturating_add(bytes);
        let many = self.received.len() >= MAX_COUNTED_RESPONSES;
        let answer = match self.received.get_mut(&request) {
            Some(answer) => {
                *answer = answer.saturating_add(bytes);
                *answer
            }
            None if many => bytes,
            None => *self.received.entry(request).or_insert(bytes),
        };
        if answer > MAX_RESPONSE_BYTES || self.received_total > MAX_PAGE_BYTES {
            self.excess.get_or_insert(Excess::Bytes);
        }
    }
}

#[cfg(test)]
mod tests;
