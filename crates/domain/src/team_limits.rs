//! The limits that an operator can override for a team.

use std::fmt;
use std::ops::RangeInclusive;

/// Longest text of a rejected input that an error repeats, in characters.
const SEEN_CHARS: usize = 60;
/// A century, as for the settings.
const MAX_DAYS: u32 = 36_500;
/// The window of the usage counts, which webhooks cover too, as for the setting.
const MIN_GRABS_DAYS: u32 = 30;

/// A limit of a team or of its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TeamLimit {
    /// Requests per minute in one environment.
    RequestsPerMinute,
    /// Open asynchronous grabs. 0: none.
    AsyncQueue,
    /// Seconds of failed renders per minute, of the account that the team belongs to.
    FailedSecondsPerMinute,
    /// Size of the images of live grabs, in megabytes. 0: not limited.
    TeamMegabytes,
    /// Days after which images of live grabs are deleted. 0: never.
    ImagesDays,
    /// Days after which live grabs are deleted. 0: never.
    GrabsDays,
    /// Days after which grabs of test keys are deleted. 0: never.
    TestGrabsDays,
    /// Days after which live grabs that failed are deleted. 0: never.
    FailedGrabsDays,
    /// What the test captures of the account may take, in megabytes. 0: not limited.
    TestMegabytes,
    /// What the live captures of the account may take, in megabytes; if it has paid, only those that failed. 0: not limited.
    StoredMegabytes,
    /// Webhook endpoints in one environment.
    Webhooks,
    /// Active API keys, live and test together.
    Keys,
    /// Members.
    Members,
    /// Open invitations.
    Invitations,
    /// Invitations that are sent by e-mail per day.
    InvitationsPerDay,
}

/// The override of one limit, or its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitChange {
    /// The limit.
    pub limit: TeamLimit,
    /// The value for the team; `None`: the setting applies again.
    pub value: Option<u32>,
}

/// Why the change of a limit was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// There is no limit of this name.
    #[error("`{seen}` is not the name of a limit; the limits are {}", names())]
    Name {
        /// The name, shortened.
        seen: String,
    },
    /// The value is not a number in the range of the limit.
    #[error("`{limit}` must be {}, got `{seen}`", limit.allowed())]
    Value {
        /// The limit.
        limit: TeamLimit,
        /// The value, shortened.
        seen: String,
    },
    /// The text is not of the form NAME=VALUE.
    #[error("expected NAME=VALUE, such as requests_per_minute=600, got `{seen}`")]
    Pair {
        /// The text, shortened.
        seen: String,
    },
}

impl TeamLimit {
    /// All limits, in the order in which they are shown.
    pub const ALL: [Self; 15] = [
        Self::RequestsPerMinute,
        Self::AsyncQueue,
        Self::FailedSecondsPerMinute,
        Self::TeamMegabytes,
        Self::ImagesDays,
        Self::GrabsDays,
        Self::TestGrabsDays,
        Self::FailedGrabsDays,
        Self::TestMegabytes,
        Self::StoredMegabytes,
        Self::Webhooks,
        Self::Keys,
        Self::Members,
        Self::Invitations,
        Self::InvitationsPerDay,
    ];

