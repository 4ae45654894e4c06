//! Cron expressions with five fields: minute, hour, day of the month, month, and day of the week.

use std::fmt;
use std::time::Duration;

/// The longest expression, in characters.
pub const CRON_CHARS: usize = 100;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const MINUTES_PER_DAY: u32 = 24 * 60;

/// A valid expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    /// The expression, with one space between its fields.
    text: String,
    /// One bit for each value.
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether the field of the days begins with `*`.
    is_any_day: bool,
    /// Whether the field of the days of the week begins with `*`.
    is_any_weekday: bool,
}

impl Cron {
    /// Parses an expression. `None` if it is not valid.
    pub fn parse(text: &str) -> Option<Self> {
        if text.chars().count() > CRON_CHARS {
            return None;
        }
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else { return None };
        let weekdays = values(weekday, (0, 7), &WEEKDAYS)?;
        Some(Self {
            text: fields.join(" "),
            minutes: values(minute, (0, 59), &[])?,
            hours: values(hour, (0, 23), &[])?,
            days: values(day, (1, 31), &[])?,
            months: values(month, (1, 12), &MONTHS)?,
            // Both 0 and 7 are Sunday.
            weekdays: weekdays & 0x7f | weekdays >> 7,
            is_any_day: day.starts_with('*'),
            is_any_weekday: weekday.starts_with('*'),
        })
    }

    /// Whether a day matches. If both kinds of days are limited, a day needs to match one of them.
    pub(super) fn has_day(&self, month: i8, day: i8, weekday: i8) -> bool {
        let (by_day, by_weekday) = (has(self.days, day), has(self.weekdays, weekday));
        let matches = match self.is_any_day || self.is_any_weekday {
            true => by_day && by_weekday,
            false => by_day || by_weekday,
        };
        matches && has(self.months, month)
    }

    /// The times of a day that match, as hour and minute, from this one on.
    pub(super) fn times_from(&self, hour: i8, minute: i8) -> impl Iterator<Item = (i8, i8)> + use<> {
        let first = i32::from(hour) * 60 + i32::from(minute);
        let (hours, minutes) = (self.hours, self.minutes);
        let of_hour = move |hour: i8| {
            let matching = (0..60_i8).filter(move |minute| has(minutes, *minute));
            matching.map(move |minute| (hour, minute))
        };
        let times = (0..24_i8).filter(move |hour| has(hours, *hour)).flat_map(of_hour);
        times.filter(move |(hour, minute)| i32::from(*hour) * 60 + i32::from(*minute) >= first)
    }

