//! When to ask again, and when not before.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use tokio::time::Instant;

use crate::failure::Failure;

/// The first wait where the service names none; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait, also of those that the service names: whoever has to wait longer should know rather than sit there.
const LONGEST: Duration = Duration::from_secs(120);

/// How long a request waits for the rate limit in all. With the most jobs there are, each second's place comes round in a
/// minute; ten times that is a limit that somebody else uses up.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);

/// What is done about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It is told.
    Never,
    /// It is tried again, this much later.
    After(Duration),
}

/// Is it worth trying again, and is it safe? What changes something is only repeated when nothing was done yet or when
/// an Idempotency-Key sees to it that it is done once.
pub(super) fn again(method: &Method, sent: &HeaderMap, failure: &Failure, headers: &HeaderMap, tries: u32) -> Again {
    let is_safe = method.is_idempotent() || sent.contains_key("idempotency-key");
    let pause = || {
        // Half of it by chance, so that many who failed together do not come back together.
        let pause = FIRST.saturating_mul(1 << tries.min(8)).min(LONGEST);
        pause.mul_f64(0.5 + rand::random::<f64>() / 2.0)
    };
    let named = || match headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok()) {
        Some(seconds) => Duration::from_secs(seconds),
        None => pause(),
    };
    let wait = match failure {
        Failure::Unreachable { source, .. } if is_safe || source.is_connect() => pause(),
        Failure::Refused(refusal) => match refusal.code.as_str() {
            // Nothing was done: these are decided before anything is.
            "rate_limit_exceeded" | "queue_limit_exceeded" => named(),
            // The first one with this key is still under way; its answer comes with the next try.
            "idempotency_conflict" => named(),
            "internal_error" if is_safe => named(),
            _ => return Again::Never,
        },
        // A proxy in front of a service that is being restarted.
        Failure::Foreign { status, .. } if is_safe && matches!(status.as_u16(), 502..=504) => named(),
        Failure::Unreachable { .. }
        | Failure::Foreign { .. }
        | Failure::Usage(_)
        | Failure::NotYet { .. }
        | Failure::NotCaptured { .. }
        | Failure::File { .. }
        | Failure::SignedOut
        | Failure::Login(_) => return Again::Never,
    };
    if wait > LONGEST { Again::Never } else { Again::After(wait) }
}

/// Is it only that others were first?
pub(super) fn is_turn_taking(failure: &Failure) -> bool {
    failure.code() == Some("rate_limit_exceeded")
}

/// When the service next wants to be asked: one answer about the rate limit holds for all requests.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<Option<Instant>>);

impl Pace {
    /// Returns when the service may be asked.
    pub(super) async fn wait(&self) {
        while let Some(until) = self.until() {
            tokio::time::sleep_until(until).await;
        }
    }

    /// Waits so long. The rate limit holds for everything that would be asked, anything else for the one request.
    pub(super) async fn hold(&self, wait: Duration, failure: &Failure) {
        if !is_turn_taking(failure) {
            return tokio::time::sleep(wait).await;
        }
        let until = Instant::now() + wait;
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *held = (*held).max(Some(until));
    }

    /// How long the rate limit holds still, if it does.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.until().map(|until| until.duration_since(Instant::now()))
    }

    fn until(&self) -> Option<Instant> {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        until.filter(|until| *until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::failure::Refusal;

    fn refused(code: &str) -> Failure {
        let (code, message) = (code.to_owned(), String::new());
        Failure::Refused(Refusal { code, message, request_id: None })
    }

    #[test]
    fn only_what_is_safe_is_tried_again() {
        let (bare, mut keyed) = (HeaderMap::new(), HeaderMap::new());
        keyed.insert("idempotency-key", HeaderValue::from_static("k"));
        for (code, sent, expected) in [
            ("rate_limit_exceeded", &bare, true),
            ("queue_limit_exceeded", &bare, true),
            ("idempotency_conflict", &keyed, true),
            ("internal_error", &keyed, true),
            ("internal_error", &bare, false),
            ("render_failed", &keyed, false),
            ("render_blocked", &keyed, false),
            ("credits_exhausted", &keyed, false),
            ("unauthorized", &keyed, false),
            ("bad_request", &keyed, false),
            ("something_new", &keyed, false),
        ] {
            let again = again(&Method::POST, sent, &refused(code), &bare, 0);
            assert_eq!(matches!(again, Again::After(_)), expected, "{code}");
        }
        assert!(matches!(again(&Method::GET, &bare, &refused("internal_error"), &bare, 0), Again::After(_)));
    }

    #[test]
    fn the_service_says_how_long_and_chance_where_it_does_not() {
        let headers = |after| HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(after))]);
        let wait = |headers: &HeaderMap, tries| {
            again(&Method::GET, &HeaderMap::new(), &refused("rate_limit_exceeded"), headers, tries)
        };
        assert_eq!(wait(&headers("7"), 0), Again::After(Duration::from_secs(7)));
        assert_eq!(wait(&headers("7200"), 0), Again::Never, "nobody sits there for hours");
        for tries in 0..20 {
            let Again::After(wait) = wait(&HeaderMap::new(), tries) else { panic!("{tries}") };
            let most = FIRST.saturating_mul(1 << tries.min(8)).min(LONGEST);
            assert!((most / 2..=most).contains(&wait), "{tries}: {wait:?}");
        }
    }
}
