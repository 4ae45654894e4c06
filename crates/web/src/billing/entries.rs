//! Ledger entries for display.

use grabd_domain::credits::EntryKind;
use grabd_engine::billing::{self, Entry, stripe};

use crate::number::signed;
use crate::team::TeamContext;
use crate::time_format::Moment;

/// Number of characters shown of a grab's id: the end, in which neighbouring ids differ.
const TAIL: usize = 8;

/// One entry.
pub(super) struct Row {
    pub(super) at: Moment,
    pub(super) what: &'static str,
    pub(super) capture: Option<Capture>,
    pub(super) reference: Option<String>,
    pub(super) credits: String,
    pub(super) is_gain: bool,
}

/// The grab that spent a credit.
pub(super) struct Capture {
    pub(super) path: String,
    /// The end of its id.
    pub(super) tail: String,
}

impl Row {
    pub(super) fn of(entry: Entry, at: &TeamContext) -> Self {
        let Entry { id: _, lot: _, kind, amount, grab, reference, at: when } = entry;
        let what = match kind {
            EntryKind::Grant if reference.as_deref().is_some_and(stripe::is_payment) => "Purchase",
            EntryKind::Grant if reference.as_deref().is_some_and(billing::is_trial) => "Welcome credits",
            EntryKind::Grant => "Grant",
            EntryKind::Spend => "Capture",
            EntryKind::Expire => "Expired",
            EntryKind::Adjust => "Adjustment",
        };
        let capture = grab.map(|grab| {
            let id = grab.to_string();
            let tail = id[id.len() - TAIL..].to_owned();
            Capture { path: at.path(&format!("grabs/{id}")), tail }
        });
        let reference = reference.as_deref().and_then(billing::source).map(str::to_owned);
        Self { at: when.into(), what, capture, reference, credits: signed(amount), is_gain: amount > 0 }
    }
}
