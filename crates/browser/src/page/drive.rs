//! The steps of a capture in its tab.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::emulation::SetDeviceMetricsOverrideParams;
use chromiumoxide::cdp::browser_protocol::page::{HandleJavaScriptDialogParams, NavigateParams, StopLoadingParams};
use grabd_domain::capture::{CaptureSpec, Device, FileKind, Scale, Viewport};
use grabd_domain::grabs::{Failure, Findings, PageInfo, RenderMetadata, SettledBy, Timings};
use grabd_domain::limits::RENDER_BUDGET;
use grabd_egress::EgressError;
use serde::Deserialize;
use tokio::time::Instant;

use super::clock::{Clock, TimeMode};
use super::consent::ConsentProgress;
use super::extract::ImageSize;
use super::interact::Interactions;
use super::intercept::Interception;
use super::settle::{self, Ready, Settled};
use super::state::{Content, PageState};
use super::verdict::{self, Unreached};
use super::watch::{Document, Excess, Gone, Navigation, PausedRequest, WatchState};
use super::{CaptureError, Limits, Picture, Tab, area, extract, freeze, metadata, report, requested, shot};
use crate::cdp::CallError;
use crate::lists::Blocklist;
use crate::proxy::UnreachedTarget;

/// Main-frame navigations, not counting HTTP redirects, after which further navigation is blocked. Real chains of
/// logins and consent pages have at most six.
const MAX_NAVIGATIONS: u32 = 20;

/// The same for navigation that cannot be blocked, once the page must be captured. The last one may have begun before.
const MAX_LATE_NAVIGATIONS: u32 = 3;

/// Dialogs that are dismissed before the capture fails.
const MAX_DIALOGS: u32 = 10;

/// The longest wait for the load event, unless the caller allows the capture more time than usual.
const LOAD_LIMIT: Duration = Duration::from_secs(10);

/// The part of the budget that is reserved for taking the image.
const SHOT_RESERVE: Duration = Duration::from_secs(5);

/// The wait for a navigation that is being stopped. If it cannot be stopped any more, it ends with the first bytes of
/// its document.
const STOP_LIMIT: Duration = Duration::from_millis(500);

/// The part of the budget that is reserved for reporting a failure before the caller's own time limit.
const REPORT_RESERVE: Duration = Duration::from_secs(1);

/// A dying browser closes its pages shortly before its pipe.
const CLOSE_DELAY: Duration = Duration::from_millis(250);

/// A capture in progress.
pub(super) struct Drive<'a> {
    pub(super) tab: &'a Tab,
    pub(super) spec: &'a CaptureSpec,
    pub(super) limits: Limits,
    pub(super) clock: Clock<'a>,
    /// The rules for the page's requests.
    pub(super) interception: Interception<'a>,
    /// The clicks and the script of the caller.
    pub(super) interactions: Interactions,
    /// What became of a consent dialog.
    pub(super) consent: ConsentProgress,
    /// The beginning of the capture.
    pub(super) began: Instant,
    /// The latest time until which the load event is waited for, unless the document came late.
    load_by: Instant,
    /// The time at which the page is captured in whatever state it is.
    pub(super) capture_by: Instant,
    /// The end of the capture.
    pub(super) deadline: Instant,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NavigateResult {
    error_text: Option<String>,
    #[serde(default)]
    is_download: bool,
}

impl<'a> Drive<'a> {
    pub(super) fn new(tab: &'a Tab, spec: &'a CaptureSpec, limits: Limits, time: TimeMode, deadline: Instant) -> Self {
        let now = Instant::now();
        let budget = deadline.saturating_duration_since(now);
        let load_limit = LOAD_LIMIT + budget.saturating_sub(RENDER_BUDGET);
        let load_by = now + load_limit.min(budget / 2);
        let capture_by = now + (budget - SHOT_RESERVE.min(budget / 4));
        if let Some(blocklist) = Blocklist::new(&spec.blocking, &limits.lists, spec.url.as_str()) {
            tab.listener.set_blocklist(blocklist);
        }
        let interception = Interception::new(spec, tab.listener.blocklist().cloned());
        let (clock, interactions, consent) =
            (Clock::new(tab, time), Interactions::default(), ConsentProgress::default());
        Self {
            tab,
            spec,
            limits,
            clock,
            interception,
            interactions,
            consent,
            began: now,
            load_by,
            capture_by,
            deadline,
        }
    }

