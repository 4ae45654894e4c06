//! Ledger entries for display.

use grabd_domain::credits::EntryKind;
use grabd_domain::permissions::Permission;
use grabd_engine::billing::{self, Captured, Entry, LedgerRow, stripe};

use crate::number::{grouped, signed};
use crate::team::TeamContext;
use crate::time_format::Moment;

/// Number of characters shown of a grab's id: the end, in which neighbouring ids differ.
const TAIL: usize = 8;

/// One entry.
pub(super) struct Row {
    pub(super) at: Moment,
    pub(super) what: &'static str,
    /// `None` also if the reader may not see captures.
    pub(super) capture: Option<Capture>,
    pub(super) reference: Option<String>,
    /// The page with the receipt of a purchase, if the reader may buy credits.
    pub(super) receipt: Option<String>,
    pub(super) credits: String,
    pub(super) is_gain: bool,
    /// The credits after this entry, including reserved ones.
    pub(super) balance: String,
}

/// The grab that spent a credit.
pub(super) struct Capture {
    /// The path of its page. `None` if the grab no longer exists.
    pub(super) path: Option<String>,
    /// The host of the page, or what was captured instead. Empty if the grab no longer exists.
    pub(super) host: String,
    /// The end of its id.
    pub(super) tail: String,
}

impl Row {
    pub(super) fn of(row: LedgerRow, at: &TeamContext) -> Self {
        let LedgerRow { entry, balance, captured, receipt } = row;
        let Entry { id: _, lot: _, kind, amount, grab, reference, at: when } = entry;
        let what = match kind {
            EntryKind::Grant if reference.as_deref().is_some_and(stripe::is_payment) => "Purchase",
            EntryKind::Grant if reference.as_deref().is_some_and(billing::is_trial) => "Welcome credits",
            EntryKind::Grant => "Grant",
            EntryKind::Spend => "Capture",
            EntryKind::Expire => "Expired",
            EntryKind::Adjust => "Adjustment",
        };
        // Which pages were captured is for those who may see captures.
        let capture = grab.filter(|_| at.may(Permission::ViewCaptures)).map(|grab| {
            let id = grab.to_string();
            let tail = id[id.len() - TAIL..].to_owned();
            let path = captured.is_some().then(|| at.path(&format!("grabs/{id}")));
            Capture { path, host: host(captured), tail }
        });
        // A receipt has the address of the buyer.
        let receipt = receipt.filter(|_| at.may(Permission::BuyCredits));
        let reference = reference.as_deref().and_then(billing::source).map(str::to_owned);
        // No lot can have less than nothing, so the sum of all lots cannot either.
        let balance = grouped(u64::try_from(balance).unwrap_or(0));
        let (credits, is_gain) = (signed(amount), amount > 0);
        Self { at: when.into(), what, capture, reference, receipt, credits, is_gain, balance }
    }
}

fn host(captured: Option<Captured>) -> String {
    match captured {
        Some(Captured::Host(host)) => host,
        Some(Captured::Document) => "HTML document".to_owned(),
        None => String::new(),
    }
}
