//! A point in time as people read it.

use grabd_domain::Timestamp;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// For a `time` element.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// `2026-11-21T09:30:12.480Z`
    pub(crate) machine: String,
    /// `21 Nov 2026, 09:30 UTC`: the server does not know whose clock it should be.
    pub(crate) human: String,
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Self {
        let machine = at.to_string();
        let month: usize = machine.get(5..7).and_then(|month| month.parse().ok()).unwrap_or(1);
        let (year, day, time) = (part(&machine, 0, 4), part(&machine, 8, 10), part(&machine, 11, 16));
        let human = format!("{} {} {year}, {time} UTC", day.trim_start_matches('0'), MONTHS[(month - 1) % 12]);
        Self { machine, human }
    }
}

fn part(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_no_rfc_3339() {
        for (ms, human) in [
            (1_795_206_774_120, "20 Nov 2026, 20:32 UTC"),
            (0, "1 Jan 1970, 00:00 UTC"),
            (1_798_761_599_999, "31 Dec 2026, 23:59 UTC"),
        ] {
            assert_eq!(Moment::from(Timestamp::from_ms(ms)).human, human);
        }
    }
}