    /// Runs until there is an image or a failure.
    pub(super) async fn run(self) -> Result<Picture, CaptureError> {
        self.tab.watch.reset();
        if self.spec.also.contains(&FileKind::Report) {
            self.tab.watch.start_record();
        }
        let mut events = std::pin::pin!(self.handle_events());
        tokio::select! {
            biased;
            ended = &mut events => Err(ended),
            captured = self.capture() => match captured {
                // The errors of a page that is gone result from its end.
                Err(_) if self.tab.watch.read(|seen| seen.gone.is_some()) => Err(events.await),
                captured => captured,
            },
            ended = self.clock.run() => Err(ended),
        }
    }

    /// Answers dialogs and paused requests. Returns when the page exceeds a limit, or when the page or the
    /// browser is gone.
    async fn handle_events(&self) -> CaptureError {
        enum Action {
            Excess(Excess),
            Dialog { leave: bool, count: u32 },
            Paused(PausedRequest),
            Gone(Gone),
        }
        let watch = async {
            loop {
                let action = self.tab.watch.until(self.deadline, |seen| match (seen.gone, seen.excess) {
                    (Some(gone), _) => Some(Action::Gone(gone)),
                    (None, Some(excess)) => Some(Action::Excess(excess)),
                    (None, None) => seen
                        .take_dialog()
                        .map(|leave| Action::Dialog { leave, count: seen.dialogs })
                        .or_else(|| seen.take_paused().map(Action::Paused)),
                });
                match action.await {
                    Some(Action::Excess(Excess::Bytes)) => break CaptureError::failed(OVER_LIMIT),
                    Some(Action::Excess(Excess::Workers)) => {
                        break CaptureError::failed("The page starts more workers than a capture may.");
                    }
                    Some(Action::Dialog { count, .. }) if count > MAX_DIALOGS => {
                        break CaptureError::failed("The page opens one dialog after another.");
                    }
                    Some(Action::Dialog { leave, .. }) => {
                        // Accept leaving the page; cancel all other dialogs.
                        let answer = HandleJavaScriptDialogParams::new(leave);
                        self.tab.client.tell(Some(&self.tab.session), &answer);
                    }
                    Some(Action::Paused(request)) => self.interception.answer(self, request).await,
                    Some(Action::Gone(gone)) => break self.explain_end(gone).await,
                    // The caller ends the capture at the same deadline.
                    None => std::future::pending().await,
                }
            }
        };
        tokio::select! {
            () = self.tab.client.closed().cancelled() => CaptureError::Lost("the browser died".into()),
            ended = watch => ended,
        }
    }

    async fn explain_end(&self, gone: Gone) -> CaptureError {
        let closed = self.tab.client.closed().cancelled();
        match (tokio::time::timeout(CLOSE_DELAY, closed).await, gone) {
            (Ok(()), _) => CaptureError::Lost("the browser died".into()),
            // The page's process died, which need not be the page's fault: the kernel kills one of several when memory
            // is short. In a dedicated browser, the page is the cause.
            (Err(_), Gone::Crashed) => CaptureError::Lost("the page's process died".into()),
            (Err(_), Gone::Closed) => CaptureError::failed("The page closed itself."),
        }
    }

