//! Alerts of quiet hours, which wait for their end: those about the last change, and about the last failure or its end.

use grabd_domain::Timestamp;
use grabd_domain::monitor::{Alerts, Quiet};
use uuid::Uuid;

use crate::entities::monitor;

/// The alerts of a monitor that wait for the end of its quiet hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// When they are sent. `None`: there are none.
    pub(super) until: Option<Timestamp>,
    /// The last run with a change that is to be reported.
    pub(super) change: Option<Uuid>,
    /// The last run with a failure, or its end, that is to be reported.
    pub(super) failure: Option<Uuid>,
}

impl Held {
    /// Those of a row.
    pub(super) fn of(row: &monitor::Model) -> Self {
        Self { until: row.held_until.map(Timestamp::from_ms), change: row.held_change_id, failure: row.held_failure_id }
    }

    /// Whether an alert about this run waits.
    pub(super) fn has(self, run: Uuid) -> bool {
        self.change == Some(run) || self.failure == Some(run)
    }

    /// With the alerts of a run. `None` if they are sent at once: there are none, or it is not a quiet hour and nothing waits that
    /// must be sent before.
    pub(super) fn with(self, alerts: Alerts, run: Uuid, quiet: Option<&Quiet>, now: Timestamp) -> Option<Self> {
        if alerts == Alerts::default() {
            return None;
        }
        let until = self.until.or_else(|| quiet?.end_after(now))?;
        let is_about_failure = alerts.failed || alerts.recovered;
        Some(Self {
            until: Some(until),
            change: if alerts.changed { Some(run) } else { self.change },
            failure: if is_about_failure { Some(run) } else { self.failure },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_alert_of_each_kind_waits_for_the_end_of_the_quiet_hours() {
        let quiet = Quiet::new(22 * 60, 7 * 60, "UTC");
        let (night, noon) = (Timestamp::from_ms(23 * 3_600_000), Timestamp::from_ms(36 * 3_600_000));
        let morning = Timestamp::from_ms(31 * 3_600_000);
        let [one, two, three] = [1, 2, 3].map(Uuid::from_u128);
        let changed = Alerts { changed: true, ..Alerts::default() };
        let failed = Alerts { failed: true, ..Alerts::default() };
        let none = Held::default();
        assert_eq!(none.with(changed, one, quiet.as_ref(), noon), None);
        assert_eq!(none.with(changed, one, None, night), None);
        assert_eq!(none.with(Alerts::default(), one, quiet.as_ref(), night), None);
        let held = none.with(changed, one, quiet.as_ref(), night).unwrap();
        assert_eq!(held, Held { until: Some(morning), change: Some(one), failure: None });
        let held = held.with(failed, two, quiet.as_ref(), night).unwrap();
        // Also after the quiet hours, until the alerts before it are sent.
        let held = held.with(changed, three, quiet.as_ref(), noon).unwrap();
        assert_eq!(held, Held { until: Some(morning), change: Some(three), failure: Some(two) });
        assert!(held.has(three) && held.has(two) && !held.has(one));
    }
}
