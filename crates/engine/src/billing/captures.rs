//! Captures of the last days.

use std::collections::BTreeMap;

use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use grabd_domain::{Day, Fault};
use grabd_store::EndedOnDay;

use crate::core::{Core, inside};

/// Days that are told of, today among them.
pub const DAYS: u16 = 30;

/// Captures created on one day of UTC that have ended since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayOfCaptures {
    /// The day.
    pub day: Day,
    /// Of live keys.
    pub live: Ended,
    /// Of test keys.
    pub test: Ended,
}

/// How captures ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// With a picture.
    pub done: u64,
    /// Without one.
    pub failed: u64,
}

/// A team's captures of today and the days before it, [`DAYS`] in all, the earliest first. A day without any is there
/// with zeros.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn captures_by_day(core: &Core, team: TeamId) -> Result<Vec<DayOfCaptures>, Fault> {
    let today = Day::of(core.clock.now());
    let first = today.before(DAYS - 1);
    let counted = core.store.count_ended_by_day(team, first, today).await.map_err(inside("billing.captures"))?;
    Ok(fill(today, &counted))
}

fn fill(today: Day, counted: &[EndedOnDay]) -> Vec<DayOfCaptures> {
    let empty = |day| (day, DayOfCaptures { day, live: Ended::default(), test: Ended::default() });
    let mut days: BTreeMap<Day, DayOfCaptures> = today.and_those_before(DAYS).map(empty).collect();
    for EndedOnDay { day, environment, done, grabs } in counted {
        let Some(captures) = days.get_mut(day) else { continue };
        let ended = match environment {
            Environment::Live => &mut captures.live,
            Environment::Test => &mut captures.test,
        };
        *(if *done { &mut ended.done } else { &mut ended.failed }) += grabs;
    }
    days.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_is_there_and_nothing_of_another() {
        let today = Day::from_number(20_000);
        let row = |days, environment, done, grabs| EndedOnDay { day: today.before(days), environment, done, grabs };
        let counted = [
            row(0, Environment::Live, true, 3),
            row(0, Environment::Live, false, 1),
            row(0, Environment::Test, true, 2),
            row(29, Environment::Test, false, 5),
            row(30, Environment::Live, true, 7),
        ];
        let days = fill(today, &counted);
        let expected: Vec<Day> = today.and_those_before(30).collect();
        assert_eq!(days.iter().map(|captures| captures.day).collect::<Vec<_>>(), expected);
        let none = Ended::default();
        assert_eq!((days[0].live, days[0].test), (none, Ended { done: 0, failed: 5 }));
        assert_eq!((days[29].live, days[29].test), (Ended { done: 3, failed: 1 }, Ended { done: 2, failed: 0 }));
        assert!(days[1..29].iter().all(|captures| (captures.live, captures.test) == (none, none)));
    }
}
