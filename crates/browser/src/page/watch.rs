//! What was seen of one page until now: events folded into a state, in the order the browser sent them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chromiumoxide::cdp::js_protocol::runtime::ExecutionContextId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cdp::{Event, Head, Kind, Sink};

/// Without the start of a request that could change the picture for this long, a page is at rest.
pub(crate) const QUIET: Duration = Duration::from_millis(100);

/// A request that is not answered within this time no longer holds the picture up: it may be a long poll.
const PATIENCE: Duration = Duration::from_secs(1);

/// Requests in flight that are remembered; a page with more than that is judged by the starts alone.
const IN_FLIGHT: usize = 1024;

/// Bytes of one answer, unpacked: no picture needs more, and a few kilobytes can unpack to gigabytes.
const ANSWER_BYTES: u64 = 50 << 20;

/// Bytes of all answers together, unpacked.
const PAGE_BYTES: u64 = 100 << 20;

/// Workers that a page starts, each with a thread and a heap of its own. Large applications start a dozen.
const WORKERS: u32 = 64;

/// Bytes that the browser tells about a page. A busy page comes to a few megabytes; what floods us with more, by sockets
/// or by addresses that are their own content, keeps the events of others waiting.
const TOLD_BYTES: usize = 64 << 20;

/// Document heads that are remembered: only the last few loaders can still be the shown one.
const HEADS: usize = 16;

/// A page under observation.
#[derive(Default)]
pub(crate) struct Watch {
    seen: Mutex<Seen>,
    changed: Notify,
}

/// The state behind [`Watch`].
#[derive(Debug, Default)]
pub(crate) struct Seen {
    main_frame: String,
    /// The document the main frame shows; the blank page of a prepared tab does not count.
    pub(crate) document: Option<Document>,
    /// The main frame's navigation that has not ended.
    pub(crate) navigation: Option<Navigation>,
    /// Navigations of the main frame that were begun.
    pub(crate) navigations: u32,
    /// Main-frame navigation that ended without another document: a download, an empty answer.
    pub(crate) aborted: Option<Navigation>,
    /// Was a download refused?
    pub(crate) download: bool,
    /// When the shown document was parsed.
    pub(crate) parsed_at: Option<Instant>,
    /// When the shown document's load event came.
    pub(crate) loaded_at: Option<Instant>,
    /// Starts of requests that could change the picture.
    pub(crate) starts: u64,
    /// When something last happened that could change the picture.
    active_at: Option<Instant>,
    in_flight: HashMap<String, Instant>,
    heads: VecDeque<(String, Head)>,
    /// Bytes of the answers under way, unpacked.
    received: HashMap<String, u64>,
    /// Bytes of all answers until now, unpacked.
    received_in_all: u64,
    /// Bytes of all that was told until now.
    told: usize,
    workers: u32,
    /// Of what there is more than a capture may have.
    pub(crate) excess: Option<Excess>,
    /// Is the page kept from going on to yet another document? Then what it tries does not count.
    pub(crate) held: bool,
    /// Where our scripts run, and in which document that is.
    world: Option<(String, World)>,
    /// Dialogs that opened.
    pub(crate) dialogs: u32,
    /// Dialogs that wait for an answer: is it about leaving the page?
    unanswered: VecDeque<bool>,
    /// Is the page gone, and how?
    pub(crate) gone: Option<Gone>,
}

/// A committed document of the main frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// Tells documents apart.
    pub(crate) loader: String,
    /// Its address, with the fragment.
    pub(crate) url: String,
    /// Set when this is the browser's own error page: the address that could not be reached.
    pub(crate) unreachable_url: Option<String>,
    /// Why it could not, in the browser's words.
    pub(crate) error: Option<String>,
    /// The head of the answer it came with.
    pub(crate) head: Option<Head>,
}

/// A navigation of the main frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Navigation {
    pub(crate) loader: String,
    /// Where it is now, after redirects.
    pub(crate) url: String,
    /// Why it failed, in the browser's words.
    pub(crate) error: Option<String>,
    /// The head of the answer, when one came.
    pub(crate) head: Option<Head>,
}

/// What a page can have too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// Bytes.
    Bytes,
    /// Workers.
    Workers,
}

/// A place for scripts in a document that the page's own scripts cannot see or change.
pub(crate) type World = ExecutionContextId;

/// How a page can be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Its process died.
    Crashed,
    /// It was closed.
    Closed,
}

/// Is a page at rest?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Yes.
    Quiet,
    /// Not before then, unless something happens first.
    NotBefore(Instant),
}

