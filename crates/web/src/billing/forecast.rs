//! How long the credits last.

use grabd_engine::billing::DailyGrabs;

use crate::number::grouped;

/// Days whose captures are the pace, the last of which is today.
const PACE_DAYS: usize = 7;
/// Beyond this number of days, the pace of a week says little.
const MAX_DAYS: u64 = 365;

/// How long the credits last at the pace of the last days: a number and its unit.
pub(super) struct Forecast {
    pub(super) number: String,
    pub(super) unit: &'static str,
}

impl Forecast {
    /// The forecast for this many credits. `None` if there are none, or if none was spent on the last days.
    pub(super) fn of(credits: u64, days: &[DailyGrabs]) -> Option<Self> {
        let recent = days.len().saturating_sub(PACE_DAYS);
        let spent: u64 = days.iter().skip(recent).map(|day| day.live.done).sum();
        let days = credits.saturating_mul(PACE_DAYS as u64).checked_div(spent).filter(|_| credits > 0)?;
        Some(match days {
            0 => Self { number: "Less than 1".to_owned(), unit: "day" },
            1 => Self { number: "1".to_owned(), unit: "day" },
            2..=MAX_DAYS => Self { number: grouped(days), unit: "days" },
            _ => Self { number: "More than 1".to_owned(), unit: "year" },
        })
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Day;
    use grabd_engine::billing::EndedGrabs;

    use super::*;

    /// Thirty days with this many done live captures on each of the last seven, and many before.
    fn days(done: u64) -> Vec<DailyGrabs> {
        let day = |before: u16| DailyGrabs {
            day: Day::from_number(20_778).before(before),
            live: EndedGrabs { done: if before < 7 { done } else { 1_000 }, failed: 50 },
            test: EndedGrabs { done: 70, failed: 7 },
        };
        (0..30).rev().map(day).collect()
    }

    #[test]
    fn pace_is_that_of_the_live_captures_of_seven_days() {
        for (credits, done, expected) in [
            (0, 10, None),
            (100, 0, None),
            (9, 10, Some("Less than 1 day")),
            (19, 10, Some("1 day")),
            (120, 10, Some("12 days")),
            (3_650, 10, Some("365 days")),
            (3_660, 10, Some("More than 1 year")),
            (u64::MAX, 1, Some("More than 1 year")),
        ] {
            let forecast = Forecast::of(credits, &days(done)).map(|found| format!("{} {}", found.number, found.unit));
            assert_eq!(forecast.as_deref(), expected, "{credits} credits, {done} a day");
        }
        assert!(Forecast::of(100, &[]).is_none());
    }
}
