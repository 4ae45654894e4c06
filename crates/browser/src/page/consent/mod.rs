//! Refuses consent in the dialogs of pages, or hides them.
//!
//! [autoconsent](https://github.com/duckduckgo/autoconsent) knows the dialogs of most vendors. It runs in an isolated world
//! of each frame, so that pages can neither see nor forge it. It is started after the page has settled, and so costs nothing
//! while the page loads. Its messages are fetched from the world: the browser adds bindings to new worlds only while
//! `Runtime` is enabled, which pages can notice (Chromium 156).

mod frames;
mod rules;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grabd_domain::capture::BlockedContent;
use grabd_domain::grabs::{Consent, ConsentResult};
use tokio::time::Instant;

use self::frames::{ConsentFrames, Message};
use super::CaptureError;
use super::drive::Drive;

/// The page's time within which a vendor must be found. The first search begins within half a second, when the page is
/// idle. The second one is half a second after it, and also finds dialogs of unknown vendors. Virtual time passes in a
/// fraction of it.
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

/// The vendor of dialogs that no rule knows.
const UNKNOWN: &str = "unknown";

/// How far the search for consent dialogs has come, in all documents of a capture.
#[derive(Default)]
pub(super) struct ConsentProgress(Mutex<Progress>);

#[derive(Clone, Default)]
struct Progress {
    documents: u32,
    /// The software of a vendor was found in this document.
    detected: bool,
    /// Its dialog was found in this document.
    found_here: bool,
    /// The vendor whose dialog was found.
    found: Option<String>,
    result: Option<ConsentResult>,
}

impl ConsentProgress {
    /// What became of the dialog. `None` if there was none.
    pub(super) fn result(&self) -> Option<Consent> {
        let Progress { found, result, .. } = self.lock().clone();
        Some(Consent::new(&found?, result.unwrap_or(ConsentResult::Failed)))
    }

    fn read(&self) -> Progress {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, result: ConsentResult) {
        self.lock().result = Some(result);
    }

    /// Records a message of autoconsent.
    fn record(&self, message: &Message) {
        let mut progress = self.lock();
        let cmp = message.cmp.as_deref().unwrap_or(UNKNOWN);
        let cmp = if cmp.starts_with("HEURISTIC") { UNKNOWN } else { cmp };
        match message.kind.as_str() {
            "cmpDetected" => progress.detected = true,
            "popupFound" => {
                progress.found_here = true;
                progress.found.get_or_insert_with(|| cmp.to_owned());
            }
            // The end of a rule that another frame continues has no further message.
            "optOutResult" if message.result == Some(false) => progress.result = Some(ConsentResult::Failed),
            "autoconsentDone" => {
                progress.found_here = true;
                progress.found = Some(cmp.to_owned());
                let is_hidden = message.is_cosmetic == Some(true);
                progress.result = Some(if is_hidden { ConsentResult::Hidden } else { ConsentResult::Rejected });
            }
            _ => {}
        }
    }
}

/// Searches for a consent dialog, if the caller wants none in the image, and refuses consent or hides it. Returns whether
/// the page was changed.
///
/// # Errors
/// When the page does not answer.
pub(super) async fn handle(drive: &Drive<'_>) -> Result<bool, CaptureError> {
    let is_asked = drive.spec.blocking.has_content(BlockedContent::CookieBanners);
    if !is_asked || Instant::now() >= drive.capture_by {
        return Ok(false);
    }
    let progress = &drive.consent;
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
    let mut frames = ConsentFrames::new((Instant::now() + REAL_LIMIT).min(drive.capture_by));
    if drive.spec.javascript {
        search(drive, &mut frames).await?;
    } else {
        frames.start(drive).await?;
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
            let has_hidden = frames.hide_dialogs(drive, &selectors).await?;
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
async fn search(drive: &Drive<'_>, frames: &mut ConsentFrames) -> Result<(), CaptureError> {
    let _fast = drive.clock.draw_fast();
    let detection = if drive.clock.is_virtual() { DETECTION_TIME } else { REAL_DETECTION_TIME };
    let (mut passed, mut detected_at, mut found_at) = (Duration::ZERO, None, None);
    loop {
        frames.start(drive).await?;
        for message in frames.exchange(drive).await? {
            drive.consent.record(&message);
        }
        let Progress { detected, found_here, result, .. } = drive.consent.read();
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
        let step = if drive.clock.is_virtual() { step } else { step.min(REFUSAL_STEP) };
        drive.clock.advance(step).await?;
        passed += step.max(began.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, cmp: &str, result: Option<bool>, is_cosmetic: Option<bool>) -> Message {
        let cmp = Some(cmp.to_owned());
        Message { kind: kind.to_owned(), cmp, result, is_cosmetic, id: None, code: None }
    }

    #[test]
    fn messages_become_the_result() {
        type Messages = &'static [(&'static str, &'static str, Option<bool>, Option<bool>)];
        let cases: [(Messages, Option<(&str, ConsentResult)>); 6] = [
            (&[("cmpDetected", "Onetrust", None, None)], None),
            (&[("popupFound", "Onetrust", None, None)], Some(("onetrust", ConsentResult::Failed))),
            (
                &[("popupFound", "Onetrust", None, None), ("autoconsentDone", "Onetrust", None, Some(false))],
                Some(("onetrust", ConsentResult::Rejected)),
            ),
            (&[("autoconsentDone", "x-cosmetic", None, Some(true))], Some(("x-cosmetic", ConsentResult::Hidden))),
            (
                &[("popupFound", "HEURISTIC-REJECT", None, None), ("optOutResult", "x", Some(false), None)],
                Some(("unknown", ConsentResult::Failed)),
            ),
            (
                &[("popupFound", "a", None, None), ("optOutResult", "a", Some(true), None)],
                Some(("a", ConsentResult::Failed)),
            ),
        ];
        for (messages, expected) in cases {
            let progress = ConsentProgress::default();
            for (kind, cmp, result, is_cosmetic) in messages {
                progress.record(&message(kind, cmp, *result, *is_cosmetic));
            }
            assert_eq!(progress.result(), expected.map(|(cmp, result)| Consent::new(cmp, result)), "{messages:?}");
        }
    }
}
