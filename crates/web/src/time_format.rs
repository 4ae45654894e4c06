//! Formatting of times, days and waits.

use grabd_domain::{Day, Timestamp};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time for a `time` element.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// `2026-11-21T09:30:12.480Z`
    pub(crate) machine: String,
    /// `21 Nov 2026, 09:30` in UTC, as the footer of each page says. The server does not know the user's time zone.
    pub(crate) human: String,
}

/// A day for a `time` element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    /// `2026-11-21`
    pub(crate) machine: String,
    /// `21 Nov 2026`
    pub(crate) human: String,
    /// `21 Nov`, without the year.
    pub(crate) short: String,
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Self {
        let machine = at.to_string();
        let human = format!("{}, {}", Date::from(Day::of(at)).human, part(&machine, 11, 16));
        Self { machine, human }
    }
}

impl From<Day> for Date {
    fn from(day: Day) -> Self {
        let machine = day.to_string();
        let month: usize = part(&machine, 5, 7).parse().unwrap_or(1);
        let short = format!("{} {}", part(&machine, 8, 10).trim_start_matches('0'), MONTHS[(month - 1) % 12]);
        Self { human: format!("{short} {}", part(&machine, 0, 4)), machine, short }
    }
}

fn part(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_default()
}

/// A human-readable wait, rounded up.
pub(crate) fn wait(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..=90 => (seconds, "second"),
        91..=5400 => (seconds.div_ceil(60), "minute"),
        5401..=172_800 => (seconds.div_ceil(3600), "hour"),
        172_801.. => (seconds.div_ceil(86_400), "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// The wait until a time, as in `in 5 minutes`.
pub(crate) fn time_until(next: Timestamp, now: Timestamp) -> String {
    match next.since(now).as_millis().div_ceil(1000) {
        0 => "now".to_owned(),
        seconds => format!("in {}", wait(u64::try_from(seconds).unwrap_or(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_human_readable() {
        for (ms, human) in [
            (1_795_206_774_120, "20 Nov 2026, 20:32"),
            (0, "1 Jan 1970, 00:00"),
            (1_798_761_599_999, "31 Dec 2026, 23:59"),
        ] {
            assert_eq!(Moment::from(Timestamp::from_ms(ms)).human, human);
        }
    }

    #[test]
    fn waits_are_formatted_in_a_suitable_unit() {
        for (seconds, expected) in [
            (1, "1 second"),
            (90, "90 seconds"),
            (91, "2 minutes"),
            (3600, "60 minutes"),
            (5401, "2 hours"),
            (172_800, "48 hours"),
            (172_801, "3 days"),
        ] {
            assert_eq!(wait(seconds), expected);
        }
    }

    #[test]
    fn time_until_is_relative_to_now() {
        let now = Timestamp::from_ms(10_000);
        for (ms, expected) in [(9_000, "now"), (10_000, "now"), (10_001, "in 1 second"), (310_000, "in 5 minutes")] {
            assert_eq!(time_until(Timestamp::from_ms(ms), now), expected);
        }
    }
}