    async fn capture(&self) -> Result<Picture, CaptureError> {
        requested::set_appearance(self).await?;
        requested::set_network(self).await?;
        if self.spec.also.contains(&FileKind::Report) {
            report::enable(self).await?;
        }
        self.navigate().await?;
        loop {
            let document = self.document().await?;
            let late = Ready { by: SettledBy::Deadline, state: PageState::default() };
            let mut ready = match self.is_late() {
                true => late,
                false => match settle::settle(self, &document).await? {
                    Settled::Ready(ready) => ready,
                    Settled::Left => continue,
                },
            };
            self.tab.watch.set_challenge(ready.state.challenge);
            if ready.state.challenge.is_some() && !self.spec.statuses.allows_blocked() {
                return Err(verdict::challenge_failure(&document).into());
            }
            if self.tab.watch.read(|seen| seen.navigation_blocked) {
                // A page whose navigation was blocked did not settle by itself.
                ready.by = SettledBy::Deadline;
            }
            let Some(is_changed) = self.unless_left(&document, requested::wait_and_change(self)).await? else {
                continue;
            };
            if is_changed {
                let Some(state) = self.unless_left(&document, settle::read_state(self)).await? else { continue };
                ready.state = state.unwrap_or_default();
            }
            if !self.spec.delay.is_zero() {
                let delayed = (Instant::now() + self.spec.delay).min(self.capture_by);
                if !settle::stay_until(self, &document, delayed).await {
                    continue;
                }
                let Some(state) = self.unless_left(&document, settle::read_state(self)).await? else { continue };
                ready.state = state.unwrap_or_default();
            }
            if let Some(image) = self.take_image(&document, ready).await? {
                return Ok(image);
            }
        }
    }

    /// The command that sets the size of the layout viewport, in CSS pixels.
    pub(super) fn metrics(&self, width: u32, height: u32) -> SetDeviceMetricsOverrideParams {
        let is_mobile = self.spec.device != Device::Desktop;
        SetDeviceMetricsOverrideParams::new(width, height, self.spec.scale.factor(), is_mobile)
    }

    /// Sets the size of the page and navigates to its URL.
    async fn navigate(&self) -> Result<(), CaptureError> {
        let (client, session) = (&self.tab.client, Some(self.tab.session.as_str()));
        let (viewport, scale) = (self.spec.viewport, self.spec.scale);
        if viewport != self.tab.viewport || scale != Scale::ONE || self.spec.device != Device::Desktop {
            // The response comes before the response to the navigation, which is waited for.
            client.tell(session, &self.metrics(viewport.width(), viewport.height()));
        }
        let params = NavigateParams::new(self.spec.url.as_str());
        let left = self.time_left();
        let limit = left.saturating_sub(REPORT_RESERVE.min(left / 4));
        let navigated: NavigateResult = match client.call_as(limit, session, params).await {
            Err(CallError::Timeout(_)) => return Err(CaptureError::failed(NO_ANSWER)),
            navigated => navigated?,
        };
        if navigated.is_download {
            return Err(self.abort(&self.last_navigation(None), true).await);
        }
        match navigated.error_text {
            None => Ok(()),
            Some(error) if error == "net::ERR_ABORTED" => {
                let download = self.tab.watch.read(|seen| seen.download);
                Err(self.abort(&self.last_navigation(Some(error)), download).await)
            }
            Some(error) => {
                let failed = self.last_navigation(Some(error.clone()));
                Err(self.over_limit_or(verdict::unreached_failure(&failed.url, Some(&error), self.unreached_reason())))
            }
        }
    }

