//! Monitors and their runs.
//!
//! `create`, `change`, `accept` and `queries` are for callers. A due monitor is claimed (`claim`): one transaction writes the run
//! of its due time and moves the due time on, so that no due time has two runs. Then its grab is created and noted (`start`), and
//! when that has ended, `finish` decides what follows and sends the alerts (`alerts`), or keeps them until
//! the quiet hours end (`held`, `send_held`). `files` finds the files that are compared before.
//!
//! `feed` is about the public address of a monitor's feed.
//!
//! Lock order: team, monitor, run, and then that of webhooks.

mod accept;
mod access;
mod alerts;
mod change;
mod claim;
mod create;
mod erase;
mod feed;
mod files;
mod finish;
mod held;
mod keep;
mod monitor_ref;
mod queries;
mod send_held;
mod start;

pub use accept::AcceptOutcome;
pub use alerts::{AlertText, MonitorAlert};
pub use change::{ChangeOutcome, MonitorUpdate};
pub use claim::Claimed;
pub use create::{CreateMonitorOutcome, NewMonitor};
pub(crate) use erase::{erase_monitors, stop_monitors};
pub use files::{ComparedFiles, ElementFiles, Files};
pub use finish::{FinishedRun, RunResult};
pub use monitor_ref::MonitorRef;
pub use queries::{MonitorPage, RunPage};
pub use start::{Leased, StartRun};
