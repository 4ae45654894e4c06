//! The way of a grab through its tab.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::emulation::SetDeviceMetricsOverrideParams;
use chromiumoxide::cdp::browser_protocol::fetch::{self, RequestPattern};
use chromiumoxide::cdp::browser_protocol::network::ResourceType;
use chromiumoxide::cdp::browser_protocol::page::{HandleJavaScriptDialogParams, NavigateParams, StopLoadingParams};
use grabd_domain::capture::CaptureSpec;
use grabd_domain::grabs::{Facts, Failure, SettledBy};
use grabd_egress::Refusal;
use serde::Deserialize;
use tokio::time::Instant;

use super::frame::Frame;
use super::settle::{self, Settled};
use super::shot::Shot;
use super::verdict::{self, Unreached};
use super::watch::{Document, Excess, Gone, Navigation};
use super::{Ended, Limits, Picture, Tab, facts, frame, shot};
use crate::cdp::CallError;
use crate::proxy::Attempt;

/// Navigations of one page's main frame, redirects by HTTP aside, after which it is kept where it is. Real chains of
/// logins and consents end within six.
const NAVIGATIONS: u32 = 20;

/// Dialogs that are dismissed before the page counts as one that cannot be seen.
const DIALOGS: u32 = 10;

/// Longest wait for the load event.
const LOAD_LIMIT: Duration = Duration::from_secs(10);

/// Kept of the budget for taking the picture.
const SHOT_RESERVE: Duration = Duration::from_secs(5);

/// A navigation that was stopped ends at once, and one that cannot be any more ends with its document's first bytes.
const STOP: Duration = Duration::from_millis(500);

/// Kept of the budget for the word that there will be no picture, so that it comes before the caller's own limit does.
const WORD: Duration = Duration::from_secs(1);

/// A dying browser closes its pages just before its pipe.
const DEATH: Duration = Duration::from_millis(250);

/// One grab under way.
pub(super) struct Drive<'a> {
    pub(super) tab: &'a Tab,
    pub(super) spec: &'a CaptureSpec,
    pub(super) limits: Limits,
    /// The load event is not waited for any longer than this.
    pub(super) load_by: Instant,
    /// Whatever is there by now is captured.
    pub(super) shoot_by: Instant,
    /// All ends here.
    pub(super) deadline: Instant,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigated {
    error_text: Option<String>,
    #[serde(default)]
    is_download: bool,
}

impl<'a> Drive<'a> {
    pub(super) fn new(tab: &'a Tab, spec: &'a CaptureSpec, limits: Limits, deadline: Instant) -> Self {
        let now = Instant::now();
        let budget = deadline.saturating_duration_since(now);
        let load_by = now + LOAD_LIMIT.min(budget / 2);
        let shoot_by = now + (budget - SHOT_RESERVE.min(budget / 4));
        Self { tab, spec, limits, load_by, shoot_by, deadline }
    }

    /// Until a picture, or the reason why there is none.
    pub(super) async fn run(self) -> Result<Picture, Ended> {
        self.tab.watch.reset();
        let mut attended = std::pin::pin!(self.attend());
        tokio::select! {
            biased;
            ended = &mut attended => Err(ended),
            captured = self.capture() => match captured {
                // What a page that is gone did last is its end, not its doing.
                Err(_) if self.tab.watch.look(|seen| seen.gone.is_some()) => Err(attended.await),
                captured => captured,
            },
        }
    }