    /// Waits for the document in the main frame until no navigation is pending.
    async fn document(&self) -> Result<Document, CaptureError> {
        enum NavigationState {
            Document(Document),
            Aborted(Navigation, bool),
            Loop { navigation_blocked: bool },
        }
        let max_unblocked = if self.is_late() { MAX_LATE_NAVIGATIONS } else { MAX_NAVIGATIONS };
        let find = |seen: &mut WatchState| {
            let max_navigations = match seen.navigation_blocked {
                true => seen.navigations_before_block + max_unblocked,
                false => MAX_NAVIGATIONS,
            };
            if seen.navigations > max_navigations || (seen.navigation_blocked && seen.document.is_none()) {
                return Some(NavigationState::Loop { navigation_blocked: seen.navigation_blocked });
            }
            match (&seen.document, seen.pending_navigation(), &seen.aborted) {
                (_, Some(_), _) => None,
                (Some(document), None, _) => Some(NavigationState::Document(document.clone())),
                (None, None, Some(aborted)) => Some(NavigationState::Aborted(aborted.clone(), seen.download)),
                (None, None, None) => None,
            }
        };
        let mut found = self.tab.watch.until(self.capture_by, find).await;
        if let Some(NavigationState::Loop { navigation_blocked: false }) = found {
            self.block_navigation().await?;
            found = self.tab.watch.until(self.capture_by, find).await;
        }
        let document = match found {
            Some(NavigationState::Document(document)) => document,
            Some(NavigationState::Aborted(navigation, download)) => {
                return Err(self.abort(&navigation, download).await);
            }
            // Some navigations use no network request and cannot be blocked.
            Some(NavigationState::Loop { .. }) => {
                return Err(CaptureError::failed("The page goes from address to address without end."));
            }
            // If a navigation does not end, capture the current document.
            None => match self.tab.watch.read(|seen| seen.document.clone()) {
                Some(document) => document,
                None => return Err(CaptureError::failed(NO_ANSWER)),
            },
        };
        match document.unreachable_url {
            Some(_) => Err(self
                .check(&document)
                .err()
                .unwrap_or_else(|| CaptureError::failed("The page could not be loaded."))),
            None => Ok(document),
        }
    }

    /// Blocks navigation to other documents by refusing their requests.
    async fn block_navigation(&self) -> Result<(), CaptureError> {
        if self.tab.watch.read(|seen| seen.navigation_blocked) {
            return Ok(());
        }
        self.interception.apply(self, true).await?;
        self.tab.watch.set_navigation_blocked();
        Ok(())
    }

    /// Stops all loading, because there is no time for another document and no image can be taken while a document is
    /// replaced. Returns false if another document could not be stopped any more.
    async fn stop(&self, document: &Document) -> Result<bool, CaptureError> {
        self.block_navigation().await?;
        // A document without a body is never drawn, and one that is stopped before its body is parsed never gets it
        // (Chromium 156).
        let limit = Instant::now() + STOP_LIMIT;
        self.tab.watch.until(limit, |seen| seen.parsed_at.is_some().then_some(())).await;
        if self.tab.watch.read(|seen| seen.navigation.is_none()) {
            return Ok(!self.has_left(document));
        }
        match self.tab.client.call(Some(&self.tab.session), StopLoadingParams::default()).await {
            Err(CallError::Refused { message, .. }) if shot::is_between_documents(&message) => {
                self.wait_for_replacement(document).await;
                return Ok(false);
            }
            stopped => _ = stopped?,
        }
        let limit = Instant::now() + STOP_LIMIT;
        self.tab.watch.until(limit, |seen| seen.navigation.is_none().then_some(())).await;
        Ok(!self.has_left(document))
    }

    /// Returns true if the document was replaced, or will soon be.
    fn has_left(&self, document: &Document) -> bool {
        self.tab.watch.read(|seen| seen.has_left(&document.loader))
    }

    /// Waits for the document that is about to replace this one.
    async fn wait_for_replacement(&self, document: &Document) {
        let other = |now: &Document| now.loader != document.loader;
        let find = |seen: &mut WatchState| seen.document.as_ref().is_some_and(other).then_some(());
        self.tab.watch.until(Instant::now() + STOP_LIMIT, find).await;
    }

