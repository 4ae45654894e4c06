//! The metadata of a capture that comes from the page's events.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use grabd_domain::grabs::{Failure, FailureReason, Findings, PageInfo, RenderMetadata};
use serde::{Deserialize, Serialize};

use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::load::watch::WatchState;
use crate::page::script;
use crate::page::tab::Tab;

/// How long a page may take to describe itself.
const ABOUT_LIMIT: Duration = Duration::from_secs(1);

/// What `scripts/about.js` reports.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::page) struct About {
    /// What the page says about itself.
    #[serde(flatten)]
    pub(in crate::page) page: PageInfo,
    /// The number of different characters in the image that no font has.
    pub(in crate::page) glyphs_missing: u32,
    /// The page was too busy to report.
    #[serde(skip)]
    pub(in crate::page) timed_out: bool,
}

/// The argument of `scripts/about.js`.
#[derive(Serialize)]
struct AboutImage<'a> {
    /// The part of the page that the image shows, or the window.
    area: Option<&'a Clip>,
}

/// What the page says about itself and its image. `area` is the part of the page that the image shows, or the window. A page
/// that does not answer has said nothing.
pub(in crate::page) async fn about(context: &CaptureContext<'_>, area: Option<&Clip>) -> Result<About, CaptureError> {
    let limit = ABOUT_LIMIT.min(context.remaining() / 4);
    let about = match script::call::<About>(context.tab, limit, "about", &AboutImage { area }).await {
        Ok(about) => about.unwrap_or_default(),
        Err(CallError::Refused { .. }) => About::default(),
        Err(CallError::Timeout(_)) => About { timed_out: true, ..About::default() },
        Err(error) => return Err(error.into()),
    };
    Ok(About { page: about.page.bounded(), ..about })
}

/// The metadata that is known now.
pub(in crate::page) fn of_tab(tab: &Tab) -> RenderMetadata {
    let blocked_requests = tab.listener.refused_count();
    let findings = Findings {
        challenge: tab.watch.read(WatchState::challenge),
        blocked: tab.listener.blocklist().map(|list| list.counts(blocked_requests)),
        ..Findings::default()
    };
    let metadata = tab.watch.read(|seen| match (&seen.document, &seen.navigation, &seen.aborted) {
        (Some(document), _, _) => RenderMetadata {
            final_url: Some(document.unreachable_url.clone().unwrap_or_else(|| document.url.clone())),
            http_status: document.head.as_ref().map(|head| head.status),
            blocked_requests,
            redirects: Some(seen.redirects),
            ..RenderMetadata::default()
        },
        (None, Some(navigation), _) | (None, None, Some(navigation)) => RenderMetadata {
            final_url: Some(navigation.url.clone()),
            http_status: navigation.head.as_ref().map(|head| head.status),
            blocked_requests,
            ..RenderMetadata::default()
        },
        (None, None, None) => RenderMetadata { blocked_requests, ..RenderMetadata::default() },
    });
    RenderMetadata { findings, ..metadata }.bounded()
}

/// The metadata of a failed grab, without addresses that the guard refused.
pub(crate) fn failure_metadata(tab: &Tab, failure: &Failure) -> RenderMetadata {
    let metadata = of_tab(tab);
    match failure.reason {
        FailureReason::SsrfDetected => RenderMetadata { final_url: None, http_status: None, ..metadata },
        FailureReason::RenderBlocked | FailureReason::RenderFailed | FailureReason::InternalError => metadata,
    }
}