    /// The shortest time between two runs, if the following day matches too.
    pub fn shortest_gap(&self) -> Duration {
        let minutes: Vec<u32> = self
            .times_from(0, 0)
            .filter_map(|(hour, minute)| Some(u32::try_from(hour).ok()? * 60 + u32::try_from(minute).ok()?))
            .collect();
        let next_day = minutes.first().map(|first| first + MINUTES_PER_DAY);
        let following = minutes.iter().skip(1).copied().chain(next_day);
        let shortest = minutes.iter().zip(following).map(|(one, next)| next - one).min();
        Duration::from_secs(60 * u64::from(shortest.unwrap_or(MINUTES_PER_DAY)))
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn has(set: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| number < 64 && set >> number & 1 == 1)
}

/// The values of a field, with one bit for each: `*`, numbers, ranges and steps, separated by commas. Months and days of the
/// week may have names, of which the first is that of the smallest value.
fn values(field: &str, (min, max): (u32, u32), names: &[&str]) -> Option<u64> {
    let value = |text: &str| -> Option<u32> {
        if let Some(at) = names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Some(min + u32::try_from(at).ok()?);
        }
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text.parse().ok() } else { None }
    };
    let mut set = 0;
    for part in field.split(',') {
        let (span, step) = match part.split_once('/') {
            Some((span, step)) => (span, Some(value(step).filter(|step| *step > 0)?)),
            None => (part, None),
        };
        let (from, to) = match (span, span.split_once('-')) {
            // Of the days of the week, 7 is the same as 0.
            ("*", _) => (min, if max == 7 { 6 } else { max }),
            (_, Some((from, to))) => (value(from)?, value(to)?),
            (single, None) => (value(single)?, if step.is_some() { max } else { value(single)? }),
        };
        if from < min || to > max || from > to {
            return None;
        }
        for number in (from..=to).step_by(usize::try_from(step.unwrap_or(1)).ok()?) {
            set |= 1 << number;
        }
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes_of(text: &str) -> Vec<(i8, i8)> {
        Cron::parse(text).unwrap().times_from(0, 0).collect()
    }

    #[test]
    fn fields_are_numbers_ranges_steps_and_names() {
        assert_eq!(minutes_of("30 4 * * *"), [(4, 30)]);
        assert_eq!(minutes_of("*/20 9-10 * * *"), [(9, 0), (9, 20), (9, 40), (10, 0), (10, 20), (10, 40)]);
        assert_eq!(minutes_of("5,50 0 * * *"), [(0, 5), (0, 50)]);
        assert_eq!(minutes_of("50/5 0 * * *"), [(0, 50), (0, 55)]);
        assert_eq!(minutes_of("10-30/10 0 * * *"), [(0, 10), (0, 20), (0, 30)]);
        for (one, other) in [
            ("0 0 * jan,Mar *", "0 0 * 1,3 *"),
            ("0 0 * * mon-fri", "0 0 * * 1-5"),
            ("0 0 * * 7", "0 0 * * 0"),
            ("0 0 * * 5-7", "0 0 * * 0,5,6"),
            ("0 0 * * *", "0 0 * * 0-7"),
        ] {
            let (one, other) = (Cron::parse(one).unwrap(), Cron::parse(other).unwrap());
            assert_eq!((one.months, one.weekdays), (other.months, other.weekdays));
        }
        assert_eq!(Cron::parse("  0   0\t* * * ").unwrap().to_string(), "0 0 * * *");
    }

    #[test]
    fn other_expressions_are_refused() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "@daily",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * * 13 *",
            "* * * * 8",
            "*/0 * * * *",
            "5-1 * * * *",
            "a * * * *",
            "1,,2 * * * *",
            "-1 * * * *",
            "+1 * * * *",
            "001 * * * *",
            "1-2-3 * * * *",
            "1/2/3 * * * *",
            "* * * mon *",
            "* * L * *",
        ] {
            assert_eq!(Cron::parse(text), None, "{text}");
        }
        assert_eq!(Cron::parse(&format!("0 0 * * *{}", " ".repeat(CRON_CHARS))), None);
    }

    #[test]
    fn limited_days_of_month_and_week_are_alternatives() {
        let both = Cron::parse("0 0 13 * fri").unwrap();
        assert!(both.has_day(1, 13, 2) && both.has_day(1, 2, 5) && !both.has_day(1, 2, 3));
        let one = Cron::parse("0 0 * * fri").unwrap();
        assert!(one.has_day(1, 13, 5) && !one.has_day(1, 13, 2));
        let stepped = Cron::parse("0 0 */2 * fri").unwrap();
        assert!(stepped.has_day(1, 13, 5) && !stepped.has_day(1, 14, 5) && !stepped.has_day(1, 13, 4));
    }

    #[test]
    fn shortest_gap_is_found_across_midnight() {
        for (text, minutes) in [
            ("* * * * *", 1),
            ("*/5 * * * *", 5),
            ("0,3 12 * * *", 3),
            ("0 0,6 * * *", 360),
            ("58 23 * * *", 1440),
            ("0,58 0,23 * * *", 2),
            ("0 4 * * mon", 1440),
        ] {
            assert_eq!(Cron::parse(text).unwrap().shortest_gap(), Duration::from_secs(minutes * 60), "{text}");
        }
    }
}
