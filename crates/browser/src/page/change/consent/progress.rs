//! How far the search for consent dialogs has come.

use std::sync::{Mutex, MutexGuard, PoisonError};

use grabd_domain::grabs::{Consent, ConsentResult};

use super::message::Message;

/// The vendor of dialogs that no rule knows.
pub(super) const UNKNOWN: &str = "unknown";

/// How far the search for consent dialogs has come, in all documents of a capture.
#[derive(Default)]
pub(in crate::page) struct ConsentProgress(Mutex<Progress>);

#[derive(Clone, Default)]
pub(super) struct Progress {
    pub(super) documents: u32,
    /// The software of a vendor was found in this document.
    pub(super) detected: bool,
    /// Its dialog was found in this document.
    pub(super) found_here: bool,
    /// The vendor whose dialog was found.
    pub(super) found: Option<String>,
    pub(super) result: Option<ConsentResult>,
}

impl ConsentProgress {
    /// Whether the dialog was rejected or hidden. `None` if there was none.
    pub(in crate::page) fn result(&self) -> Option<Consent> {
        let Progress { found, result, .. } = self.lock().clone();
        Some(Consent::new(&found?, result.unwrap_or(ConsentResult::Failed)))
    }

    pub(super) fn read(&self) -> Progress {
        self.lock().clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn end(&self, result: ConsentResult) {
        self.lock().result = Some(result);
    }

    /// Records a message of autoconsent.
    pub(super) fn record(&self, message: &Message) {
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
