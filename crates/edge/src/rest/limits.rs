//! Rate limit headers, and the limit by address for requests without a recognised team.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use governor::clock::Clock;
use governor::middleware::StateInformationMiddleware;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use grabd_proto::v1::ErrorCode;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::error::ApiError;
use super::headers::{RATE_LIMIT, RATE_LIMIT_POLICY};

const LEGACY_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const LEGACY_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const LEGACY_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// How often addresses with a full quota are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// State of a limit of requests per minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Requests per minute.
    limit: u32,
    /// Requests that would be admitted now.
    remaining: u32,
    /// Seconds until one more is admitted.
    pub(crate) reset_s: u64,
}

impl Window {
    /// Reads the limit named "default" from `RateLimit-Policy` and `RateLimit`.
    pub(crate) fn read(metadata: &HeaderMap) -> Option<Self> {
        let policy = metadata.get(RATE_LIMIT_POLICY)?.to_str().ok()?;
        let state = metadata.get(RATE_LIMIT)?.to_str().ok()?;
        Some(Self {
            limit: parameter(policy, "q")?,
            remaining: parameter(state, "r")?,
            reset_s: parameter(state, "t")?.into(),
        })
    }

    /// Writes the current and the legacy headers.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let Self { limit, remaining, reset_s } = *self;
        headers.insert(RATE_LIMIT_POLICY, header_value(&format!("\"default\";q={limit};w=60")));
        headers.insert(RATE_LIMIT, header_value(&format!("\"default\";r={remaining};t={reset_s}")));
        self.write_legacy(headers);
    }

    fn write_legacy(&self, headers: &mut HeaderMap) {
        let Self { limit, remaining, reset_s } = *self;
        headers.insert(LEGACY_LIMIT, limit.into());
        headers.insert(LEGACY_REMAINING, remaining.into());
        headers.insert(LEGACY_RESET, now_s().saturating_add(reset_s).into());
    }
}