    /// Answers dialogs, and ends when the page has too much of something, when it is gone, or when the browser is.
    async fn attend(&self) -> Ended {
        enum Call {
            Excess(Excess),
            Dialog { leave: bool, count: u32 },
            Gone(Gone),
        }
        let watch = async {
            loop {
                let call = self.tab.watch.until(self.deadline, |seen| match (seen.gone, seen.excess) {
                    (Some(gone), _) => Some(Call::Gone(gone)),
                    (None, Some(excess)) => Some(Call::Excess(excess)),
                    (None, None) => seen.take_dialog().map(|leave| Call::Dialog { leave, count: seen.dialogs }),
                });
                match call.await {
                    Some(Call::Excess(Excess::Bytes)) => break Ended::failed(TOO_MUCH),
                    Some(Call::Excess(Excess::Workers)) => {
                        break Ended::failed("The page starts more workers than a capture may.");
                    }
                    Some(Call::Dialog { count, .. }) if count > DIALOGS => {
                        break Ended::failed("The page opens one dialog after another.");
                    }
                    Some(Call::Dialog { leave, .. }) => {
                        // A page that asks whether to leave is left; any other question is answered with no.
                        let answer = HandleJavaScriptDialogParams::new(leave);
                        self.tab.client.tell(Some(&self.tab.session), &answer);
                    }
                    Some(Call::Gone(gone)) => break self.explain(gone).await,
                    // The caller's own deadline is this one.
                    None => std::future::pending().await,
                }
            }
        };
        tokio::select! {
            () = self.tab.client.closed().cancelled() => Ended::Lost("the browser died".into()),
            ended = watch => ended,
        }
    }

    async fn explain(&self, gone: Gone) -> Ended {
        let closed = self.tab.client.closed().cancelled();
        match (tokio::time::timeout(DEATH, closed).await, gone) {
            (Ok(()), _) => Ended::Lost("the browser died".into()),
            // Its process died with it, which need not be its own doing: the kernel ends one of several when memory is
            // short. Alone in a browser, it is.
            (Err(_), Gone::Crashed) => Ended::Lost("the page's process died".into()),
            (Err(_), Gone::Closed) => Ended::failed("The page closed itself."),
        }
    }

    async fn capture(&self) -> Result<Picture, Ended> {
        self.navigate().await?;
        loop {
            let document = self.document().await?;
            let settled = match self.is_late() {
                true => Settled::Ready { by: SettledBy::Deadline, challenge: false, shot: None },
                false => settle::settle(self, &document).await?,
            };
            let held = self.tab.watch.look(|seen| seen.held);
            let (by, shot) = match settled {
                Settled::Left => continue,
                Settled::Ready { challenge: true, .. } => return Err(verdict::challenged(&document).into()),
                // A page that is kept from going on never came to rest.
                Settled::Ready { challenge: false, .. } if held => (SettledBy::Deadline, None),
                Settled::Ready { by, challenge: false, shot } => (by, shot),
            };
            let delayed = (Instant::now() + self.spec.delay).min(self.shoot_by);
            if !self.spec.delay.is_zero() && !settle::stay_until(self, &document, delayed).await {
                continue;
            }
            if let Some(picture) = self.shoot(&document, by, shot).await? {
                return Ok(picture);
            }
        }
    }

    /// Sizes the page and sends it to its address.
    async fn navigate(&self) -> Result<(), Ended> {
        let (client, session) = (&self.tab.client, Some(self.tab.session.as_str()));
        let viewport = self.spec.viewport;
        if viewport != self.tab.viewport {
            // Its answer comes before the navigation's, which is waited for.
            client.tell(session, &metrics(viewport));
        }
        let params = NavigateParams::new(self.spec.url.as_str());
        let limit = self.time_left().saturating_sub(WORD);
        let navigated: Navigated = match client.call_as(limit, session, params).await {
            Err(CallError::Timeout(_)) => return Err(Ended::failed(SILENT)),
            navigated => navigated?,
        };
        if navigated.is_download {
            return Err(self.abort(&self.last_navigation(None), true).await);
        }
        match navigated.error_text {
            None => Ok(()),
            Some(error) if error == "net::ERR_ABORTED" => {
                let download = self.tab.watch.look(|seen| seen.download);
                Err(self.abort(&self.last_navigation(Some(error)), download).await)
            }
            Some(error) => {
                let failed = self.last_navigation(Some(error.clone()));
                Err(self.over_limit_or(verdict::unreached(&failed.url, Some(&error), self.known())))
            }
        }
    }

