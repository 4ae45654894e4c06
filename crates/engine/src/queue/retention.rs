//! Deletes grabs and images after the operator's retention, or after that of their team.
//!
//! While all teams have the same retention, the oldest grabs are always due. Otherwise grabs that are kept longer are
//! among them: then ended grabs are examined in the order of their ends, once for each number of days that occurs, and
//! the position is remembered. So each round examines new rows only, however many are kept.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::time::{Duration, Instant};

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrabId, TeamId};
use grabd_domain::team_limits::TeamLimit;
use grabd_store::Error;
use grabd_store::retention::PurgedGrabs;

use super::progress::RetentionProgress;
use super::step::step;
use crate::service::Core;

/// Maximum number of grabs in one transaction, which must not delay others.
pub(super) const GRABS: u32 = 250;
/// Ended grabs that are read at a time.
const EXAMINED: u32 = 1000;
/// The oldest grabs are examined again after this time: some may have been left out because another transaction had
/// locked them, or because they could not be read.
const AGAIN: Duration = Duration::from_secs(24 * 60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What is deleted.
#[derive(Clone, Copy)]
struct Kind {
    /// The name of the step, in metrics and logs.
    step: &'static str,
    /// The limit that a team may have of its own.
    limit: TeamLimit,
    grabs: PurgedGrabs,
}

const KINDS: [Kind; 4] = [
    Kind { step: "test_grabs", limit: TeamLimit::TestGrabsDays, grabs: PurgedGrabs::Test },
    Kind { step: "grabs", limit: TeamLimit::GrabsDays, grabs: PurgedGrabs::Live },
    Kind { step: "failed_grabs", limit: TeamLimit::FailedGrabsDays, grabs: PurgedGrabs::LiveFailed },
    // Of these only the images.
    Kind { step: "old_images", limit: TeamLimit::ImagesDays, grabs: PurgedGrabs::LiveWithImage },
];

/// Deletes what is due: of each kind for about `time`, but at least one batch.
pub(super) async fn run(core: &Core, now: Timestamp, time: Duration) {
    let mut progress = mem::take(&mut core.cleanup.lock().retention);
    let is_stale = progress.since.is_none_or(|since| now.since(since) >= AGAIN);
    if is_stale || progress.version != core.limits.version() {
        progress =
            RetentionProgress { version: core.limits.version(), since: Some(now), ..RetentionProgress::default() };
    }
    progress.turn = progress.turn.wrapping_add(1);
    for kind in KINDS {
        let until = Instant::now() + time;
        let own = core.limits.of_all(kind.limit);
        if own.is_empty() {
            if let Some(kept) = kind.setting(core) {
                step(core, kind.step, purge_oldest(core, kind, now - kept, now, until)).await;
            }
        } else {
            step(core, kind.step, purge_by_team(core, kind, &own, &mut progress, (now, until))).await;
        }
    }
    core.cleanup.lock().retention = progress;
}

impl Kind {
    fn setting(self, core: &Core) -> Option<Duration> {
        let retention = &core.settings.retention;
        match self.grabs {
            PurgedGrabs::Test => retention.test_grabs,
            PurgedGrabs::Live => retention.grabs,
            PurgedGrabs::LiveFailed => retention.failed_grabs,
            PurgedGrabs::LiveWithImage => retention.images,
        }
    }

    fn only_images(self) -> bool {
        self.grabs == PurgedGrabs::LiveWithImage
    }

    fn report(self, purged: u64) {
        if purged > 0 {
            tracing::info!(purged, what = self.step, "deleted after their retention");
        }
    }
}

/// Deletes the oldest grabs or images of all teams.
async fn purge_oldest(
    core: &Core,
    kind: Kind,
    ended_before: Timestamp,
    now: Timestamp,
    until: Instant,
) -> Result<(), Error> {
    let mut purged = 0;
    loop {
        let batch = match kind.only_images() {
            true => core.store.retention().purge_images(ended_before, now, GRABS).await?,
            false => core.store.retention().purge_grabs(kind.grabs, ended_before, now, GRABS).await?,
        };
        purged += batch;
        if batch < u64::from(GRABS) || Instant::now() >= until {
            break;
        }
    }
    kind.report(purged);
    Ok(())
}

/// Deletes grabs or images by the retention of each team.
async fn purge_by_team(
    core: &Core,
    kind: Kind,
    own: &HashMap<TeamId, u32>,
    progress: &mut RetentionProgress,
    (now, until): (Timestamp, Instant),
) -> Result<(), Error> {
    let days = |kept: Duration| u32::try_from(kept.as_secs() / DAY.as_secs()).unwrap_or(u32::MAX);
    let setting = kind.setting(core).map_or(0, days);
    // 0: never.
    let periods: BTreeSet<u32> = own.values().copied().chain([setting]).filter(|days| *days > 0).collect();
    let count = periods.len().max(1);
    let (mut has_read, mut purged) = (false, 0);
    for days in periods.iter().copied().cycle().skip(progress.turn % count).take(periods.len()) {
        let ended_before = now - DAY * days;
        loop {
            if has_read && Instant::now() >= until {
                kind.report(purged);
                return Ok(());
            }
            let end = progress.ends.entry((kind.limit.as_str(), days)).or_insert(Timestamp::from_ms(0));
            let range = *end..ended_before;
            let ended = core.store.retention().ended_grabs(kind.grabs, range, now, EXAMINED).await?;
            has_read = true;
            let is_due = |team: &TeamId| own.get(team).copied().unwrap_or(setting) == days;
            let due: Vec<GrabId> = ended.grabs.iter().filter(|grab| is_due(&grab.team)).map(|grab| grab.id).collect();
            for grabs in due.chunks(usize::try_from(GRABS).unwrap_or(usize::MAX)) {
                purged += match kind.only_images() {
                    true => core.store.retention().purge_these_images(ended_before, now, grabs.to_vec()).await?,
                    false => {
                        core.store.retention().purge_these_grabs(kind.grabs, ended_before, now, grabs.to_vec()).await?
                    }
                };
            }
            *end = ended.next;
            if !ended.is_full {
                break;
            }
        }
    }
    kind.report(purged);
    Ok(())
}
