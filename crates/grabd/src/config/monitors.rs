//! Section `monitors`.

use std::time::Duration;

use grabd_engine::monitors::MonitorLimits;
use serde::Deserialize;

use super::Problems;

/// Section `monitors`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Monitors {
    pub per_team: u32,
    pub shortest_minutes: u32,
}

impl Monitors {
    /// The longest of the shortest intervals: that of a day.
    const MAX_SHORTEST: u32 = 24 * 60;

    pub(super) fn validate(&self, problems: &mut Problems) {
        if !(1..=Self::MAX_SHORTEST).contains(&self.shortest_minutes) {
            let allowed = format!("an integer from 1 to {}", Self::MAX_SHORTEST);
            problems.add("monitors.shortest_minutes", &self.shortest_minutes.to_string(), &allowed);
        }
    }

    /// The limits of monitors.
    pub fn limits(&self) -> MonitorLimits {
        let shortest = Duration::from_secs(60 * u64::from(self.shortest_minutes));
        MonitorLimits { per_team: self.per_team, shortest }
    }
}
