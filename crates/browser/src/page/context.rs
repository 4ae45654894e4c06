//! A capture in progress: what its steps share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::emulation::{
    ScreenOrientation, ScreenOrientationType, SetDeviceMetricsOverrideParams,
};
use grabd_domain::capture::{CaptureSpec, Viewport};
use grabd_domain::limits::RENDER_BUDGET;
use grabd_domain::render::{RenderTask, StageReporter};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::blocklists::Blocklist;
use crate::cdp::CallError;
use crate::page::capture_limits::Limits;
use crate::page::change::consent::ConsentProgress;
use crate::page::change::frame_sessions::FrameSessions;
use crate::page::error::CaptureError;
use crate::page::findings::vitals::WebVitals;
use crate::page::load::clock::{Clock, TimeMode};
use crate::page::load::intercept::Interception;
use crate::page::load::watch::Document;
use crate::page::picture::taken_images::TakenImages;
use crate::page::script;
use crate::page::tab::Tab;

/// The longest wait for the load event, unless the caller allows the capture more time than usual.
const LOAD_LIMIT: Duration = Duration::from_secs(10);

/// The part of the budget that is reserved for taking the image.
const SHOT_RESERVE: Duration = Duration::from_secs(5);

/// The time for a waiting script to report that its time is up.
pub(super) const SCRIPT_GRACE: Duration = Duration::from_millis(500);

/// A capture in progress.
pub(super) struct CaptureContext<'a> {
    pub(super) tab: &'a Tab,
    pub(super) spec: &'a CaptureSpec,
    /// Receives the stages, for watchers.
    pub(super) stages: &'a StageReporter,
    pub(super) limits: Limits,
    pub(super) clock: Clock<'a>,
    /// The rules for the page's requests.
    pub(super) interception: Interception<'a>,
    /// The clicks, the steps and the script of the caller.
    pub(super) interactions: Interactions,
    /// The sessions of frames of other sites that steps named.
    pub(super) frame_sessions: FrameSessions,
    /// The images that steps have taken.
    pub(super) step_images: TakenImages,
    /// The viewport that the page is shown in: that of the spec, then further ones.
    viewport: Mutex<Viewport>,
    /// True once answers of storage, encryption and service workers were waited for.
    pub(super) has_awaited_answers: AtomicBool,
    /// How a consent dialog was handled.
    pub(super) consent: ConsentProgress,
    /// How fast the current document was shown, if a report was asked for.
    vitals: Mutex<WebVitals>,
    /// The beginning of the capture.
    pub(super) began: Instant,
    /// The latest time until which the load event is waited for, unless the document came late.
    load_by: Instant,
    /// The time at which the page is captured in whatever state it is.
    pub(super) capture_by: Instant,
    /// The end of the capture.
    pub(super) deadline: Instant,
}

/// How far the caller's interactions have come. They are not repeated if they lead to another document.
#[derive(Default)]
pub(super) struct Interactions {
    /// The number of clicks that were made.
    pub(super) clicks: AtomicUsize,
    /// The number of steps that were done.
    pub(super) steps: AtomicUsize,
    pub(super) has_run_script: AtomicBool,
}

impl Interactions {
    /// Returns true if one was made.
    pub(super) fn have_begun(&self) -> bool {
        let counts = [&self.clicks, &self.steps];
        counts.into_iter().any(|count| count.load(Ordering::Relaxed) > 0) || self.has_run_script.load(Ordering::Relaxed)
    }
}

impl<'a> CaptureContext<'a> {
    pub(super) fn new(tab: &'a Tab, task: &'a RenderTask, limits: Limits, time: TimeMode, deadline: Instant) -> Self {
        let RenderTask { spec, stages, domains, signer, .. } = task;
        let now = Instant::now();
        let budget = deadline.saturating_duration_since(now);
        let load_limit = LOAD_LIMIT + budget.saturating_sub(RENDER_BUDGET);
        let load_by = now + load_limit.min(budget / 2);
        let capture_by = now + (budget - SHOT_RESERVE.min(budget / 4));
        if let Some(route) = &task.proxy {
            tab.listener.set_upstream(route.clone(), limits.proxy_tls.clone());
        }
        if let Some(blocklist) = Blocklist::new(&spec.blocking, &limits.lists, spec.url.as_str()) {
            tab.listener.set_blocklist(blocklist);
        }
        let blocklist = tab.listener.blocklist().cloned();
        let interception = Interception::new(spec, blocklist, domains.clone(), limits.respect_opt_out, signer.clone());
        let (clock, interactions, consent) =
            (Clock::new(tab, time), Interactions::default(), ConsentProgress::default());
        Self {
            tab,
            spec,
            stages,
            limits,
            clock,
            interception,
            interactions,
            frame_sessions: FrameSessions::default(),
            step_images: TakenImages::default(),
            viewport: Mutex::new(spec.viewport),
            has_awaited_answers: AtomicBool::new(false),
            consent,
            vitals: Mutex::default(),
            began: now,
            load_by,
            capture_by,
            deadline,
        }
    }

