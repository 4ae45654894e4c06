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
        5401.. => (seconds.div_ceil(3600), "hour"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
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
        for (seconds, expected) in
            [(1, "1 second"), (90, "90 seconds"), (91, "2 minutes"), (3600, "60 minutes"), (5401, "2 hours")]
        {
            assert_eq!(wait(seconds), expected);
        }
    }
}