    /// The document in the main frame, once nothing is on the way to replace it.
    async fn document(&self) -> Result<Document, Ended> {
        enum Found {
            Document(Document),
            Aborted(Navigation, bool),
            Circle { held: bool },
        }
        let look = |seen: &mut super::watch::Seen| {
            let most = if seen.held { 2 * NAVIGATIONS } else { NAVIGATIONS };
            if seen.navigations > most || (seen.held && seen.document.is_none()) {
                return Some(Found::Circle { held: seen.held });
            }
            match (&seen.document, seen.underway(), &seen.aborted) {
                (_, Some(_), _) => None,
                (Some(document), None, _) => Some(Found::Document(document.clone())),
                (None, None, Some(aborted)) => Some(Found::Aborted(aborted.clone(), seen.download)),
                (None, None, None) => None,
            }
        };
        let mut found = self.tab.watch.until(self.shoot_by, look).await;
        if let Some(Found::Circle { held: false }) = found {
            self.hold().await?;
            found = self.tab.watch.until(self.shoot_by, look).await;
        }
        let document = match found {
            Some(Found::Document(document)) => document,
            Some(Found::Aborted(navigation, download)) => return Err(self.abort(&navigation, download).await),
            // Some ways to another document do not lead through the network.
            Some(Found::Circle { .. }) => {
                return Err(Ended::failed("The page goes from address to address without end."));
            }
            // A navigation that does not come to an end leaves what is there.
            None => match self.tab.watch.look(|seen| seen.document.clone()) {
                Some(document) => document,
                None => return Err(Ended::failed(SILENT)),
            },
        };
        match document.unreachable_url {
            Some(_) => {
                Err(self.judge(&document).err().unwrap_or_else(|| Ended::failed("The page could not be loaded.")))
            }
            None => Ok(document),
        }
    }

    /// Keeps the page at the document it shows: whatever it asks for in its place is not answered any more.
    async fn hold(&self) -> Result<(), Ended> {
        if self.tab.watch.look(|seen| seen.held) {
            return Ok(());
        }
        let documents = RequestPattern { resource_type: Some(ResourceType::Document), ..RequestPattern::default() };
        let hold = fetch::EnableParams { patterns: Some(vec![documents]), ..fetch::EnableParams::default() };
        self.tab.client.call(Some(&self.tab.session), hold).await?;
        self.tab.watch.hold();
        Ok(())
    }

    /// Ends all loading, because there is no time for another document and no picture succeeds while one replaces the other.
    /// False when another one had come too far to be stopped.
    async fn stop(&self, document: &Document) -> Result<bool, Ended> {
        self.hold().await?;
        match self.tab.client.call(Some(&self.tab.session), StopLoadingParams::default()).await {
            Err(CallError::Refused { message, .. }) if shot::is_between_documents(&message) => {
                self.replaced(document).await;
                return Ok(false);
            }
            stopped => _ = stopped?,
        }
        let limit = Instant::now() + STOP;
        self.tab.watch.until(limit, |seen| seen.navigation.is_none().then_some(())).await;
        Ok(self.tab.watch.look(|seen| !seen.has_left(&document.loader)))
    }

    /// Waits for the document that takes the place of this one at this moment.
    async fn replaced(&self, document: &Document) {
        let other = |now: &Document| now.loader != document.loader;
        let look = |seen: &mut super::watch::Seen| seen.document.as_ref().is_some_and(other).then_some(());
        self.tab.watch.until(Instant::now() + STOP, look).await;
    }

    /// Takes the picture, unless there is one already or the document is left meanwhile.
    async fn shoot(&self, document: &Document, by: SettledBy, shot: Option<Shot>) -> Result<Option<Picture>, Ended> {
        let left = || self.tab.watch.look(|seen| seen.has_left(&document.loader));
        if self.is_late() && !self.stop(document).await? {
            return Ok(None);
        }
        // No picture is worth taking of what is refused anyway.
        self.judge(&self.current(document))?;
        let (frame, shot) = match shot {
            Some(shot) => (Frame::default(), shot),
            None => {
                let found = self.unless_left(document, frame::find(self)).await?;
                let Some(frame) = found else { return Ok(None) };
                let taken = shot::take(self.tab, self.spec.format, frame.clip.clone(), self.time_left());
                match self.unless_left(document, taken).await? {
                    Some(Some(shot)) => (frame, shot),
                    Some(None) => {
                        self.replaced(document).await;
                        return Ok(None);
                    }
                    None => return Ok(None),
                }
            }
        };
        if left() {
            return Ok(None);
        }
        self.judge(&self.current(document))?;
        let facts = Facts {
            settled_by: Some(by),
            image_width: Some(shot.width),
            image_height: Some(shot.height),
            truncated: frame.truncated,
            ..facts::seen(self.tab)
        };
        Ok(Some(Picture { image: shot.image, facts }))
    }