    /// Takes the image, unless the document is replaced meanwhile.
    async fn take_image(&self, document: &Document, ready: Ready) -> Result<Option<Picture>, CaptureError> {
        if self.is_late() && !self.stop(document).await? {
            return Ok(None);
        }
        // Check first: a rejected document needs no image.
        self.check(&self.current(document))?;
        let Ready { by, state } = ready;
        // Before the page is laid out for the image, and for what began to move meanwhile again.
        if self.unless_left(document, freeze::apply(self)).await?.is_none() {
            return Ok(None);
        }
        let found = self.unless_left(document, area::find(self, state)).await?;
        let Some(area) = found else { return Ok(None) };
        let Some(area) = self.unless_left(document, area::fit(self, area)).await? else { return Ok(None) };
        let Some(about) = self.unless_left(document, self.prepare_image()).await? else { return Ok(None) };
        let shot_at = Instant::now();
        // Content out of view is not missing, and what arrives from now on is not in the image.
        if self.tab.watch.read(|seen| seen.requests.unsettled(Instant::now())) > 0 {
            settle::ignore_hidden_requests(self).await;
        }
        let unsettled = self.tab.watch.read(|seen| seen.requests.unsettled(Instant::now()));
        let taken = shot::take(self.tab, &self.clock, self.spec, &self.limits, area.clip.clone(), self.time_left());
        let shot = match self.unless_left(document, taken).await? {
            Some(Some(shot)) => shot,
            Some(None) => {
                self.wait_for_replacement(document).await;
                return Ok(None);
            }
            None => return Ok(None),
        };
        if self.has_left(document) {
            return Ok(None);
        }
        self.check(&self.current(document))?;
        let is_quiet = by == SettledBy::Quiet && !area.is_incomplete && unsettled == 0;
        let is_listed = |url: &str| self.tab.listener.blocklist().is_some_and(|list| list.has_blocked(url));
        let state = area.state.without_blocked(&self.spec.blocking, is_listed, self.interception.blocked_fonts());
        self.tab.watch.set_challenge(state.challenge);
        let known = metadata::of_tab(self.tab);
        let mut warnings = state.warnings(unsettled);
        warnings.extend(area.warnings);
        let mut metadata = RenderMetadata {
            settled_by: Some(if is_quiet { SettledBy::Quiet } else { SettledBy::Deadline }),
            image_width: Some(shot.width),
            image_height: Some(shot.height),
            truncated: area.truncated,
            warnings,
            page: about,
            timings: Some(self.timings(shot_at)),
            findings: Findings {
                blank: Some(state.content == Content::Empty),
                consent: self.consent.result(),
                ..known.findings
            },
            ..known
        };
        // The image must not be kept if the document is replaced: its files would be those of another one.
        let shown = (ImageSize { width: shot.width, height: shot.height }, area.clip.as_ref());
        let made = self.unless_left(document, extract::files(self, shown, shot.for_files, &mut metadata)).await?;
        Ok(made.map(|files| Picture { image: shot.image, metadata, files }))
    }

    /// Stops what moves, and reads what the page says about itself.
    async fn prepare_image(&self) -> Result<PageInfo, CaptureError> {
        freeze::apply(self).await?;
        metadata::about(self).await
    }

    /// How long the steps took, up to now. The image was begun at `shot_at`.
    fn timings(&self, shot_at: Instant) -> Timings {
        let (committed_at, loaded_at) = self.tab.watch.read(|seen| (seen.committed_at, seen.loaded_at));
        let committed_at = committed_at.unwrap_or(self.began);
        let since = |from: Instant, to: Instant| {
            u32::try_from(to.saturating_duration_since(from).as_millis()).unwrap_or(u32::MAX)
        };
        Timings {
            navigate_ms: since(self.began, committed_at),
            load_ms: loaded_at.map(|loaded_at| since(committed_at, loaded_at)),
            settle_ms: since(loaded_at.unwrap_or(committed_at), shot_at),
            shot_ms: since(shot_at, Instant::now()),
        }
    }

    /// Waits for `work`. Returns `None` if another document replaces this one first.
    pub(super) async fn unless_left<T>(
        &self,
        document: &Document,
        work: impl Future<Output = Result<T, CaptureError>>,
    ) -> Result<Option<T>, CaptureError> {
        let left = self.tab.watch.until(self.deadline, |seen| seen.has_left(&document.loader).then_some(()));
        tokio::select! {
            biased;
            Some(()) = left => Ok(None),
            done = work => done.map(Some),
        }
    }