    /// The name in commands, on pages and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RequestsPerMinute => "requests_per_minute",
            Self::AsyncQueue => "async_queue",
            Self::FailedSecondsPerMinute => "failed_seconds_per_minute",
            Self::TeamMegabytes => "team_megabytes",
            Self::ImagesDays => "images_days",
            Self::GrabsDays => "grabs_days",
            Self::TestGrabsDays => "test_grabs_days",
            Self::FailedGrabsDays => "failed_grabs_days",
            Self::TestMegabytes => "test_megabytes",
            Self::StoredMegabytes => "stored_megabytes",
            Self::Webhooks => "webhooks",
            Self::Keys => "keys",
            Self::Members => "members",
            Self::Invitations => "invitations",
            Self::InvitationsPerDay => "invitations_per_day",
        }
    }

    /// The limit of this name.
    ///
    /// # Errors
    /// [`LimitError::Name`].
    pub fn parse(name: &str) -> Result<Self, LimitError> {
        let found = Self::ALL.into_iter().find(|limit| limit.as_str() == name);
        found.ok_or_else(|| LimitError::Name { seen: shortened(name) })
    }

    /// The smallest and the largest value of an override. Not every value between them is allowed: see
    /// [`TeamLimit::allows`].
    pub const fn range(self) -> RangeInclusive<u32> {
        match self {
            Self::RequestsPerMinute => 1..=1_000_000,
            Self::AsyncQueue => 0..=10_000,
            // A day per minute is more than any number of slots can use.
            Self::FailedSecondsPerMinute => 1..=86_400,
            Self::TeamMegabytes | Self::TestMegabytes | Self::StoredMegabytes => 0..=1_000_000_000,
            Self::ImagesDays | Self::GrabsDays | Self::TestGrabsDays | Self::FailedGrabsDays => 0..=MAX_DAYS,
            // Each finished grab is queued once for each endpoint, in one transaction.
            Self::Webhooks => 0..=50,
            // The pages of keys and of members have all of them.
            Self::Keys | Self::Members | Self::Invitations => 1..=1000,
            Self::InvitationsPerDay => 1..=1000,
        }
    }

    /// The smallest number of days above 0, if this is a number of days.
    const fn min_days(self) -> Option<u32> {
        match self {
            Self::GrabsDays | Self::FailedGrabsDays => Some(MIN_GRABS_DAYS),
            Self::ImagesDays | Self::TestGrabsDays => Some(1),
            Self::RequestsPerMinute
            | Self::AsyncQueue
            | Self::FailedSecondsPerMinute
            | Self::TeamMegabytes
            | Self::TestMegabytes
            | Self::StoredMegabytes
            | Self::Webhooks
            | Self::Keys
            | Self::Members
            | Self::Invitations
            | Self::InvitationsPerDay => None,
        }
    }

    /// Whether an override may have this value.
    pub fn allows(self, value: u32) -> bool {
        let is_in_range = self.range().contains(&value);
        is_in_range && self.min_days().is_none_or(|min| value == 0 || value >= min)
    }

    /// What an override may be, for error messages.
    pub fn allowed(self) -> String {
        let (first, last) = (*self.range().start(), *self.range().end());
        match (self, self.min_days()) {
            (_, Some(min)) => format!("0 (never), or from {min} to {last}"),
            (Self::TeamMegabytes | Self::TestMegabytes | Self::StoredMegabytes, None) => {
                format!("0 (not limited), or from 1 to {last}")
            }
            (_, None) => format!("from {first} to {last}"),
        }
    }

    /// What the limit is, for operators.
    pub const fn about(self) -> &'static str {
        match self {
            Self::RequestsPerMinute => "requests per minute in one environment",
            Self::AsyncQueue => "open asynchronous grabs",
            Self::FailedSecondsPerMinute => "seconds of failed renders per minute of the account",
            Self::TeamMegabytes => "megabytes of stored images; 0: not limited",
            Self::ImagesDays => "days until images are deleted; 0: never",
            Self::GrabsDays => "days until live grabs are deleted; 0: never",
            Self::TestGrabsDays => "days until test grabs are deleted; 0: never",
            Self::FailedGrabsDays => "days until failed live grabs are deleted; 0: never",
            Self::TestMegabytes => "megabytes of test captures of the account; 0: not limited",
            Self::StoredMegabytes => {
                "megabytes of live captures of the account, of failed ones if it has paid; 0: not limited"
            }
            Self::Webhooks => "webhooks in one environment",
            Self::Keys => "active API keys",
            Self::Members => "members",
            Self::Invitations => "open invitations",
            Self::InvitationsPerDay => "invitations by e-mail per day",
        }
    }
}

