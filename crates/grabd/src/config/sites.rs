//! Section `sites`.

use grabd_engine::sites::SiteLimits;
use serde::Deserialize;

use super::Problems;

/// Section `sites`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Sites {
    pub open_per_team: u32,
    pub max_pages: u32,
    pub ignore_robots: bool,
}

impl Sites {
    /// Half of the jobs that are kept of a team in an environment, so that ended ones are kept, too.
    const MAX_OPEN: u32 = 50;
    const MAX_PAGES: u32 = 1000;

    pub(super) fn validate(&self, problems: &mut Problems) {
        if self.open_per_team > Self::MAX_OPEN {
            let allowed = format!("an integer from 0 to {}", Self::MAX_OPEN);
            problems.add("sites.open_per_team", &self.open_per_team.to_string(), &allowed);
        }
        if !(1..=Self::MAX_PAGES).contains(&self.max_pages) {
            let allowed = format!("an integer from 1 to {}", Self::MAX_PAGES);
            problems.add("sites.max_pages", &self.max_pages.to_string(), &allowed);
        }
    }

    /// The limits of site jobs.
    pub fn limits(&self) -> SiteLimits {
        let Self { open_per_team, max_pages, ignore_robots } = *self;
        SiteLimits { open_per_team, max_pages, ignore_robots }
    }
}
