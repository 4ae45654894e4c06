//! Monitors and their runs.
//!
//! `create`, `change`, `accept` and `queries` are for callers. A due monitor is claimed (`claim`): one transaction writes the run
//! of its due time and moves the due time on, so that no due time has two runs. Then its grab is created and noted (`start`), and
//! when that has ended, `finish` decides what follows and enqueues the alerts. `texts` finds the files that are compared before.
//!
//! Lock order: team, monitor, run, and then that of webhooks.

mod accept;
mod change;
mod claim;
mod create;
mod erase;
mod finish;
mod keep;
mod monitor_ref;
mod queries;
mod start;
mod texts;

pub use accept::AcceptOutcome;
pub use change::{ChangeOutcome, MonitorUpdate};
pub use claim::Claimed;
pub use create::{CreateMonitorOutcome, NewMonitor};
pub(crate) use erase::{erase_monitors, stop_monitors};
pub use finish::{AlertText, FinishedRun, MonitorAlert, RunResult};
pub use monitor_ref::MonitorRef;
pub use queries::{MonitorPage, RunPage};
pub use start::StartRun;
pub use texts::ComparedTexts;
