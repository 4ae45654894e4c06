//! Ended grabs per day.

use std::collections::BTreeMap;

use grabd_domain::Day;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use grabd_store::grabs::DailyOutcomeCount;

use crate::error::Error;
use crate::service::Core;

/// Days in the report, including today.
pub const DAYS: u16 = 30;

/// Ended grabs that were created on one UTC day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyGrabs {
    /// The day.
    pub day: Day,
    /// Grabs of live keys.
    pub live: EndedGrabs,
    /// Grabs of test keys.
    pub test: EndedGrabs,
}

/// Number of ended grabs by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedGrabs {
    /// Done grabs.
    pub done: u64,
    /// Failed grabs.
    pub failed: u64,
}

/// A team's ended grabs of the last [`DAYS`] days including today, earliest first. Days without grabs have zeros.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "billing.grabs_by_day", skip_all)]
pub async fn grabs_by_day(core: &Core, team: TeamId) -> Result<Vec<DailyGrabs>, Error> {
    let today = Day::of(core.clock.now());
    let first = today.before(DAYS - 1);
    let counted = core.store.grabs().count_ended_by_day(team, first, today).await?;
    Ok(fill(today, &counted))
}

fn fill(today: Day, counted: &[DailyOutcomeCount]) -> Vec<DailyGrabs> {
    let empty = |day| (day, DailyGrabs { day, live: EndedGrabs::default(), test: EndedGrabs::default() });
    let mut days: BTreeMap<Day, DailyGrabs> = today.last_days(DAYS).map(empty).collect();
    for DailyOutcomeCount { day, environment, done, grabs } in counted {
        let Some(grabs_of_day) = days.get_mut(day) else { continue };
        let ended = match environment {
            Environment::Live => &mut grabs_of_day.live,
            Environment::Test => &mut grabs_of_day.test,
        };
        *(if *done { &mut ended.done } else { &mut ended.failed }) += grabs;
    }
    days.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_returns_every_day_and_ignores_other_days() {
        let today = Day::from_number(20_000);
        let row =
            |days, environment, done, grabs| DailyOutcomeCount { day: today.before(days), environment, done, grabs };
        let counted = [
            row(0, Environment::Live, true, 3),
            row(0, Environment::Live, false, 1),
            row(0, Environment::Test, true, 2),
            row(29, Environment::Test, false, 5),
            row(30, Environment::Live, true, 7),
        ];
        let days = fill(today, &counted);
        let expected: Vec<Day> = today.last_days(30).collect();
        assert_eq!(days.iter().map(|day| day.day).collect::<Vec<_>>(), expected);
        let none = EndedGrabs::default();
        assert_eq!((days[0].live, days[0].test), (none, EndedGrabs { done: 0, failed: 5 }));
        assert_eq!(
            (days[29].live, days[29].test),
            (EndedGrabs { done: 3, failed: 1 }, EndedGrabs { done: 2, failed: 0 })
        );
        assert!(days[1..29].iter().all(|day| (day.live, day.test) == (none, none)));
    }
}
