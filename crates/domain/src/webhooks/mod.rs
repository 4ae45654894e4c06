//! Webhooks: events, subscriptions, limits and the retry schedule.

mod endpoint;
mod registration;

use std::time::Duration;

pub use endpoint::{Creator, Delivery, DeliveryError, DeliveryStatus, DisabledReason, Endpoint, message_id};
pub use registration::{EndpointRequest, EndpointRules, EndpointUpdate, Registration};

/// The event type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An asynchronous live grab is done.
    GrabDone,
    /// An asynchronous live grab has failed.
    GrabFailed,
    /// An asynchronous live grab is done, and its image differs from the earlier one that it is compared with.
    GrabChanged,
    /// The balance of a team has fallen below the threshold that its owners chose.
    CreditsLow,
    /// A page has changed, as a monitor compares it.
    MonitorChanged,
    /// The last runs of a monitor have failed.
    MonitorFailed,
    /// A run of a monitor is done, after failed ones that were reported.
    MonitorRecovered,
    /// A job that captures a site has ended.
    SiteFinished,
    /// A test message, sent on request.
    Test,
}

impl Event {
    /// The events that endpoints can subscribe to.
    pub const SUBSCRIBABLE: [Self; 8] = [
        Self::GrabDone,
        Self::GrabFailed,
        Self::GrabChanged,
        Self::CreditsLow,
        Self::MonitorChanged,
        Self::MonitorFailed,
        Self::MonitorRecovered,
        Self::SiteFinished,
    ];

    /// The name in the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GrabDone => "grab.done",
            Self::GrabFailed => "grab.failed",
            Self::GrabChanged => "grab.changed",
            Self::CreditsLow => "credits.low",
            Self::MonitorChanged => "monitor.changed",
            Self::MonitorFailed => "monitor.failed",
            Self::MonitorRecovered => "monitor.recovered",
            Self::SiteFinished => "site.finished",
            Self::Test => "webhook.test",
        }
    }

    /// Parses the name of a subscribable event.
    pub fn parse(text: &str) -> Option<Self> {
        Self::SUBSCRIBABLE.into_iter().find(|event| event.as_str() == text)
    }
}

/// The events that an endpoint is subscribed to: a selection, or all, including future ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events(Vec<Event>);

impl Events {
    /// The name for all events.
    pub const ALL: &'static str = "*";

    /// A subscription to all events.
    pub const fn all() -> Self {
        Self(Vec::new())
    }

    /// Parses event names. An empty list means all events.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn parse<T: AsRef<str>>(words: &[T]) -> Result<Self, &str> {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        let unknown = words.iter().find(|word| **word != Self::ALL && Event::parse(word).is_none());
        if let Some(unknown) = unknown {
            return Err(unknown);
        }
        if words.contains(&Self::ALL) {
            return Ok(Self::all());
        }
        Ok(Self(Event::SUBSCRIBABLE.into_iter().filter(|event| words.contains(&event.as_str())).collect()))
    }

    /// The event names, without duplicates.
    pub fn words(&self) -> Vec<&'static str> {
        match self.0.is_empty() {
            true => vec![Self::ALL],
            false => self.0.iter().map(|event| event.as_str()).collect(),
        }
    }

    /// Returns whether the subscription includes the event.
    pub fn contains(&self, event: Event) -> bool {
        self.0.is_empty() || self.0.contains(&event)
    }
}

/// Maximum number of endpoints per team and environment.
pub const MAX_ENDPOINTS: u32 = 10;
/// Maximum length of an endpoint's description, in characters.
pub const DESCRIPTION_CHARS: usize = 200;
/// Time limit of one delivery attempt.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of bytes read of a response.
pub const RESPONSE_BYTES: usize = 64 << 10;
/// Maximum number of deliveries of an account that wait for an attempt. Its endpoints share them.
pub const MAX_OPEN: u32 = 10_000;
/// The share that an endpoint has in any case.
pub const MIN_OPEN: u32 = 25;
/// Maximum number of attempts at one message, automatic ones and redeliveries together.
pub const MAX_SENDS: u32 = 30;
/// How long messages are also signed with the old secret after a rotation.
pub const ROTATION_OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);
/// How long deliveries are kept.
pub const DELIVERY_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Endpoints that fail for this long are disabled.
pub const FAILING_LIMIT: Duration = Duration::from_secs(5 * 24 * 60 * 60);
/// Upper bound for the delay by `Retry-After`.
pub const RETRY_AFTER_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Delay before each attempt in seconds, from the previous attempt. The first attempt is immediate.
const SCHEDULE_S: [u64; 10] =
    [0, 5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];

/// Returns the delay before the next attempt after `attempts` attempts, or `None` after the last one.
///
/// `chance`, a random number from 0 to 1, adds a jitter of ±20 % so that simultaneous failures are not retried at once.
pub fn retry_delay(attempts: u32, chance: f64) -> Option<Duration> {
    let seconds = *SCHEDULE_S.get(usize::try_from(attempts).ok()?)?;
    Some(Duration::from_secs(seconds).mul_f64(0.8 + 0.4 * chance.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delay_ends_after_ten_attempts() {
        assert_eq!(retry_delay(0, 0.5), Some(Duration::ZERO));
        assert_eq!(retry_delay(1, 0.5), Some(Duration::from_secs(5)));
        assert_eq!(retry_delay(1, 0.0), Some(Duration::from_secs(4)));
        assert_eq!(retry_delay(1, 1.0), Some(Duration::from_secs(6)));
        assert_eq!(retry_delay(9, 0.5), Some(Duration::from_secs(24 * 60 * 60)));
        assert_eq!(retry_delay(10, 0.5), None);
    }

    #[test]
    fn events_parse_a_selection_or_all() {
        for (words, expected) in [
            (vec![], Ok(vec!["*"])),
            (vec!["grab.failed", "grab.done", "grab.failed"], Ok(vec!["grab.done", "grab.failed"])),
            (vec!["grab.changed", "grab.done"], Ok(vec!["grab.done", "grab.changed"])),
            (vec!["grab.done", "*"], Ok(vec!["*"])),
            (vec!["grab.done", ""], Err("")),
            (vec!["grab.*"], Err("grab.*")),
            (vec!["webhook.test"], Err("webhook.test")),
            (vec!["GRAB.DONE"], Err("GRAB.DONE")),
        ] {
            assert_eq!(Events::parse(&words).map(|events| events.words()), expected, "{words:?}");
        }
        let failed = Events::parse(&["grab.failed"]).unwrap();
        assert!(failed.contains(Event::GrabFailed) && !failed.contains(Event::GrabDone));
        assert!(Events::all().contains(Event::GrabDone));
    }

    #[test]
    fn test_events_cannot_be_subscribed_to() {
        assert_eq!(Event::parse("grab.done"), Some(Event::GrabDone));
        assert_eq!(Event::parse("webhook.test"), None);
    }
}
