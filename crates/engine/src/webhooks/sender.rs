//! The webhook sender: reads due deliveries into the line, leases those whose turn it is, makes attempts, and records their
//! outcome.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use grabd_domain::Timestamp;
use grabd_domain::webhooks::{ATTEMPT_TIMEOUT, DeliveryError, RETRY_AFTER_LIMIT, message_id, retry_delay};
use grabd_egress::EgressError;
use grabd_store::webhooks::{AfterDelivery, DeliveryAttempt, DeliveryAttemptResult};
use http::{HeaderValue, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::due::DueReader;
use super::line::{Line, Pace, QUICK_LIMIT, Turn};
use super::message::compose;
use super::post::{EndpointResponse, SignedMessage, post};
use super::secret::Secret;
use super::sign::{seconds, sign};
use crate::outgoing::RequestError;
use crate::random;
use crate::service::Core;

/// How often the table is polled without a notification.
const POLL: Duration = Duration::from_secs(1);
/// Lease of an attempt: its time limit plus 15 s. A crash of the sender delays its messages by this time.
const LEASE: Duration = Duration::from_secs(ATTEMPT_TIMEOUT.as_secs() + 15);
/// How often deliveries are leased in a row, if those that were taken from the line are not due any more.
const LEASES: usize = 4;

/// The line, shared with the attempts.
#[derive(Default)]
struct SharedLine {
    /// The lock is only held for a few map operations, hence no asynchronous one.
    line: Mutex<Line>,
    /// Notified when an attempt has left its pool.
    room: Notify,
}

impl SharedLine {
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock()
    }
}

/// Runs until the core drains or stops, then waits for the attempts in flight, each of which has a time limit.
pub(crate) async fn run(core: Core) {
    let mut poll = interval(POLL);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut in_flight = FuturesUnordered::new();
    let line = Arc::new(SharedLine::default());
    let mut reader = DueReader::new(core.clock.now());
    loop {
        let due = tokio::select! {
            () = core.draining.cancelled() => break,
            () = core.stop.cancelled() => break,
            Some(()) = in_flight.next(), if !in_flight.is_empty() => Vec::new(),
            () = line.room.notified() => Vec::new(),
            () = core.webhooks.wakeup.notified() => reader.read_new(&core).await,
            _ = poll.tick() => {
                let has_room = line.lock().has_room();
                reader.read(&core, has_room).await
            }
        };
        line.lock().add(due, core.clock.now());
        for (turn, attempt) in take_turns(&core, &line).await {
            let task = core.spawn(run_attempt(core.clone(), Arc::clone(&line), attempt));
            let (core, line) = (core.clone(), Arc::clone(&line));
            in_flight.push(async move {
                let pace = task.await.unwrap_or_else(|error| {
                    tracing::error!(%error, endpoint.id = %turn.endpoint, "a webhook attempt panicked");
                    None
                });
                line.lock().end(turn.delivery, pace, core.clock.now());
            });
        }
    }
    while in_flight.next().await.is_some() {}
}

/// Leases the deliveries whose turn it is.
async fn take_turns(core: &Core, line: &SharedLine) -> Vec<(Turn, DeliveryAttempt)> {
    let mut taken = Vec::new();
    for _ in 0..LEASES {
        let turns = line.lock().take();
        if turns.is_empty() {
            break;
        }
        let (now, public_url) = (core.clock.now(), core.settings.public_url.clone());
        let deliveries = turns.iter().map(|turn| turn.delivery).collect();
        let leased = core
            .store
            .webhooks()
            .lease_deliveries(deliveries, now, now + LEASE, move |owed| compose(owed, &public_url))
            .await;
        let is_known = leased.is_ok();
        let leased = leased.unwrap_or_else(|error| {
            tracing::warn!(%error, "due webhooks could not be leased; trying again");
            Vec::new()
        });
        let mut leased: HashMap<_, _> = leased.into_iter().map(|attempt| (attempt.delivery, attempt)).collect();
        let is_complete = leased.len() == turns.len();
        for turn in turns {
            match leased.remove(&turn.delivery) {
                Some(attempt) => taken.push((turn, attempt)),
                // Another process has leased it, or it was cancelled or set aside.
                None => line.lock().end(turn.delivery, None, now),
            }
        }
        if is_complete || !is_known {
            break;
        }
    }
    taken
}

