//! The use-cases of a grab, one file per verb.

pub(crate) mod create;
pub(crate) mod finish;
mod get;
mod list;
mod test_create;
mod watch;

pub(crate) use create::create;
pub(crate) use get::get;
pub(crate) use list::{ListRequest, list};
pub(crate) use watch::watch;
