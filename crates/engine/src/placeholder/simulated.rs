//! Reserved host names with which a test key simulates failures. Live keys can never reach a `.test` name (RFC 6761).

/// What happens to a grab of a test key instead of, or before, the placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedOutcome {
    /// Fail as `render_blocked`.
    Blocked,
    /// Fail as `render_failed`.
    Broken,
    /// Return the placeholder after three seconds.
    Slow,
    /// Refuse as `credits_exhausted`.
    Exhausted,
    /// Refuse as `queue_limit_exceeded`.
    Busy,
}

/// The outcome for a host as in a parsed URL; `None` for any host that is not reserved.
pub fn simulated_outcome(host: &str) -> Option<SimulatedOutcome> {
    match host {
        "blocked.test" => Some(SimulatedOutcome::Blocked),
        "broken.test" => Some(SimulatedOutcome::Broken),
        "slow.test" => Some(SimulatedOutcome::Slow),
        "exhausted.test" => Some(SimulatedOutcome::Exhausted),
        "busy.test" => Some(SimulatedOutcome::Busy),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reserved_names_simulate_an_outcome() {
        let rows = [
            ("blocked.test", Some(SimulatedOutcome::Blocked)),
            ("broken.test", Some(SimulatedOutcome::Broken)),
            ("slow.test", Some(SimulatedOutcome::Slow)),
            ("exhausted.test", Some(SimulatedOutcome::Exhausted)),
            ("busy.test", Some(SimulatedOutcome::Busy)),
            ("www.blocked.test", None),
            ("blocked.example", None),
            ("other.test", None),
            ("test", None),
            ("", None),
        ];
        for (host, expected) in rows {
            assert_eq!(simulated_outcome(host), expected, "{host}");
        }
    }
}