/// Makes an attempt. Returns how the endpoint responded, if it was made.
async fn run_attempt(core: Core, line: Arc<SharedLine>, attempt: DeliveryAttempt) -> Option<Pace> {
    let at = core.clock.now();
    let DeliveryAttempt { delivery, endpoint, number, url, secrets, body } = attempt;
    // If the key file was replaced between two rotations, the old secret cannot be decrypted. The new one suffices.
    let secrets: Vec<Secret> =
        secrets.iter().filter_map(|sealed| Secret::unseal(&core.vault, sealed, endpoint).ok()).collect();
    if secrets.is_empty() {
        // The operator must fix this, so the delivery stays due and the endpoint is not counted as failing.
        tracing::error!(endpoint.id = %endpoint, "a webhook secret cannot be decrypted; trying again");
        return None;
    }
    let id = message_id(delivery);
    let signature = sign(&secrets, &id, at, &body);
    let message = SignedMessage { id, seconds: seconds(at), signature, body };
    let began = Instant::now();
    let mut sending = pin!(post(&core.guard, &core.outgoing, &url, message));
    let outcome = match timeout(QUICK_LIMIT, &mut sending).await {
        Ok(outcome) => outcome,
        Err(_) if line.lock().slow_down(delivery) => {
            line.room.notify_one();
            sending.await
        }
        Err(_) => Err(RequestError::TimedOut(QUICK_LIMIT)),
    };
    let pace = pace_of(&outcome, began.elapsed());
    let now = core.clock.now();
    let next = next_step(&outcome, number, now, random::fraction());
    core.metrics.webhook_attempted(matches!(next, AfterDelivery::Delivered));
    match &outcome {
        Ok(response) => {
            tracing::info!(delivery.id = %delivery, endpoint.id = %endpoint, attempt = number,
                status = response.status.as_u16(), duration_ms = now.since(at).as_millis(), "a webhook got a response");
        }
        Err(error) => {
            tracing::info!(delivery.id = %delivery, endpoint.id = %endpoint, attempt = number, %error,
                duration_ms = now.since(at).as_millis(), "a webhook got no response");
        }
    }
    let answer = outcome.as_ref().map(|response| response.status.as_u16()).map_err(no_answer);
    let attempted = DeliveryAttemptResult { delivery, endpoint, number, at, now, answer, after: next };
    match core.store.webhooks().record_attempt(attempted).await {
        Ok(None) => core.webhooks.announce_recorded(delivery),
        Ok(Some(reason)) => {
            tracing::warn!(endpoint.id = %endpoint, why = reason.as_str(), "an endpoint was disabled");
            core.webhooks.announce_recorded(delivery);
        }
        Err(error) => {
            tracing::warn!(%error, delivery.id = %delivery, "an attempt could not be recorded; it will be repeated");
        }
    }
    Some(pace)
}

/// How the endpoint responded.
fn pace_of(outcome: &Result<EndpointResponse, RequestError>, took: Duration) -> Pace {
    match outcome {
        Ok(_) => Pace::of_response(took),
        // It may have responded within the whole time limit, so it gets that the next time.
        Err(RequestError::TimedOut(QUICK_LIMIT)) => Pace::Late,
        Err(_) => Pace::of_failure(took),
    }
}

/// The reason shown to the endpoint's owner when an attempt got no response.
fn no_answer(error: &RequestError) -> DeliveryError {
    match error {
        RequestError::Connection(refusal) => match refusal {
            EgressError::Address { .. } | EgressError::Name | EgressError::Port => DeliveryError::Refused,
            EgressError::Unresolved => DeliveryError::Unresolved,
            // Messages go through no proxy.
            EgressError::ConnectFailed(_) | EgressError::Proxy(_) => DeliveryError::Unreachable,
            EgressError::TimedOut => DeliveryError::TimedOut,
        },
        RequestError::Tls(_) => DeliveryError::Tls,
        RequestError::Http(_) | RequestError::Request(_) => DeliveryError::Http,
        RequestError::TimedOut(_) => DeliveryError::TimedOut,
    }
}

/// Decides what follows an attempt.
fn next_step(
    outcome: &Result<EndpointResponse, RequestError>,
    number: u32,
    now: Timestamp,
    chance: f64,
) -> AfterDelivery {
    let requested = match outcome {
        Ok(response) if response.status.is_success() => return AfterDelivery::Delivered,
        Ok(response) if response.status == StatusCode::GONE => return AfterDelivery::Gone,
        Ok(EndpointResponse {
            status: StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE,
            retry_after,
        }) => retry_after.as_ref().and_then(|value| parse_retry_after(value, now)),
        Ok(_) | Err(_) => None,
    };
    match retry_delay(number, chance) {
        Some(scheduled) => AfterDelivery::Retry(now + scheduled.max(requested.unwrap_or_default())),
        None => AfterDelivery::Exhausted,
    }
}

