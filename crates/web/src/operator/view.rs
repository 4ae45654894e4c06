//! Formatting of values for display.

use std::time::Duration;

use grabd_domain::ErrorCause;
use grabd_domain::grabs::FailureReason;
use grabd_domain::ids::SessionId;
use grabd_engine::operator::FailedGrab;

use crate::time_format::Moment;

/// A failed capture in a table.
pub(super) struct Failure {
    pub(super) finished: Moment,
    /// The label in the metrics.
    pub(super) code: &'static str,
    pub(super) reason: &'static str,
    pub(super) cause: &'static str,
    pub(super) host: String,
    pub(super) team: String,
    pub(super) team_path: String,
    pub(super) renderer: String,
    pub(super) attempts: u32,
    pub(super) grab: String,
}

impl From<FailedGrab> for Failure {
    fn from(failed: FailedGrab) -> Self {
        let FailedGrab { grab, team, team_name, reason, cause, host, session, attempts, finished_at } = failed;
        Self {
            finished: finished_at.into(),
            code: reason.code().as_str(),
            reason: reason_label(reason),
            cause: cause_label(cause),
            host: host.to_string(),
            team: team_name,
            team_path: format!("/operator/teams/{team}"),
            renderer: session.map_or_else(|| "none".to_owned(), renderer_name),
            attempts,
            grab: grab.to_string(),
        }
    }
}

/// Why a capture failed, for people.
pub(super) const fn reason_label(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::RenderBlocked => "Blocked by the site",
        FailureReason::RenderFailed => "Not rendered",
        FailureReason::SsrfDetected => "Led to a private address",
        FailureReason::InternalError => "Error of the service",
    }
}

/// Whose fault a failure is, for people.
pub(super) const fn cause_label(cause: ErrorCause) -> &'static str {
    match cause {
        ErrorCause::Request => "Request",
        ErrorCause::Target => "Target site",
        ErrorCause::Service => "Service",
    }
}

/// The display name of a renderer: the first characters of its session id.
pub(super) fn renderer_name(session: SessionId) -> String {
    session.to_string().chars().take(8).collect()
}

/// A duration in its two largest units.
pub(super) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => "less than a second".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A latency: in milliseconds below a second, in tenths of a second below a minute.
pub(super) fn seconds(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000.. => span(duration),
    }
}

/// A size in a suitable unit.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let (mut tenths, mut unit) = (bytes / 100, 0);
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        (tenths, unit) = (tenths / 1000, unit + 1);
    }
    match tenths {
        100.. => format!("{} {}", tenths / 10, UNITS[unit]),
        _ => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
    }
}

/// A share in percent with one decimal.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "no finished captures".to_owned();
    }
    let tenths = (part * 1000 + whole / 2) / whole;
    format!("{}.{} % of finished captures", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_sizes_and_shares_are_formatted_in_suitable_units() {
        for (seconds, expected) in [
            (0, "less than a second"),
            (59, "59 s"),
            (61, "1 min 1 s"),
            (3_600, "1 h 0 min"),
            (86_399, "23 h 59 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), expected);
        }
        for (bytes, expected) in [
            (999, "999 bytes"),
            (1000, "1.0 KB"),
            (9_950, "9.9 KB"),
            (240_000, "240 KB"),
            (1_540_000, "1.5 MB"),
            (25_000_000_000, "25 GB"),
            (3_000_000_000_000_000, "3000 TB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
        let shares = [share(0, 0), share(1, 3), share(7, 7)];
        assert_eq!(shares, ["no finished captures", "33.3 % of finished captures", "100.0 % of finished captures"]);
    }
}