impl fmt::Display for TeamLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl LimitChange {
    /// Parses the value of an override.
    ///
    /// # Errors
    /// [`LimitError::Value`].
    pub fn set(limit: TeamLimit, value: &str) -> Result<Self, LimitError> {
        let parsed = value.trim().parse().ok().filter(|value| limit.allows(*value));
        let value = parsed.ok_or_else(|| LimitError::Value { limit, seen: shortened(value) })?;
        Ok(Self { limit, value: Some(value) })
    }

    /// Parses an override of the form NAME=VALUE.
    ///
    /// # Errors
    /// See [`LimitError`].
    pub fn parse(text: &str) -> Result<Self, LimitError> {
        let (name, value) = text.split_once('=').ok_or_else(|| LimitError::Pair { seen: shortened(text) })?;
        Self::set(TeamLimit::parse(name.trim())?, value)
    }

    /// Removes the override of the limit with this name.
    ///
    /// # Errors
    /// [`LimitError::Name`].
    pub fn reset(name: &str) -> Result<Self, LimitError> {
        Ok(Self { limit: TeamLimit::parse(name)?, value: None })
    }
}

impl fmt::Display for LimitChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => write!(f, "{}={value}", self.limit),
            None => write!(f, "{}=setting", self.limit),
        }
    }
}

fn names() -> String {
    TeamLimit::ALL.map(TeamLimit::as_str).join(", ")
}

fn shortened(text: &str) -> String {
    text.chars().take(SEEN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::USAGE_WINDOW;

    #[test]
    fn grabs_are_kept_for_the_window_of_the_usage_counts() {
        assert_eq!(u64::from(MIN_GRABS_DAYS) * 24 * 60 * 60, USAGE_WINDOW.as_secs());
    }

    #[test]
    fn every_limit_is_found_by_its_name() {
        for limit in TeamLimit::ALL {
            assert_eq!(TeamLimit::parse(limit.as_str()), Ok(limit));
        }
    }

    #[test]
    fn override_must_be_within_the_bounds_of_its_limit() {
        for (text, expected) in [
            ("requests_per_minute=1", Some(1)),
            ("requests_per_minute=1000000", Some(1_000_000)),
            ("requests_per_minute=0", None),
            ("requests_per_minute=1000001", None),
            ("requests_per_minute=-1", None),
            ("requests_per_minute=", None),
            ("async_queue=0", Some(0)),
            ("async_queue=10001", None),
            ("failed_seconds_per_minute=0", None),
            ("team_megabytes=0", Some(0)),
            ("images_days=1", Some(1)),
            ("images_days=36501", None),
            ("grabs_days=0", Some(0)),
            ("grabs_days=29", None),
            ("failed_grabs_days=29", None),
            ("failed_grabs_days=0", Some(0)),
            ("test_megabytes=0", Some(0)),
            ("stored_megabytes=500", Some(500)),
            ("grabs_days= 30 ", Some(30)),
            ("test_grabs_days=1", Some(1)),
            ("webhooks=51", None),
            ("keys=0", None),
            ("members=1000", Some(1000)),
            ("invitations=1001", None),
            ("invitations_per_day=0", None),
        ] {
            assert_eq!(LimitChange::parse(text).ok().and_then(|change| change.value), expected, "{text}");
        }
    }

    #[test]
    fn errors_say_what_was_seen_and_what_is_allowed() {
        for (text, expected) in [
            ("keys", "expected NAME=VALUE, such as requests_per_minute=600, got `keys`"),
            ("keys=many", "`keys` must be from 1 to 1000, got `many`"),
            ("grabs_days=7", "`grabs_days` must be 0 (never), or from 30 to 36500, got `7`"),
            ("team_megabytes=x", "`team_megabytes` must be 0 (not limited), or from 1 to 1000000000, got `x`"),
        ] {
            assert_eq!(LimitChange::parse(text).unwrap_err().to_string(), expected);
        }
        let unknown = LimitChange::reset(&"x".repeat(99)).unwrap_err().to_string();
        assert!(unknown.starts_with(&format!("`{}` is not the name of a limit", "x".repeat(60))), "{unknown}");
        assert!(unknown.ends_with("invitations, invitations_per_day"), "{unknown}");
    }
}