    /// Waits for `work`, but not beyond the moment another document takes the place of this one: then `None`.
    async fn unless_left<T>(
        &self,
        document: &Document,
        work: impl Future<Output = Result<T, Ended>>,
    ) -> Result<Option<T>, Ended> {
        let left = self.tab.watch.until(self.deadline, |seen| seen.has_left(&document.loader).then_some(()));
        tokio::select! {
            biased;
            Some(()) = left => Ok(None),
            done = work => done.map(Some),
        }
    }

    /// The document as it is now: its address may have changed, its head come late.
    fn current(&self, document: &Document) -> Document {
        let same = |now: &&Document| now.loader == document.loader;
        self.tab.watch.look(|seen| seen.document.as_ref().filter(same).cloned()).unwrap_or_else(|| document.clone())
    }

    fn judge(&self, document: &Document) -> Result<(), Ended> {
        match verdict::judge(document, self.known()) {
            Ok(()) if self.tab.listener.over_limit() => Err(Ended::failed(TOO_MUCH)),
            Ok(()) => Ok(()),
            Err(failure) => Err(self.over_limit_or(failure)),
        }
    }

    async fn abort(&self, navigation: &Navigation, download: bool) -> Ended {
        if !download {
            // A page that dies takes its navigation along, and word of that comes first.
            self.tab.watch.until(Instant::now() + DEATH, |seen| seen.gone).await;
        }
        self.over_limit_or(verdict::aborted(navigation, download, self.known()))
    }

    /// A cut connection has its own reason, whatever the browser makes of it.
    fn over_limit_or(&self, failure: Failure) -> Ended {
        match self.tab.listener.over_limit() {
            true => Ended::failed(TOO_MUCH),
            false => failure.into(),
        }
    }

    /// What the proxy knows of a target that was not reached.
    fn known(&self) -> impl Fn(&str, u16) -> Option<Unreached> + '_ {
        |host, port| {
            let listener = &self.tab.listener;
            if listener.was_refused(host, port) {
                return Some(Unreached::Refused);
            }
            let asked = |attempt: &Attempt| attempt.host == host && attempt.port == port;
            listener.refusals().into_iter().rfind(asked).map(|attempt| match attempt.refusal {
                Refusal::Address { .. } | Refusal::Name | Refusal::Port => Unreached::Refused,
                Refusal::Unresolved => Unreached::Unresolved,
                Refusal::ConnectFailed(_) => Unreached::NotConnected,
                Refusal::TimedOut => Unreached::TimedOut,
            })
        }
    }

    /// The navigation that just failed, wherever its redirects led.
    fn last_navigation(&self, error: Option<String>) -> Navigation {
        let asked =
            || Navigation { loader: String::new(), url: self.spec.url.as_str().to_owned(), error: None, head: None };
        let last = self.tab.watch.look(|seen| {
            let unreachable = seen.document.as_ref().and_then(|document| {
                let url = document.unreachable_url.clone()?;
                Some(Navigation { loader: document.loader.clone(), url, error: None, head: document.head.clone() })
            });
            seen.navigation.clone().or_else(|| seen.aborted.clone()).or(unreachable)
        });
        let last = last.unwrap_or_else(asked);
        Navigation { error: last.error.clone().or(error), ..last }
    }

    /// Is it time to take what is there, whatever is still on the way?
    fn is_late(&self) -> bool {
        Instant::now() >= self.shoot_by
    }

    pub(super) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

const SILENT: &str = "The site did not answer in time.";
const TOO_MUCH: &str = "The page loads more than a capture may.";

/// The command that lays a page out in a viewport.
pub(crate) fn metrics(viewport: grabd_domain::capture::Viewport) -> SetDeviceMetricsOverrideParams {
    SetDeviceMetricsOverrideParams::new(viewport.width(), viewport.height(), 1.0, false)
}
