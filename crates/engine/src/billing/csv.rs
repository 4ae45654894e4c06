//! The ledger as CSV.

use bytes::Bytes;
use grabd_store::credits::Entry;

use crate::csv::cell;

const HEAD: &str = "entry,at,kind,credits,lot,grab_id,reference\r\n";

/// The header line.
pub(super) fn head() -> Bytes {
    Bytes::from_static(HEAD.as_bytes())
}

/// One line for each entry.
pub(super) fn rows(entries: &[Entry]) -> Bytes {
    let mut lines = String::new();
    for Entry { id, lot, kind, amount, grab, reference, at } in entries {
        // Numbers, ids and kinds are trusted and need no escaping; a negative amount has to stay a number.
        let (kind, lot) = (kind.as_str(), lot.0);
        let grab = grab.map(|grab| grab.to_string()).unwrap_or_default();
        let reference = cell(reference.as_deref().unwrap_or_default());
        lines.push_str(&format!("{id},{at},{kind},{amount},{lot},{grab},{reference}\r\n"));
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
        let text = String::from_utf8(rows(&[spend, grant]).to_vec()).unwrap();
        assert_eq!(
            text,
            format!(
                "8,2026-11-20T20:32:54.120Z,spend,-1,3,{grab},\r\n\
                 7,2026-11-20T20:32:54.120Z,grant,25000,3,,stripe:pi_1\r\n"
            )
        );
        assert!(text.lines().all(|line| line.split(',').count() == HEAD.split(',').count()));
    }
}