    /// The viewport that the page is shown in.
    pub(super) fn viewport(&self) -> Viewport {
        *self.viewport.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a list of the capture has blocked a request for this URL.
    pub(super) fn is_listed(&self, url: &str) -> bool {
        self.tab.listener.blocklist().is_some_and(|list| list.has_blocked(url))
    }

    /// How fast the current document was shown, as far as that is known.
    pub(super) fn vitals(&self) -> WebVitals {
        *self.vitals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_vitals(&self, vitals: WebVitals) {
        *self.vitals.lock().unwrap_or_else(PoisonError::into_inner) = vitals;
    }

    /// Resizes the window of the page.
    ///
    /// # Errors
    /// If the browser does not answer.
    pub(super) async fn show_in(&self, viewport: Viewport) -> Result<(), CaptureError> {
        *self.viewport.lock().unwrap_or_else(PoisonError::into_inner) = viewport;
        let session = Some(self.tab.session.as_str());
        self.tab.client.call(session, self.metrics(viewport.width(), viewport.height())).await?;
        Ok(())
    }

    /// The command that sets the size of the layout viewport, in CSS pixels. The screen is as large as the viewport of the
    /// capture, and that of a device is turned as the viewport is.
    pub(super) fn metrics(&self, width: u32, height: u32) -> SetDeviceMetricsOverrideParams {
        let (screen, is_mobile) = (self.viewport(), self.spec.device.is_mobile());
        let orientation = match screen.height() > screen.width() {
            true => ScreenOrientation::new(ScreenOrientationType::PortraitPrimary, 0),
            false => ScreenOrientation::new(ScreenOrientationType::LandscapePrimary, 90),
        };
        SetDeviceMetricsOverrideParams {
            screen_width: Some(screen.width().into()),
            screen_height: Some(screen.height().into()),
            screen_orientation: is_mobile.then_some(orientation),
            ..SetDeviceMetricsOverrideParams::new(width, height, self.spec.scale.factor(), is_mobile)
        }
    }

    /// Waits for `work`. Returns `None` if another document replaces this one first.
    pub(super) async fn unless_replaced<T>(
        &self,
        document: &Document,
        work: impl Future<Output = Result<T, CaptureError>>,
    ) -> Result<Option<T>, CaptureError> {
        let left = self.tab.watch.until(self.deadline, |seen| seen.is_replaced(&document.loader).then_some(()));
        tokio::select! {
            biased;
            Some(()) = left => Ok(None),
            done = work => done.map(Some),
        }
    }

    /// Returns true if the document was replaced, or will soon be.
    pub(super) fn is_replaced(&self, document: &Document) -> bool {
        self.tab.watch.read(|seen| seen.is_replaced(&document.loader))
    }

    /// Returns true if the page must be captured now, whatever is still pending.
    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.capture_by
    }

    /// The latest time until which the load event of the current document is waited for. A document that a slow site or
    /// a redirect brought late is given the time of settling to load.
    pub(super) fn load_by(&self) -> Instant {
        let committed_at = self.tab.watch.read(|seen| seen.committed_at);
        let late = committed_at.map_or(self.load_by, |at| at + self.limits.settle_budget);
        self.load_by.max(late).min(self.capture_by)
    }

    pub(super) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Calls a script of ours. `None` also if the document was replaced.
    pub(super) async fn call_script<T: DeserializeOwned>(
        &self,
        function: &str,
        arguments: &impl Serialize,
    ) -> Result<Option<T>, CaptureError> {
        match script::call(self.tab, self.remaining() + SCRIPT_GRACE, function, arguments).await {
            // The document was replaced, which the caller notices by itself.
            Err(CallError::Refused { .. }) => Ok(None),
            result => Ok(result?),
        }
    }
}
