//! An entry of the audit trail in a table.

use grabd_engine::trail::NamedEntry;

use super::sentence::{Part, Reader, sentence};
use crate::time_format::Moment;

/// An entry in the table.
pub(crate) struct EntryRow {
    pub(crate) id: i64,
    pub(crate) at: Moment,
    pub(crate) sentence: Vec<Part>,
    /// The address of the request. Empty if there was none.
    pub(crate) address: String,
    /// What the entry has besides, under its names: for operators.
    pub(crate) more: Vec<(&'static str, String)>,
}

impl EntryRow {
    /// The row for this reader.
    pub(crate) fn of(named: NamedEntry, reader: Reader) -> Self {
        let sentence = sentence(&named, reader);
        let entry = named.entry;
        let more = [
            ("Action", entry.action),
            ("Actor", entry.actor),
            ("Target", entry.target),
            ("Team", entry.team.map(|team| team.to_string()).unwrap_or_default()),
            ("Details", entry.detail.unwrap_or_default()),
        ];
        let more = match reader {
            Reader::Operator => more.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
            Reader::Owner => Vec::new(),
        };
        Self { id: entry.id, at: entry.at.into(), sentence, address: entry.address.unwrap_or_default(), more }
    }
}
