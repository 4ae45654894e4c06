//! The kinds of attacks, one in each file.

mod busy_page;
mod large_bodies;
mod link_flood;
mod never_answers;
mod sign_in_flood;
mod workers;

use super::kind::Kind;

/// All of them, in the order in which they are measured.
pub(super) const ALL: [&Kind; 6] = [
    &never_answers::KIND,
    &busy_page::KIND,
    &workers::KIND,
    &link_flood::KIND,
    &large_bodies::KIND,
    &sign_in_flood::KIND,
];