/// Copies the rate limit headers from the core's metadata, if present, and adds the legacy headers.
pub(crate) fn copy(metadata: &HeaderMap, headers: &mut HeaderMap) {
    for name in [RATE_LIMIT_POLICY, RATE_LIMIT] {
        if let Some(value) = metadata.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    if let Some(window) = Window::read(metadata) {
        window.write_legacy(headers);
    }
}

/// Adds the limit of open asynchronous grabs to both headers, unless the core has added it. Responses without a
/// recognised team have no rate limit headers at this point and are left unchanged.
pub(crate) fn add_async_queue(headers: &mut HeaderMap, limit: u32) {
    for name in [RATE_LIMIT_POLICY, RATE_LIMIT] {
        let list = headers.get(&name).and_then(|list| list.to_str().ok());
        if let Some(list) = list.filter(|list| !list.contains("\"async-queue\"")) {
            let list = header_value(&format!("{list}, \"async-queue\";q={limit};qu=\"concurrent-requests\""));
            headers.insert(name, list);
        }
    }
}

/// Rate limiter by client address.
pub(crate) struct AddressLimiter {
    limiter: DefaultKeyedRateLimiter<IpAddr, StateInformationMiddleware>,
    per_minute: NonZeroU32,
    swept_at: Mutex<Instant>,
}

impl AddressLimiter {
    /// All addresses start with a full quota.
    pub(crate) fn new(per_minute: u32) -> Self {
        let per_minute = NonZeroU32::new(per_minute).unwrap_or(NonZeroU32::MIN);
        Self {
            limiter: RateLimiter::keyed(Quota::per_minute(per_minute)).with_middleware(),
            per_minute,
            swept_at: Mutex::new(Instant::now()),
        }
    }

    /// Takes one request from the quota of an address.
    ///
    /// # Errors
    /// With the current window when the quota is used up. Nothing is taken then.
    pub(crate) fn take(&self, address: IpAddr) -> Result<Window, Window> {
        self.sweep(Instant::now());
        let limit = self.per_minute.get();
        match self.limiter.check_key(&address) {
            Ok(state) => {
                let reset_s = whole_seconds(Duration::from_secs(60) / limit);
                Ok(Window { limit, remaining: state.remaining_burst_capacity(), reset_s })
            }
            Err(until) => {
                let reset_s = whole_seconds(until.wait_time_from(self.limiter.clock().now()));
                Err(Window { limit, remaining: 0, reset_s })
            }
        }
    }

    /// Removes addresses with a full quota, once a minute. Returns at once if another call holds the lock.
    fn sweep(&self, now: Instant) {
        if let Ok(mut swept_at) = self.swept_at.try_lock()
            && now.duration_since(*swept_at) >= SWEEP_INTERVAL
        {
            *swept_at = now;
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
    }
}

/// The error for an address whose quota is used up.
pub(crate) fn rate_limit_error(window: &Window) -> ApiError {
    let Window { limit, remaining: _, reset_s } = *window;
    let message = format!("Request rate limit exceeded: {limit} requests per minute. Retry in {reset_s} s.");
    let mut failure = ApiError::new(ErrorCode::RateLimitExceeded, message);
    window.write(&mut failure.headers);
    failure.headers.insert(RETRY_AFTER, reset_s.into());
    failure
}

/// Rounds up to whole seconds, at least one.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}

/// A parameter of the member "default" of a structured field list.
fn parameter(list: &str, name: &str) -> Option<u32> {
    let member = list.split(',').map(str::trim).find(|member| member.starts_with("\"default\""))?;
    let value = member.split(';').filter_map(|part| part.trim().split_once('=')).find(|(key, _)| *key == name)?.1;
    value.parse().ok()
}

fn header_value(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).expect("rate limit headers are visible ASCII")
}

#[expect(clippy::disallowed_methods, reason = "the legacy header contains a Unix time; no decision uses it")]
fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(policy: &str, state: &str) -> HeaderMap {
        HeaderMap::from_iter([(RATE_LIMIT_POLICY, header_value(policy)), (RATE_LIMIT, header_value(state))])
    }

    #[test]
    fn read_finds_the_default_window_among_others() {
        let window = Window { limit: 60, remaining: 59, reset_s: 12 };
        for (policy, state, expected) in [
            ("\"default\";q=60;w=60", "\"default\";r=59;t=12", Some(window)),
            ("\"other\";q=9, \"default\"; q=60; w=60", "\"other\";r=1;t=1, \"default\"; r=59; t=12", Some(window)),
            ("\"default\";w=60", "\"default\";r=59;t=12", None),
            ("\"default\";q=60", "\"default\";r=x;t=12", None),
            ("\"other\";q=60", "\"default\";r=59;t=12", None),
        ] {
            assert_eq!(Window::read(&headers(policy, state)), expected, "{policy} {state}");
        }
    }

    #[test]
    fn async_queue_limit_is_added_to_team_limits_once() {
        let mut none = HeaderMap::new();
        add_async_queue(&mut none, 50);
        assert!(none.is_empty());

        let mut team = headers("\"default\";q=60;w=60", "\"default\";r=59;t=1, \"async-queue\";r=3");
        for _ in 0..2 {
            add_async_queue(&mut team, 50);
            let policy = "\"default\";q=60;w=60, \"async-queue\";q=50;qu=\"concurrent-requests\"";
            assert_eq!(team[RATE_LIMIT_POLICY], policy);
            assert_eq!(team[RATE_LIMIT], "\"default\";r=59;t=1, \"async-queue\";r=3");
        }
    }

    #[test]
    fn take_fails_when_the_quota_of_an_address_is_used_up() {
        let addresses = AddressLimiter::new(3);
        let [a, b] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse::<IpAddr>().unwrap());
        for remaining in [2, 1, 0] {
            assert_eq!(addresses.take(a), Ok(Window { limit: 3, remaining, reset_s: 20 }));
        }
        for _ in 0..5 {
            let Err(window) = addresses.take(a) else { panic!("a fourth request was admitted") };
            assert_eq!((window.limit, window.remaining), (3, 0));
            assert!((19..=20).contains(&window.reset_s), "a rejected request must not extend the wait: {window:?}");
        }
        assert!(addresses.take(b).is_ok());
    }

    #[test]
    fn sweep_removes_addresses_with_a_full_quota() {
        let addresses = AddressLimiter::new(60_000_000);
        for last in 0..100 {
            addresses.take(IpAddr::from([192, 0, 2, last])).unwrap();
        }
        let start = *addresses.swept_at.lock().unwrap();
        addresses.sweep(start + SWEEP_INTERVAL - Duration::from_millis(1));
        assert_eq!(addresses.limiter.len(), 100);
        // Quotas are full again after a microsecond, which may not have passed at the first sweep.
        let emptied = (1..1000).any(|minute| {
            addresses.sweep(start + SWEEP_INTERVAL * minute);
            addresses.limiter.is_empty()
        });
        assert!(emptied);
    }

    #[test]
    fn whole_seconds_rounds_up() {
        for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (20_000, 20)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }
}