    /// The current state of the document: its URL may have changed, its response head may have arrived.
    fn current(&self, document: &Document) -> Document {
        let same = |now: &&Document| now.loader == document.loader;
        self.tab.watch.read(|seen| seen.document.as_ref().filter(same).cloned()).unwrap_or_else(|| document.clone())
    }

    fn check(&self, document: &Document) -> Result<(), CaptureError> {
        match verdict::check(document, &self.spec.statuses, self.unreached_reason()) {
            Ok(()) if self.tab.listener.over_limit() => Err(CaptureError::failed(OVER_LIMIT)),
            Ok(()) => Ok(()),
            Err(failure) => Err(self.over_limit_or(failure)),
        }
    }

    async fn abort(&self, navigation: &Navigation, download: bool) -> CaptureError {
        if !download {
            // A crash also aborts the navigation, and its event comes first.
            self.tab.watch.until(Instant::now() + CLOSE_DELAY, |seen| seen.gone).await;
        }
        self.over_limit_or(verdict::aborted_failure(navigation, download, self.unreached_reason()))
    }

    /// A connection that the proxy cut has its own message, whatever error the browser reports.
    fn over_limit_or(&self, failure: Failure) -> CaptureError {
        match self.tab.listener.over_limit() {
            true => CaptureError::failed(OVER_LIMIT),
            false => failure.into(),
        }
    }

    /// Looks up why the proxy did not reach a target.
    fn unreached_reason(&self) -> impl Fn(&str, u16) -> Option<Unreached> + '_ {
        |host, port| {
            let listener = &self.tab.listener;
            if listener.was_refused(host, port) {
                return Some(Unreached::Refused);
            }
            let matches = |target: &UnreachedTarget| target.host == host && target.port == port;
            listener.unreached().into_iter().rfind(matches).map(|target| match target.refusal {
                EgressError::Address { .. } | EgressError::Name | EgressError::Port => Unreached::Refused,
                EgressError::Unresolved => Unreached::Unresolved,
                EgressError::ConnectFailed(_) => Unreached::NotConnected,
                EgressError::TimedOut => Unreached::TimedOut,
            })
        }
    }

    /// The navigation that just failed, after redirects.
    fn last_navigation(&self, error: Option<String>) -> Navigation {
        let initial =
            || Navigation { loader: String::new(), url: self.spec.url.as_str().to_owned(), error: None, head: None };
        let last = self.tab.watch.read(|seen| {
            let unreachable = seen.document.as_ref().and_then(|document| {
                let url = document.unreachable_url.clone()?;
                Some(Navigation { loader: document.loader.clone(), url, error: None, head: document.head.clone() })
            });
            seen.navigation.clone().or_else(|| seen.aborted.clone()).or(unreachable)
        });
        let last = last.unwrap_or_else(initial);
        Navigation { error: last.error.clone().or(error), ..last }
    }

    /// Returns true if the page must be captured now, whatever is still pending.
    fn is_late(&self) -> bool {
        Instant::now() >= self.capture_by
    }

    /// The latest time until which the load event of the current document is waited for. A document that a slow site or
    /// a redirect brought late is given the time of settling to load.
    pub(super) fn load_by(&self) -> Instant {
        let committed_at = self.tab.watch.read(|seen| seen.committed_at);
        let late = committed_at.map_or(self.load_by, |at| at + self.limits.settle_budget);
        self.load_by.max(late).min(self.capture_by)
    }

    pub(super) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

const NO_ANSWER: &str = "The site did not answer in time.";
const OVER_LIMIT: &str = "The page loads more than a capture may.";

/// The command that sets the layout viewport, without any options.
pub(crate) fn metrics(viewport: Viewport) -> SetDeviceMetricsOverrideParams {
    SetDeviceMetricsOverrideParams::new(viewport.width(), viewport.height(), 1.0, false)
}
