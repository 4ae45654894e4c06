//! The ledger as CSV.

use bytes::Bytes;
use grabd_store::credits::Entry;

use super::ledger_row::{Captured, LedgerRow};
use crate::csv::cell;

/// New columns are added at the end, so that programs that read by position continue to work.
const HEAD: &str = "entry,at,kind,credits,lot,grab_id,reference,host,balance\r\n";
/// The host of a capture of the caller's own document.
const DOCUMENT: &str = "html";

/// The header line.
pub(super) fn head() -> Bytes {
    Bytes::from_static(HEAD.as_bytes())
}

/// One line for each entry.
pub(super) fn rows(rows: &[LedgerRow]) -> Bytes {
    let mut lines = String::new();
    for LedgerRow { entry, balance, captured, receipt: _ } in rows {
        let Entry { id, lot, kind, amount, grab, reference, at } = entry;
        // Numbers, ids and kinds are trusted and need no escaping; a negative amount has to stay a number.
        let (kind, lot) = (kind.as_str(), lot.0);
        let grab = grab.map(|grab| grab.to_string()).unwrap_or_default();
        let reference = cell(reference.as_deref().unwrap_or_default());
        let host = match captured {
            Some(Captured::Host(host)) => cell(host),
            Some(Captured::Document) => DOCUMENT.to_owned(),
            None => String::new(),
        };
        lines.push_str(&format!("{id},{at},{kind},{amount},{lot},{grab},{reference},{host},{balance}\r\n"));
    }
    lines.into()
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::credits::EntryKind;
    use grabd_domain::ids::{GrabId, LotId};

    use super::*;

    #[test]
    fn rows_have_a_cell_for_each_column() {
        let grab: GrabId = "01993e1c-7b1a-7000-8000-0123456789ab".parse().unwrap();
        let at = Timestamp::from_ms(1_795_206_774_120);
        let spend =
            Entry { id: 8, lot: LotId(3), kind: EntryKind::Spend, amount: -1, grab: Some(grab), reference: None, at };
        let grant = Entry {
            id: 7,
            kind: EntryKind::Grant,
            amount: 25_000,
            grab: None,
            reference: Some("stripe:pi_1".into()),
            ..spend.clone()
        };
        let host = Some(Captured::Host("example.com".to_owned()));
        let spend = LedgerRow { entry: spend, balance: 24_999, captured: host, receipt: None };
        let document = LedgerRow { captured: Some(Captured::Document), balance: 24_998, ..spend.clone() };
        let grant =
            LedgerRow { entry: grant, balance: 25_000, captured: None, receipt: Some("https://a.example".into()) };
        let text = String::from_utf8(rows(&[document, spend, grant]).to_vec()).unwrap();
        assert_eq!(
            text,
            format!(
                "8,2026-11-20T20:32:54.120Z,spend,-1,3,{grab},,html,24998\r\n\
                 8,2026-11-20T20:32:54.120Z,spend,-1,3,{grab},,example.com,24999\r\n\
                 7,2026-11-20T20:32:54.120Z,grant,25000,3,,stripe:pi_1,,25000\r\n"
            )
        );
        assert!(text.lines().all(|line| line.split(',').count() == HEAD.split(',').count()));
    }
}
