//! The way of a grab through its tab.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::emulation::SetDeviceMetricsOverrideParams;
use chromiumoxide::cdp::browser_protocol::page::{HandleJavaScriptDialogParams, NavigateParams};
use grabd_domain::capture::CaptureSpec;
use grabd_domain::grabs::{Facts, Failure, SettledBy};
use grabd_egress::Refusal;
use serde::Deserialize;
use tokio::time::Instant;

use super::frame::Frame;
use super::settle::{self, Settled};
use super::shot::Shot;
use super::verdict::{self, Unreached};
use super::watch::{Document, Gone, Navigation};
use super::{Ended, Limits, Picture, Tab, facts, frame, shot};
use crate::cdp::CallError;
use crate::proxy::Attempt;

/// Navigations of one page's main frame, redirects by HTTP aside. Real chains of logins and consents end within six.
const NAVIGATIONS: u32 = 20;

/// Dialogs that are dismissed before the page counts as one that cannot be seen.
const DIALOGS: u32 = 10;

/// Longest wait for the load event.
const LOAD_LIMIT: Duration = Duration::from_secs(10);

/// Kept of the budget for taking the picture.
const SHOT_RESERVE: Duration = Duration::from_secs(5);

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
        tokio::select! {
            biased;
            ended = self.attend() => Err(ended),
            picture = self.capture() => picture,
        }
    }

    /// Answers dialogs, and ends when the page is gone or the browser is.
    async fn attend(&self) -> Ended {
        enum Call {
            Dialog { leave: bool, count: u32 },
            Gone(Gone),
        }
        let watch = async {
            loop {
                let call = self.tab.watch.until(self.deadline, |seen| match seen.gone {
                    Some(gone) => Some(Call::Gone(gone)),
                    None => seen.take_dialog().map(|leave| Call::Dialog { leave, count: seen.dialogs }),
                });
                match call.await {
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
            (Err(_), Gone::Crashed) => Ended::failed("The page crashed."),
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
            let (by, shot) = match settled {
                Settled::Left => continue,
                Settled::Ready { challenge: true, .. } => return Err(verdict::challenged(&document).into()),
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
        let navigated: Navigated = match client.call_as(self.time_left(), session, params).await {
            Err(CallError::Timeout(_)) => return Err(Ended::failed(SILENT)),
            navigated => navigated?,
        };
        if navigated.is_download {
            return Err(self.abort(&self.last_navigation(None), true));
        }
        match navigated.error_text {
            None => Ok(()),
            Some(error) if error == "net::ERR_ABORTED" => {
                let download = self.tab.watch.look(|seen| seen.download);
                Err(self.abort(&self.last_navigation(Some(error)), download))
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
            Circle,
        }
        let look = |seen: &mut super::watch::Seen| {
            if seen.navigations > NAVIGATIONS {
                return Some(Found::Circle);
            }
            match (&seen.document, &seen.navigation, &seen.aborted) {
                (_, Some(_), _) => None,
                (Some(document), None, _) => Some(Found::Document(document.clone())),
                (None, None, Some(aborted)) => Some(Found::Aborted(aborted.clone(), seen.download)),
                (None, None, None) => None,
            }
        };
        let document = match self.tab.watch.until(self.shoot_by, look).await {
            Some(Found::Document(document)) => document,
            Some(Found::Aborted(navigation, download)) => return Err(self.abort(&navigation, download)),
            Some(Found::Circle) => return Err(Ended::failed("The page goes from address to address without end.")),
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

    /// Takes the picture, unless there is one already or the document is left meanwhile.
    async fn shoot(&self, document: &Document, by: SettledBy, shot: Option<Shot>) -> Result<Option<Picture>, Ended> {
        let left = || self.tab.watch.look(|seen| seen.has_left(&document.loader));
        // No picture is worth taking of what is refused anyway.
        self.judge(&self.current(document))?;
        let (frame, shot) = match shot {
            Some(shot) => (Frame::default(), shot),
            None => {
                let found = self.unless_left(document, frame::find(self)).await?;
                let Some(frame) = found else { return Ok(None) };
                let taken = shot::take(self.tab, self.spec.format, frame.clip.clone(), self.time_left());
                let Some(shot) = self.unless_left(document, taken).await? else { return Ok(None) };
                (frame, shot)
            }
        };
        if left() && !self.is_late() {
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
        if self.is_late() {
            return work.await.map(Some);
        }
        let left = self.tab.watch.until(self.shoot_by, |seen| seen.has_left(&document.loader).then_some(()));
        tokio::select! {
            biased;
            done = work => done.map(Some),
            Some(()) = left => Ok(None),
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

    fn abort(&self, navigation: &Navigation, download: bool) -> Ended {
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
