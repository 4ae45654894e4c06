//! Reserved names with which a test key can try out failures. No live key could ever reach a `.test` name (RFC 6761).

/// What a create with a test key must do instead of, or before, answering with a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Fail as `render_blocked`.
    Blocked,
    /// Fail as `render_failed`.
    Broken,
    /// Answer with the placeholder after three seconds.
    Slow,
    /// Refuse as `credits_exhausted`.
    Exhausted,
    /// Refuse as `queue_limit_exceeded`.
    Busy,
}

/// The switch behind a host, if it is one: exactly these names, in the form a parsed URL gives.
pub fn switch(host: &str) -> Option<Switch> {
    match host {
        "blocked.test" => Some(Switch::Blocked),
        "broken.test" => Some(Switch::Broken),
        "slow.test" => Some(Switch::Slow),
        "exhausted.test" => Some(Switch::Exhausted),
        "busy.test" => Some(Switch::Busy),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_reserved_names_are_switches() {
        let rows = [
            ("blocked.test", Some(Switch::Blocked)),
            ("broken.test", Some(Switch::Broken)),
            ("slow.test", Some(Switch::Slow)),
            ("exhausted.test", Some(Switch::Exhausted)),
            ("busy.test", Some(Switch::Busy)),
            ("www.blocked.test", None),
            ("blocked.example", None),
            ("other.test", None),
            ("test", None),
            ("", None),
        ];
        for (host, expected) in rows {
            assert_eq!(switch(host), expected, "{host}");
        }
    }
}
