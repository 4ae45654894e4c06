//! Which requests to retry, and when.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use tokio::time::Instant;

use crate::failure::Failure;

/// The first backoff if the service sends no `Retry-After`; each further one is twice as long.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
/// The longest wait. If `Retry-After` is longer, the request fails instead, so that the user learns of it.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// How long one request waits for the rate limit in total. With the maximum of 64 jobs and one admission per second,
/// each job is admitted about once a minute; ten times that means that other clients use up the limit.
pub(super) const RATE_LIMIT_WAIT: Duration = Duration::from_secs(600);

/// What to do after a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// Return the failure.
    Never,
    /// Retry after this wait.
    After(Duration),
}

/// Decides whether a failed request is retried. A request that changes something is retried only if the service
/// rejected it before doing anything, or if an Idempotency-Key prevents that it is done twice.
pub(super) fn classify(
    method: &Method,
    sent: &HeaderMap,
    failure: &Failure,
    headers: &HeaderMap,
    retries: u32,
) -> Retry {
    let is_safe = method.is_idempotent() || sent.contains_key("idempotency-key");
    let backoff = || backoff(retries);
    let retry_after = || wait_for_limit(headers, retries);
    let wait = match failure {
        Failure::Unreachable { source, .. } if is_safe || source.is_connect() => backoff(),
        Failure::Api(error) => match error.code.as_str() {
            // The service checks these limits before it does anything.
            "rate_limit_exceeded" | "queue_limit_exceeded" => retry_after(),
            // An earlier request with this key is still in progress; a retry returns its result.
            "idempotency_conflict" => retry_after(),
            "internal_error" if is_safe => retry_after(),
            _ => return Retry::Never,
        },
        // A proxy responds like this while the service restarts.
        Failure::UnexpectedResponse { status, .. } if is_safe && matches!(status.as_u16(), 429 | 502..=504) => {
            retry_after()
        }
        Failure::Unreachable { .. }
        | Failure::UnexpectedResponse { .. }
        | Failure::Usage(_)
        | Failure::WaitTimedOut { .. }
        | Failure::CaptureFailed(_)
        | Failure::NoImage(_)
        | Failure::NotSaved { .. }
        | Failure::File { .. }
        | Failure::NotSignedIn
        | Failure::Login(_) => return Retry::Never,
    };
    if wait > MAX_WAIT { Retry::Never } else { Retry::After(wait) }
}

/// The wait that the service or a proxy asks for, or a backoff.
pub(super) fn wait_for_limit(headers: &HeaderMap, retries: u32) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
    seconds.map_or_else(|| backoff(retries), Duration::from_secs)
}

fn backoff(retries: u32) -> Duration {
    // Half of the backoff is jitter, so that requests that failed together are not retried together.
    let backoff = FIRST_BACKOFF.saturating_mul(1 << retries.min(8)).min(MAX_WAIT);
    backoff.mul_f64(0.5 + rand::random::<f64>() / 2.0)
}

/// Whether the request was rejected by the rate limit of the service, or by that of a proxy.
pub(crate) fn is_rate_limited(failure: &Failure) -> bool {
    let is_of_proxy = matches!(failure, Failure::UnexpectedResponse { status, .. } if status.as_u16() == 429);
    is_of_proxy || failure.code() == Some("rate_limit_exceeded")
}

/// The end of the current rate limit wait. One rate limit response applies to all requests.
#[derive(Debug, Default)]
pub(crate) struct RateLimit(Mutex<Option<Instant>>);

impl RateLimit {
    /// Waits until requests are allowed again.
    pub(super) async fn wait(&self) {
        while let Some(until) = self.until() {
            // Waits out `Retry-After`; another request may have extended it meanwhile.
            tokio::time::sleep_until(until).await;
        }
    }

    /// Delays the next request. A rate limit delays all requests, any other failure only the failed one.
    pub(super) async fn pause(&self, wait: Duration, failure: &Failure) {
        if !is_rate_limited(failure) {
            // Backoff before this request is retried.
            return tokio::time::sleep(wait).await;
        }
        let until = Instant::now() + wait;
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *current = (*current).max(Some(until));
    }

    /// The remaining wait for the rate limit, if there is any.
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
    use crate::failure::ApiError;

    fn api_error(code: &str) -> Failure {
        let (code, message) = (code.to_owned(), String::new());
        Failure::Api(ApiError { code, message, cause: None, request_id: None })
    }

    #[test]
    fn only_safe_requests_are_retried() {
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
            let retry = classify(&Method::POST, sent, &api_error(code), &bare, 0);
            assert_eq!(matches!(retry, Retry::After(_)), expected, "{code}");
        }
        assert!(matches!(classify(&Method::GET, &bare, &api_error("internal_error"), &bare, 0), Retry::After(_)));
    }

    #[test]
    fn retry_after_sets_the_wait_and_jittered_backoff_is_the_default() {
        let headers = |after| HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(after))]);
        let wait = |headers: &HeaderMap, retries| {
            classify(&Method::GET, &HeaderMap::new(), &api_error("rate_limit_exceeded"), headers, retries)
        };
        assert_eq!(wait(&headers("7"), 0), Retry::After(Duration::from_secs(7)));
        assert_eq!(wait(&headers("7200"), 0), Retry::Never, "waits above the maximum are not retried");
        for retries in 0..20 {
            let Retry::After(wait) = wait(&HeaderMap::new(), retries) else { panic!("{retries}") };
            let max = FIRST_BACKOFF.saturating_mul(1 << retries.min(8)).min(MAX_WAIT);
            assert!((max / 2..=max).contains(&wait), "{retries}: {wait:?}");
        }
    }
}
