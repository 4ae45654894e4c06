//! The use-cases of a grab, one file per verb.

mod cancel;
mod capture;
pub(crate) mod create;
mod delete;
mod ended;
pub(crate) mod finish;
mod get;
mod idempotency;
mod list;
mod test_create;
mod watch;

pub(crate) use capture::{Capture, capture};
pub(crate) use create::{Answer, CreateRequest, create};
pub(crate) use delete::delete;
pub(crate) use ended::ended;
pub(crate) use get::get;
pub(crate) use list::{ListRequest, list};
pub(crate) use watch::watch;
