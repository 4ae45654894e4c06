//! Section `retention`.

use std::time::Duration;

use grabd_domain::limits::USAGE_WINDOW;
use serde::Deserialize;

use super::Problems;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A century: more would exceed what times can express when it is added to others.
const MAX_DAYS: u32 = 36_500;

/// Section `retention`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Retention {
    pub images_days: u32,
    pub grabs_days: u32,
    pub test_grabs_days: u32,
    pub failed_grabs_days: u32,
    pub team_megabytes: u64,
    pub test_megabytes: u64,
    pub unpaid_megabytes: u64,
    pub uncharged_megabytes: u64,
    pub unverified_days: u32,
    pub min_free_percent: u8,
}

impl Retention {
    /// As the engine takes it.
    pub fn settings(&self) -> grabd_engine::Retention {
        let kept = |days: u32| (days > 0).then(|| DAY * days);
        let limited = |megabytes: u64| (megabytes > 0).then_some(megabytes);
        grabd_engine::Retention {
            images: kept(self.images_days),
            grabs: kept(self.grabs_days),
            test_grabs: kept(self.test_grabs_days),
            failed_grabs: kept(self.failed_grabs_days),
            unverified: kept(self.unverified_days),
            team_megabytes: limited(self.team_megabytes),
            test_megabytes: limited(self.test_megabytes),
            unpaid_megabytes: limited(self.unpaid_megabytes),
            uncharged_megabytes: limited(self.uncharged_megabytes),
            min_free_percent: self.min_free_percent,
        }
    }

    pub(super) fn validate(&self, problems: &mut Problems) {
        let Self {
            images_days,
            grabs_days,
            test_grabs_days,
            failed_grabs_days,
            team_megabytes: _,
            test_megabytes: _,
            unpaid_megabytes: _,
            uncharged_megabytes: _,
            unverified_days,
            min_free_percent,
        } = self;
        for (key, days) in [
            ("retention.images_days", images_days),
            ("retention.test_grabs_days", test_grabs_days),
            ("retention.unverified_days", unverified_days),
        ] {
            if *days > MAX_DAYS {
                problems.add(key, &days.to_string(), &format!("at most {MAX_DAYS}"));
            }
        }
        // Webhooks report grabs for as long, and usage counts are exact.
        let window = USAGE_WINDOW.as_secs() / DAY.as_secs();
        for (key, days) in [("retention.grabs_days", grabs_days), ("retention.failed_grabs_days", failed_grabs_days)] {
            if *days != 0 && !(window..=MAX_DAYS.into()).contains(&u64::from(*days)) {
                let allowed = format!("0, or from {window} to {MAX_DAYS}");
                problems.add(key, &days.to_string(), &allowed);
            }
        }
        if *min_free_percent > 99 {
            problems.add("retention.min_free_percent", &min_free_percent.to_string(), "at most 99");
        }
    }
}