/// Parses `Retry-After`, which is a number of seconds or a date (RFC 9110, section 10.2.3).
fn parse_retry_after(value: &HeaderValue, now: Timestamp) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let delay = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            Timestamp::from_ms(i64::try_from(date.as_millis()).ok()?).since(now)
        }
    };
    Some(delay.min(RETRY_AFTER_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, retry_after: Option<&'static str>) -> Result<EndpointResponse, RequestError> {
        let retry_after = retry_after.map(HeaderValue::from_static);
        Ok(EndpointResponse { status: StatusCode::from_u16(status).unwrap(), retry_after })
    }

    #[test]
    fn no_answer_maps_request_errors() {
        let reason = |error: RequestError| no_answer(&error);
        let broken = std::io::Error::other("x");
        for (actual, expected) in [
            (reason(RequestError::Connection(EgressError::Name)), DeliveryError::Refused),
            (reason(RequestError::Connection(EgressError::Port)), DeliveryError::Refused),
            (reason(RequestError::Connection(EgressError::Unresolved)), DeliveryError::Unresolved),
            (reason(RequestError::Connection(EgressError::ConnectFailed(broken.kind()))), DeliveryError::Unreachable),
            (reason(RequestError::Connection(EgressError::TimedOut)), DeliveryError::TimedOut),
            (reason(RequestError::Tls(broken)), DeliveryError::Tls),
            (reason(RequestError::TimedOut(ATTEMPT_TIMEOUT)), DeliveryError::TimedOut),
        ] {
            assert_eq!(actual, expected);
        }
    }

    #[test]
    fn pace_is_that_of_the_response_or_of_its_absence() {
        let seconds = Duration::from_secs_f64;
        for (outcome, took, expected) in [
            (response(200, None), 0.1, Pace::Quick),
            (response(500, None), 1.9, Pace::Quick),
            (response(200, None), 2.1, Pace::Late),
            (Err(RequestError::TimedOut(QUICK_LIMIT)), 2.0, Pace::Late),
            (Err(RequestError::TimedOut(ATTEMPT_TIMEOUT)), 15.0, Pace::Silent),
            (Err(RequestError::Connection(EgressError::Unresolved)), 2.0, Pace::Silent),
            (Err(RequestError::Connection(EgressError::TimedOut)), 5.0, Pace::Silent),
            (Err(RequestError::Connection(EgressError::Unresolved)), 0.1, Pace::Quick),
            (Err(RequestError::Connection(EgressError::Name)), 0.0, Pace::Quick),
        ] {
            assert_eq!(pace_of(&outcome, seconds(took)), expected, "{outcome:?} {took}");
        }
    }

    #[test]
    fn next_step_depends_on_status_attempt_and_retry_after() {
        // Sat, 21 Nov 2026 10:00:00 GMT.
        let now = Timestamp::from_ms(1_795_255_200_000);
        let again = |seconds| AfterDelivery::Retry(now + Duration::from_secs(seconds));
        for (outcome, number, expected) in [
            (response(200, None), 1, AfterDelivery::Delivered),
            (response(204, None), 10, AfterDelivery::Delivered),
            (response(299, None), 11, AfterDelivery::Delivered),
            (response(301, None), 1, again(5)),
            (response(307, Some("60")), 1, again(5)),
            (response(400, None), 1, again(5)),
            (response(404, None), 2, again(300)),
            (response(410, None), 1, AfterDelivery::Gone),
            (response(500, Some("3600")), 1, again(5)),
            (response(503, Some("60")), 1, again(60)),
            (response(429, Some("60")), 2, again(300)),
            (response(429, Some(" 3600 ")), 2, again(3600)),
            (response(503, Some("Sat, 21 Nov 2026 10:02:00 GMT")), 1, again(120)),
            (response(503, Some("Sat, 21 Nov 2026 09:00:00 GMT")), 1, again(5)),
            (response(503, Some("soon")), 1, again(5)),
            (response(503, Some("-1")), 1, again(5)),
            (response(429, Some("999999999")), 1, again(24 * 3600)),
            (response(429, Some("60")), 10, AfterDelivery::Exhausted),
            (response(500, None), 9, again(24 * 3600)),
            (Err(RequestError::TimedOut(ATTEMPT_TIMEOUT)), 1, again(5)),
            (Err(RequestError::TimedOut(ATTEMPT_TIMEOUT)), 10, AfterDelivery::Exhausted),
            (Err(RequestError::TimedOut(ATTEMPT_TIMEOUT)), 11, AfterDelivery::Exhausted),
        ] {
            assert_eq!(next_step(&outcome, number, now, 0.5), expected, "{outcome:?} {number}");
        }
    }
}
