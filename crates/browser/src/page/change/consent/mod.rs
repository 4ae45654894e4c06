//! Refuses consent in the dialogs of pages, or hides them.
//!
//! [autoconsent](https://github.com/duckduckgo/autoconsent) knows the dialogs of most vendors. It runs in an isolated world
//! of each frame, so that pages can neither see nor forge it. It is started after the page has settled, and so costs nothing
//! while the page loads. Its messages are fetched from the world: the browser adds bindings to new worlds only while
//! `Runtime` is enabled, which pages can notice (Chromium 156).

mod autoconsent_frames;
mod message;
mod progress;
mod rules;

use std::time::Duration;

use grabd_domain::capture::BlockedContent;
use grabd_domain::grabs::ConsentResult;
use tokio::time::Instant;

use self::autoconsent_frames::ConsentFrames;
pub(in crate::page) use self::progress::ConsentProgress;
use self::progress::{Progress, UNKNOWN};
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;

/// The page's time within which a vendor must be found. The first search begins within half a second, when the page is
/// idle, and the second one half a second later, which also finds dialogs of unknown vendors. Of real time, virtual time
/// takes only a fraction.
const DETECTION_TIME: Duration = Duration::from_secs(2);
const REAL_DETECTION_TIME: Duration = Duration::from_secs(1);

/// The page's time from then within which the dialog of the vendor must be shown.
const POPUP_TIME: Duration = Duration::from_millis(1200);

/// The page's time within which consent must be refused.
const REFUSAL_TIME: Duration = Duration::from_secs(3);

/// The longest real time of all of it, for one document.
const REAL_LIMIT: Duration = Duration::from_secs(4);

/// The time between two exchanges of messages: while a dialog is searched for, and while buttons are clicked. The browser
/// runs idle callbacks, in which the search begins, only if virtual time passes in large steps.
const SEARCH_STEP: Duration = Duration::from_millis(250);
const REFUSAL_STEP: Duration = Duration::from_millis(100);

/// The number of documents in which dialogs are searched for: refusing consent may load the page again.
const MAX_DOCUMENTS: u32 = 3;

/// Searches for a consent dialog, if the caller wants none in the image, and refuses consent or hides it. Returns whether
/// the page was changed.
///
/// # Errors
/// When the page does not answer.
pub(in crate::page) async fn handle(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    let is_asked = context.spec.blocking.has_content(BlockedContent::CookieBanners);
    if !is_asked || Instant::now() >= context.capture_by {
        return Ok(false);
    }
    let progress = &context.consent;
    let before = {
        let mut progress = progress.lock();
        if progress.documents >= MAX_DOCUMENTS {
            return Ok(false);
        }
        progress.documents += 1;
        let before = progress.clone();
        (progress.detected, progress.found_here, progress.result) = (false, false, None);
        before
    };
    let mut frames = ConsentFrames::new((Instant::now() + REAL_LIMIT).min(context.capture_by));
    if context.spec.javascript {
        search(context, &mut frames).await?;
    } else {
        frames.start(context).await?;
    }
    let now = progress.read();
    match (&before.found, now.result) {
        // The dialog was found in the document before, and refusing consent loaded the page again.
        (Some(_), None) if !now.found_here => {
            progress.end(before.result.unwrap_or(ConsentResult::Rejected));
            Ok(false)
        }
        (_, Some(ConsentResult::Rejected | ConsentResult::Hidden)) => Ok(true),
        (_, Some(ConsentResult::Failed) | None) => {
            let selectors = now.found.as_deref().map(rules::selectors).unwrap_or_default();
            let has_hidden = frames.hide_dialogs(context, &selectors).await?;
            let mut progress = progress.lock();
            if has_hidden {
                progress.found.get_or_insert_with(|| UNKNOWN.to_owned());
                progress.result = Some(ConsentResult::Hidden);
            }
            Ok(has_hidden || progress.found.is_some())
        }
    }
}

/// Lets autoconsent search for a dialog and refuse consent, within its time.
async fn search(context: &CaptureContext<'_>, frames: &mut ConsentFrames) -> Result<(), CaptureError> {
    let _fast = context.clock.draw_fast();
    let detection = if context.clock.is_virtual() { DETECTION_TIME } else { REAL_DETECTION_TIME };
    let (mut passed, mut detected_at, mut found_at) = (Duration::ZERO, None, None);
    loop {
        frames.start(context).await?;
        for message in frames.exchange(context).await? {
            context.consent.record(&message);
        }
        let Progress { detected, found_here, result, .. } = context.consent.read();
        if result.is_some() || frames.is_late() {
            return Ok(());
        }
        if detected {
            detected_at.get_or_insert(passed);
        }
        if found_here {
            found_at.get_or_insert(passed);
        }
        let (limit, step) = match (found_at, detected_at) {
            (Some(at), _) => (at + REFUSAL_TIME, REFUSAL_STEP),
            (None, Some(at)) => (at + POPUP_TIME, SEARCH_STEP),
            (None, None) => (detection, SEARCH_STEP),
        };
        if passed >= limit {
            return Ok(());
        }
        let began = Instant::now();
        // In real time, answers are given sooner than in virtual time, which stands still meanwhile.
        let step = if context.clock.is_virtual() { step } else { step.min(REFUSAL_STEP) };
        context.clock.advance(step).await?;
        passed += step.max(began.elapsed());
    }
}
