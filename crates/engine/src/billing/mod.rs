//! What a team can spend and has used.

mod usage;

pub(crate) use usage::{Usage, get};
