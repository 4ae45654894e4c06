//! Monitors: captures that are repeated by a schedule, and compared with a baseline.
//!
//! `manage`, `batch`, `runs`, `history` and `feed` are the use-cases of callers. `scheduler` finds what is due: `start` claims a due
//! monitor and creates the grab of its run, and `finish` decides what follows when that has ended, with what `files` and
//! `elements` have compared. A run is an ordinary asynchronous grab of the team.

mod alerts;
mod batch;
mod elements;
mod feed;
mod files;
mod finish;
mod history;
mod manage;
mod runs;
pub(crate) mod scheduler;
mod secrets;
mod settings;
mod start;

pub use batch::{MonitorBatch, create_batch};
pub use feed::{Feed, FeedAddresses, close_feed, find_feed, open_feed};
pub use grabd_store::monitors::{MonitorPage, RunPage};
pub use history::history;
pub use manage::{ListRequest, accept, change, create, get, list, remove};
pub use runs::list_runs;
pub use settings::MonitorLimits;
pub(crate) use settings::Monitors;
