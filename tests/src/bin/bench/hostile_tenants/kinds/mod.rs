//! The kinds of attacks, one in each file.

mod busy_page;
mod never_answers;
mod workers;

use super::kind::Kind;

/// All of them, in the order in which they are measured.
pub(super) const ALL: [&Kind; 3] = [&never_answers::KIND, &busy_page::KIND, &workers::KIND];