impl Watch {
    /// Begins to watch a page whose main frame is known.
    pub(crate) fn new(main_frame: &str) -> Arc<Self> {
        let seen = Seen { main_frame: main_frame.to_owned(), ..Seen::default() };
        Arc::new(Self { seen: Mutex::new(seen), changed: Notify::new() })
    }

    /// Where the page's events go.
    pub(crate) fn sink(self: &Arc<Self>) -> Sink {
        let watch = self.clone();
        Arc::new(move |bytes, event| {
            let mut seen = watch.lock();
            // Bodies arrive in many pieces, none of which anybody waits for.
            let matters = !matches!(event, None | Some(Event::DataReceived { .. }));
            seen.told = seen.told.saturating_add(bytes);
            if seen.told > TOLD_BYTES {
                seen.excess.get_or_insert(Excess::Bytes);
            }
            if let Some(event) = event {
                seen.fold(event, Instant::now());
            }
            let matters = matters || seen.excess.is_some();
            drop(seen);
            if matters {
                watch.changed.notify_waiters();
            }
        })
    }

    /// Looks at the state as it is.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.lock())
    }

    /// Forgets what the blank page did: from here on the grab's own events count.
    pub(crate) fn reset(&self) {
        let mut seen = self.lock();
        *seen = Seen { main_frame: std::mem::take(&mut seen.main_frame), gone: seen.gone, ..Seen::default() };
    }

    /// The main frame, and the shown document's loader.
    pub(crate) fn place(&self) -> (String, Option<String>) {
        self.look(|seen| (seen.main_frame.clone(), seen.document.as_ref().map(|document| document.loader.clone())))
    }

    /// Where our scripts run in the shown document, if they ever did.
    pub(crate) fn world(&self) -> Option<World> {
        self.look(|seen| {
            let (loader, world) = seen.world.as_ref()?;
            seen.document.as_ref().filter(|document| document.loader == *loader).map(|_| *world)
        })
    }

    /// Remembers where our scripts run in a document.
    pub(crate) fn set_world(&self, loader: String, world: World) {
        self.lock().world = Some((loader, world));
    }

    /// The page is kept from going on from here on.
    pub(crate) fn hold(&self) {
        self.lock().held = true;
        self.changed.notify_waiters();
    }

    /// Waits until `look` finds something; `None` at the deadline. Cancel-safe.
    pub(crate) async fn until<T>(&self, deadline: Instant, mut look: impl FnMut(&mut Seen) -> Option<T>) -> Option<T> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(found) = look(&mut self.lock()) {
                return Some(found);
            }
            tokio::time::timeout_at(deadline, changed).await.ok()?;
        }
    }

    /// Waits until the page is gone. Cancel-safe.
    pub(crate) async fn gone(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.look(|seen| seen.gone.is_some()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until the page is at rest; `false` when the deadline comes first. Cancel-safe.
    pub(crate) async fn at_rest(&self, deadline: Instant) -> bool {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.look(|seen| seen.rest(Instant::now())) {
                Rest::Quiet => return true,
                Rest::NotBefore(_) if Instant::now() >= deadline => return false,
                // Whichever comes first, the next round looks again.
                Rest::NotBefore(then) => _ = tokio::time::timeout_at(then.min(deadline), changed).await,
            }
        }
    }

    /// When the page last asked for something, or got what it had asked for after it was loaded.
    pub(crate) fn active_at(&self) -> Option<Instant> {
        self.lock().active_at
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Takes the next dialog that needs an answer: is it about leaving the page?
    pub(crate) fn take_dialog(&mut self) -> Option<bool> {
        self.unanswered.pop_front()
    }

    /// The navigation that will replace the shown document.
    pub(crate) fn underway(&self) -> Option<&Navigation> {
        self.navigation.as_ref().filter(|_| !self.held)
    }

    /// Is the shown document another one than `loader`'s, or about to be?
    pub(crate) fn has_left(&self, loader: &str) -> bool {
        self.underway().is_some() || self.document.as_ref().is_none_or(|document| document.loader != loader)
    }

    /// The earliest moment at which the page may be at rest, as far as is known now.
    pub(crate) fn rest_at(&self, now: Instant) -> Instant {
        let quiet_at = self.active_at.map_or(now, |active| active + QUIET);
        let answered_at = self.in_flight.values().map(|started| *started + PATIENCE).filter(|limit| *limit > now).max();
        answered_at.map_or(quiet_at, |limit| limit.max(quiet_at))
    }

    fn rest(&self, now: Instant) -> Rest {
        match self.rest_at(now) {
            then if then <= now => Rest::Quiet,
            then => Rest::NotBefore(then),
        }
    }

    fn fold(&mut self, event: Event, now: Instant) {
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
            Event::RequestStarted { request, loader, frame, kind, url } => {
                if kind == Kind::Document && request == loader && frame.as_deref() == Some(&self.main_frame) {
                    self.navigate(loader, url);
                } else if kind != Kind::Other {
                    self.begin(request, now);
                }
            }
            Event::ResponseReceived { loader, kind: Kind::Document, head } => self.answer(loader, head),
            Event::ResponseReceived { .. } => {}
            Event::DataReceived { request, bytes } => self.receive(request, bytes),
            Event::RequestFinished { request } => {
                self.received.remove(&request);
                self.end(&request, now);
            }
            Event::RequestFailed { request, error } => {
                self.received.remove(&request);
                self.end(&request, now);
                self.fail(&request, error);
            }
            Event::DialogOpened { is_before_unload } => {
                self.dialogs += 1;
                // A dialog holds its page up, so more than one waiting is the next page's.
                self.unanswered.truncate(4);
                self.unanswered.push_back(is_before_unload);
            }
            Event::DownloadBegan => self.download = true,
            Event::WorkerStarted => {
                self.workers += 1;
                if self.workers > WORKERS {
                    self.excess.get_or_insert(Excess::Workers);
                }
            }
            Event::Crashed => self.gone = Some(Gone::Crashed),
            Event::Detached => _ = self.gone.get_or_insert(Gone::Closed),
        }
    }

    fn navigate(&mut self, loader: String, url: String) {
        if self.navigation.as_ref().is_none_or(|navigation| navigation.loader != loader) {
            self.navigations += 1;
        }
        self.aborted = None;
        self.navigation = Some(Navigation { loader, url, error: None, head: None });
    }

    fn commit(&mut self, loader: String, url: String, unreachable_url: Option<String>, now: Instant) {
        let navigation = self.navigation.take_if(|navigation| navigation.loader == loader || unreachable_url.is_some());
        if navigation.is_none() {
            // Addresses without a request, about:blank for one, still count as a way to loop.
            self.navigations += 1;
        }
        let error = navigation.and_then(|navigation| navigation.error);
        let head = self.heads.iter().rev().find(|(of, _)| *of == loader).map(|(_, head)| head.clone());
        self.document = Some(Document { loader, url, unreachable_url, error, head });
        (self.parsed_at, self.loaded_at, self.aborted) = (None, None, None);
        self.in_flight.clear();
        // A document that just began to run had no time to ask for anything.
        self.active_at = Some(now);
    }

    fn answer(&mut self, loader: String, head: Head) {
        if let Some(document) = self.document.as_mut().filter(|document| document.loader == loader) {
            document.head.get_or_insert_with(|| head.clone());
        }
        if let Some(navigation) = self.navigation.as_mut().filter(|navigation| navigation.loader == loader) {
            navigation.head = Some(head.clone());
        }
        if self.heads.len() == HEADS {
            self.heads.pop_front();
        }
        self.heads.push_back((loader, head));
    }

    fn fail(&mut self, request: &str, error: String) {
        match self.navigation.as_mut().filter(|navigation| navigation.loader == request) {
            // An abort shows no error page: the old document stays.
            Some(navigation) if error == "net::ERR_ABORTED" => {
                navigation.error = Some(error);
                self.aborted = self.navigation.take();
            }
            // The browser's error page is still to come.
            Some(navigation) => navigation.error = Some(error),
            None => {}
        }
    }

    fn begin(&mut self, request: String, now: Instant) {
        self.starts += 1;
        self.active_at = Some(now);
        if self.in_flight.len() < IN_FLIGHT {
            self.in_flight.insert(request, now);
        }
    }

    fn receive(&mut self, request: String, bytes: u64) {
        self.received_in_all = self.received_in_all.saturating_add(bytes);
        let many = self.received.len() >= IN_FLIGHT;
        let answer = match self.received.get_mut(&request) {
            Some(answer) => {
                *answer = answer.saturating_add(bytes);
                *answer
            }
            None if many => bytes,
            None => *self.received.entry(request).or_insert(bytes),
        };
        if answer > ANSWER_BYTES || self.received_in_all > PAGE_BYTES {
            self.excess.get_or_insert(Excess::Bytes);
        }
    }

    fn end(&mut self, request: &str, now: Instant) {
        // What ends after the load event was asked for by a script, which is about to do something with it.
        if self.in_flight.remove(request).is_some() && self.loaded_at.is_some() {
            self.active_at = Some(now);
        }
    }
}

#[cfg(test)]
#[path = "watch/tests.rs"]
mod tests;
