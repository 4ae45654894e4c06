//! Webhooks: which events there are, who gets them, and when an attempt follows another.

mod endpoint;
mod registration;

use std::time::Duration;

pub use endpoint::{Delivery, DeliveryStatus, Disabled, Endpoint, NoAnswer, message_id};
pub use registration::{Change, Registration, Request, Rules};

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An asynchronous live grab is done.
    GrabDone,
    /// An asynchronous live grab has failed.
    GrabFailed,
    /// Somebody wants to see whether messages arrive.
    Test,
}

impl Event {
    /// Those an endpoint can subscribe to.
    pub const SUBSCRIBABLE: [Self; 2] = [Self::GrabDone, Self::GrabFailed];

    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GrabDone => "grab.done",
            Self::GrabFailed => "grab.failed",
            Self::Test => "webhook.test",
        }
    }

    /// The subscribable event behind a wire word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::SUBSCRIBABLE.into_iter().find(|event| event.as_str() == text)
    }
}

/// The events an endpoint gets: some, or all, which includes those that are yet to be invented.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events(Vec<Event>);

impl Events {
    /// The word for all of them.
    pub const ALL: &'static str = "*";

    /// All of them.
    pub const fn all() -> Self {
        Self(Vec::new())
    }

    /// The events behind wire words; no words mean all. The first word that names none is the error.
    ///
    /// # Errors
    /// The word.
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

    /// The wire words, each once.
    pub fn words(&self) -> Vec<&'static str> {
        match self.0.is_empty() {
            true => vec![Self::ALL],
            false => self.0.iter().map(|event| event.as_str()).collect(),
        }
    }

    /// Is the event among them?
    pub fn contains(&self, event: Event) -> bool {
        self.0.is_empty() || self.0.contains(&event)
    }
}

/// Endpoints of one team in one environment.
pub const MAX_ENDPOINTS: u32 = 10;
/// Characters of an endpoint's description.
pub const DESCRIPTION_CHARS: usize = 200;
/// How long an endpoint may take to answer.
pub const ATTEMPT_LIMIT: Duration = Duration::from_secs(15);
/// How much of its answer is read.
pub const ANSWER_BYTES: usize = 64 << 10;
/// How long the old secret signs beside a new one.
pub const ROTATION_OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);
/// How long deliveries are listed.
pub const LOG_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// An endpoint that has failed for so long is disabled.
pub const FAILING_LIMIT: Duration = Duration::from_secs(5 * 24 * 60 * 60);
/// The most that `Retry-After` delays the next attempt.
pub const RETRY_AFTER_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Seconds before each attempt, counted from the one before; the first is made at once.
const SCHEDULE_S: [u64; 10] =
    [0, 5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];

/// The wait before the next attempt when `attempts` have been made; `None` when that was the last one.
///
/// `chance` from 0 to 1 spreads it by a fifth to either side, so that what failed together does not return together.
pub fn wait_after(attempts: u32, chance: f64) -> Option<Duration> {
    let seconds = *SCHEDULE_S.get(usize::try_from(attempts).ok()?)?;
    Some(Duration::from_secs(seconds).mul_f64(0.8 + 0.4 * chance.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_attempts_then_none() {
        assert_eq!(wait_after(0, 0.5), Some(Duration::ZERO));
        assert_eq!(wait_after(1, 0.5), Some(Duration::from_secs(5)));
        assert_eq!(wait_after(1, 0.0), Some(Duration::from_secs(4)));
        assert_eq!(wait_after(1, 1.0), Some(Duration::from_secs(6)));
        assert_eq!(wait_after(9, 0.5), Some(Duration::from_secs(24 * 60 * 60)));
        assert_eq!(wait_after(10, 0.5), None);
    }

    #[test]
    fn events_are_some_or_all() {
        for (words, expected) in [
            (vec![], Ok(vec!["*"])),
            (vec!["grab.failed", "grab.done", "grab.failed"], Ok(vec!["grab.done", "grab.failed"])),
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
    fn tests_cannot_be_subscribed_to() {
        assert_eq!(Event::parse("grab.done"), Some(Event::GrabDone));
        assert_eq!(Event::parse("webhook.test"), None);
    }
}
