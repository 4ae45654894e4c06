//! The audit trail as sentences, in pages and in files. Operators and the owners of a team see the same sentences.

mod csv;
mod query;
mod row;
mod sentence;

pub(crate) use csv::{Columns, csv_response};
pub(crate) use query::{AFTER, Choice, action_choices, parse_action, parse_after, parse_day};
pub(crate) use row::EntryRow;
pub(crate) use sentence::Reader;
