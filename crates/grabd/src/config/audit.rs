//! Section `audit`.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;

use super::Problems;

/// Days for which entries of the audit trail may be kept. The database keeps those of the last 30 days in any case.
const RETENTION_DAYS: RangeInclusive<u32> = 31..=3650;

/// Section `audit`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Audit {
    pub retention_days: u32,
}

impl Audit {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if !RETENTION_DAYS.contains(&self.retention_days) {
            let (min, max) = (RETENTION_DAYS.start(), RETENTION_DAYS.end());
            let seen = self.retention_days.to_string();
            problems.add("audit.retention_days", &seen, &format!("from {min} to {max}"));
        }
    }

    /// For how long entries are kept.
    pub(super) fn retention(&self) -> Duration {
        Duration::from_secs(u64::from(self.retention_days) * 24 * 60 * 60)
    }
}
