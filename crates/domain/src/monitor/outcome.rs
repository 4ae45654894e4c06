//! The outcome of a run.

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunOutcome {
    /// It has not ended.
    Running,
    /// Its capture is the baseline, because there was none.
    First,
    /// Nothing has changed.
    Same,
    /// Something differs from the baseline.
    Changed,
    /// There is no capture.
    Failed,
    /// Nothing was captured at this time, nor at due times until the next run.
    Missed,
}

impl RunOutcome {
    /// All outcomes.
    pub const ALL: [Self; 6] = [Self::Running, Self::First, Self::Same, Self::Changed, Self::Failed, Self::Missed];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::First => "first",
            Self::Same => "same",
            Self::Changed => "changed",
            Self::Failed => "failed",
            Self::Missed => "missed",
        }
    }
}
