//! Rate limit headers.

use std::time::SystemTime;

use grabd_limiters::Window;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Remaining quota of the caller.
pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static(grabd_proto::reason::RATE_LIMIT);
/// Rate limits of the caller.
pub(crate) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static(grabd_proto::reason::RATE_LIMIT_POLICY);

const LEGACY_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const LEGACY_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const LEGACY_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The policies of which a response reports one: that of requests, or that of waits for grabs.
const COUNTED: [&str; 2] = ["\"default\"", "\"waits\""];

/// Reads the limit that the request counted in from `RateLimit-Policy` and `RateLimit`.
pub(crate) fn read(metadata: &HeaderMap) -> Option<Window> {
    let policy = metadata.get(RATE_LIMIT_POLICY)?.to_str().ok()?;
    let state = metadata.get(RATE_LIMIT)?.to_str().ok()?;
    Some(Window {
        limit: parameter(policy, "q")?,
        remaining: parameter(state, "r")?,
        reset_s: parameter(state, "t")?.into(),
        of_end_site: false,
    })
}

/// Writes the current and the legacy headers for a limit of requests per minute.
pub(crate) fn write(window: &Window, headers: &mut HeaderMap) {
    let Window { limit, remaining, reset_s, .. } = *window;
    headers.insert(RATE_LIMIT_POLICY, header_value(&format!("\"default\";q={limit};w=60")));
    headers.insert(RATE_LIMIT, header_value(&format!("\"default\";r={remaining};t={reset_s}")));
    write_legacy(window, headers);
}

fn write_legacy(window: &Window, headers: &mut HeaderMap) {
    let Window { limit, remaining, reset_s, .. } = *window;
    headers.insert(LEGACY_LIMIT, limit.into());
    headers.insert(LEGACY_REMAINING, remaining.into());
    headers.insert(LEGACY_RESET, now_s().saturating_add(reset_s).into());
}

/// Copies the rate limit headers from the core's metadata, if present, and adds the legacy headers.
pub(crate) fn copy(metadata: &HeaderMap, headers: &mut HeaderMap) {
    for name in [RATE_LIMIT_POLICY, RATE_LIMIT] {
        if let Some(value) = metadata.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    if let Some(window) = read(metadata) {
        write_legacy(&window, headers);
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

/// A parameter of the counted member of a structured field list.
fn parameter(list: &str, name: &str) -> Option<u32> {
    let mut members = list.split(',').map(str::trim);
    let member = members.find(|member| COUNTED.iter().any(|counted| member.starts_with(counted)))?;
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
        let window = Window { limit: 60, remaining: 59, reset_s: 12, of_end_site: false };
        for (policy, state, expected) in [
            ("\"default\";q=60;w=60", "\"default\";r=59;t=12", Some(window)),
            ("\"other\";q=9, \"default\"; q=60; w=60", "\"other\";r=1;t=1, \"default\"; r=59; t=12", Some(window)),
            ("\"waits\";q=60;w=60", "\"waits\";r=59;t=12", Some(window)),
            ("\"default\";w=60", "\"default\";r=59;t=12", None),
            ("\"default\";q=60", "\"default\";r=x;t=12", None),
            ("\"other\";q=60", "\"default\";r=59;t=12", None),
        ] {
            assert_eq!(read(&headers(policy, state)), expected, "{policy} {state}");
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
}
