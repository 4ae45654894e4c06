//! The only source of wall-clock time; everything else takes `now` as an argument.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use grabd_domain::Timestamp;

/// Wall-clock time, from the system or set manually by tests.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The system's clock.
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that only moves by [`Clock::advance`].
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(AtomicI64::new(start.as_ms()))))
    }

    /// The current time.
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the system time")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
            Source::Manual(ms) => Timestamp::from_ms(ms.load(Ordering::SeqCst)),
        }
    }

    /// Moves a manual clock forward. Has no effect on the system clock.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(ms) = &self.0 {
            ms.fetch_add(i64::try_from(by.as_millis()).unwrap_or(0), Ordering::SeqCst);
        }
    }
}
