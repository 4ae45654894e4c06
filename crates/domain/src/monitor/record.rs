//! A monitor, and its runs.

use std::fmt;

use super::compare::Change;
use super::decision::Progress;
use super::element_changes::ElementChange;
use super::outcome::RunOutcome;
use super::request::MonitorSpec;
use super::text_changes::TextChange;
use crate::credentials::{Environment, Principal};
use crate::ids::{GrabId, MonitorId, RunId, TeamId};
use crate::limits::shortened;
use crate::timestamp::Timestamp;

/// Whether a monitor runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MonitorState {
    /// It does.
    Active,
    /// Somebody has paused it.
    Paused,
    /// Its team has no credits. It runs again by itself when there are some.
    OutOfCredits,
}

impl MonitorState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Active, Self::Paused, Self::OutOfCredits];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::OutOfCredits => "out_of_credits",
        }
    }
}

/// A monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// The id.
    pub id: MonitorId,
    /// The team whose credits it spends.
    pub team: TeamId,
    /// The environment of its grabs.
    pub environment: Environment,
    /// Who created it. Its grabs are theirs.
    pub creator: Principal,
    /// What it captures, when, and what counts as a change. Without the values of secret options.
    pub spec: MonitorSpec,
    /// Whether it runs.
    pub state: MonitorState,
    /// What is remembered from run to run.
    pub progress: Progress,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change by a caller.
    pub updated_at: Timestamp,
    /// When it is due. `None` if it is paused.
    pub next_run_at: Option<Timestamp>,
    /// The grab that later ones are compared with. Its image may have been deleted since.
    pub baseline: Option<GrabId>,
    /// Whether its feed and badge have a public address.
    pub has_feed: bool,
    /// The latest run.
    pub last_run: Option<Run>,
}

/// Why a run failed or was missed, or why the text or the elements were not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// A code of the API's errors, `missed`, `text_not_compared` or `elements_not_compared`.
    pub code: String,
    /// What happened, for people.
    pub message: String,
}

impl RunError {
    /// The longest message, in bytes.
    pub const MESSAGE_BYTES: usize = 200;

    /// An error, whose message is shortened.
    pub fn new(code: &str, message: &dyn fmt::Display) -> Self {
        Self { code: code.to_owned(), message: shortened(message.to_string(), Self::MESSAGE_BYTES) }
    }
}

/// A run: one due time of a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The id.
    pub id: RunId,
    /// The monitor.
    pub monitor: MonitorId,
    /// When it was due.
    pub due_at: Timestamp,
    /// How it ended, or that it runs.
    pub outcome: RunOutcome,
    /// Its grab. `None` if it was missed, and before there is one.
    pub grab: Option<GrabId>,
    /// The baseline that it was compared with.
    pub compared_to: Option<GrabId>,
    /// The part of the image that differs, in millionths of its area. `None` unless images were compared.
    pub difference_ppm: Option<u32>,
    /// What has changed.
    pub changes: Vec<Change>,
    /// The lines in which the texts differ.
    pub text_changes: Vec<TextChange>,
    /// The elements that differ.
    pub element_changes: Vec<ElementChange>,
    /// Whether an alert about the change was sent, or is sent when the quiet hours end.
    pub is_alerted: bool,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Why there is no result, or none about the text or the elements.
    pub error: Option<RunError>,
}

impl Run {
    /// The part of the image that differs, from 0 to 1.
    pub fn difference_ratio(&self) -> Option<f64> {
        self.difference_ppm.map(|ppm| f64::from(ppm) / 1e6)
    }

    /// The idempotency key of the create of a run's grab: the same for each start of the run, and different for all runs.
    pub fn idempotency_key(monitor: MonitorId, due_at: Timestamp) -> String {
        format!("monitor-{monitor}-{}", due_at.as_ms())
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::idempotency::IdempotencyKey;

    #[test]
    fn idempotency_key_of_a_run_is_valid() {
        let key = Run::idempotency_key(MonitorId(Uuid::nil()), Timestamp::from_ms(1_795_206_774_120));
        assert_eq!(key, "monitor-00000000-0000-0000-0000-000000000000-1795206774120");
        assert!(IdempotencyKey::parse(&key).is_ok());
    }
}
