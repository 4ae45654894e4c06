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
mod preview;
mod test_create;
mod thumbnail;
mod watch;

pub(crate) use capture::{Capture, capture};
pub use create::{Answer, CreateRequest, create};
pub use delete::delete;
pub(crate) use ended::ended;
pub use get::get;
pub use grabd_store::Listed;
pub use list::{ListRequest, list};
pub use preview::{Preview, preview};
pub(crate) use thumbnail::Thumbnails;
pub use thumbnail::{THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH, thumbnail};
pub use watch::{Cut, watch};
