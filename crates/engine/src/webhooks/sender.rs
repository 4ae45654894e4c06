//! Carries the messages out: takes what is due, makes an attempt, records what came of it.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use grabd_domain::Timestamp;
use grabd_domain::ids::EndpointId;
use grabd_domain::webhooks::{ATTEMPT_LIMIT, NoAnswer, RETRY_AFTER_LIMIT, message_id, wait_after};
use grabd_egress::Refusal;
use grabd_store::{Attempt, Attempted, Room, Then};
use http::{HeaderValue, StatusCode};
use tokio::time::{MissedTickBehavior, interval};

use super::message::compose;
use super::post::{Answer, Envelope, post};
use super::secret::Secret;
use super::sign::{seconds, sign};
use crate::chance;
use crate::core::Core;
use crate::outgoing::Unanswered;

/// Attempts under way at the same time, in all and to one endpoint.
const AT_ONCE: usize = 32;
const AT_ONCE_TO_ONE: usize = 4;
/// How often the table is asked although nobody rang.
const POLL: Duration = Duration::from_secs(1);
/// What a lease outlives its attempt by. A sender that dies delays its messages by both.
const LEASE: Duration = Duration::from_secs(ATTEMPT_LIMIT.as_secs() + 15);
/// Every so many polls, what is no longer listed is forgotten, so many at a time.
const TIDY_EVERY: u32 = 60;
const TIDY: u32 = 500;

/// Runs until the core drains or stops, then until the attempts under way have ended, each of which has its limit.
pub(crate) async fn run(core: Core) {
    let mut poll = interval(POLL);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut polls: u32 = 0;
    let mut under_way = FuturesUnordered::new();
    let mut busy: HashMap<EndpointId, usize> = HashMap::new();
    loop {
        tokio::select! {
            () = core.draining.cancelled() => break,
            () = core.stop.cancelled() => break,
            Some(endpoint) = under_way.next(), if !under_way.is_empty() => leave(&mut busy, endpoint),
            () = core.webhooks.bell.notified() => {}
            _ = poll.tick() => {
                polls = polls.wrapping_add(1);
                if polls.is_multiple_of(TIDY_EVERY) {
                    tidy(&core).await;
                }
            }
        }
        for attempt in take(&core, AT_ONCE.saturating_sub(under_way.len()), &busy).await {
            let endpoint = attempt.endpoint;
            *busy.entry(endpoint).or_default() += 1;
            let core = core.clone();
            let made = core.clone().spawn(async move { make(&core, attempt).await });
            under_way.push(async move {
                if let Err(error) = made.await {
                    tracing::error!(%error, endpoint.id = %endpoint, "an attempt at a webhook panicked");
                }
                endpoint
            });
        }
    }
    while under_way.next().await.is_some() {}
}

fn leave(busy: &mut HashMap<EndpointId, usize>, endpoint: EndpointId) {
    if let Some(count) = busy.get_mut(&endpoint) {
        *count -= 1;
        if *count == 0 {
            busy.remove(&endpoint);
        }
    }
}

async fn take(core: &Core, room: usize, busy: &HashMap<EndpointId, usize>) -> Vec<Attempt> {
    if room == 0 {
        return Vec::new();
    }
    let now = core.clock.now();
    let taken = match core.store.has_due(now).await {
        Ok(false) => return Vec::new(),
        Ok(true) => {
            let room = Room { total: room, per_endpoint: AT_ONCE_TO_ONE, busy: busy.clone() };
            let public_url = core.settings.public_url.clone();
            core.store.take_due(now, now + LEASE, room, move |owed| compose(owed, &public_url)).await
        }
        Err(error) => Err(error),
    };
    taken.unwrap_or_else(|error| {
        tracing::warn!(%error, "webhooks that are due could not be read; trying again");
        Vec::new()
    })
}

async fn make(core: &Core, attempt: Attempt) {
    let at = core.clock.now();
    let Attempt { delivery, endpoint, number, url, secrets, body } = attempt;
    // After a rotation the one before may not open any more, when the key file was lost between: the new one suffices.
    let secrets: Vec<Secret> =
        secrets.iter().filter_map(|sealed| Secret::unseal(&core.webhooks.vault, sealed, endpoint).ok()).collect();
    if secrets.is_empty() {
        // The operator's fault, not the endpoint's: it stays due, and must not count against the endpoint.
        tracing::error!(endpoint.id = %endpoint, "a webhook cannot be signed: its secret does not open; trying again");
        return;
    }
    let id = message_id(delivery);
    let signature = sign(&secrets, &id, at, &body);
    let envelope = Envelope { id, seconds: seconds(at), signature, body };
    let outcome = post(&core.guard, &core.outgoing, &url, envelope).await;
    let now = core.clock.now();
    let then = then(&outcome, number, now, chance::fraction());
    core.metrics.webhook_attempted(matches!(then, Then::Delivered));
    match &outcome {
        Ok(answer) => {
            tracing::info!(delivery.id = %delivery, endpoint.id = %endpoint, attempt = number,
                status = answer.status.as_u16(), duration_ms = now.since(at).as_millis(), "a webhook was answered");
        }
        Err(error) => {
            tracing::info!(delivery.id = %delivery, endpoint.id = %endpoint, attempt = number, %error,
                duration_ms = now.since(at).as_millis(), "a webhook was not answered");
        }
    }
    let answer = outcome.as_ref().map(|answer| answer.status.as_u16()).map_err(no_answer);
    let attempted = Attempted { delivery, endpoint, number, at, now, answer, then };
    match core.store.settle(attempted).await {
        Ok(None) => core.webhooks.tell(delivery),
        Ok(Some(why)) => {
            tracing::warn!(endpoint.id = %endpoint, why = why.as_str(), "an endpoint was disabled");
            core.webhooks.tell(delivery);
        }
        Err(error) => {
            tracing::warn!(%error, delivery.id = %delivery, "an attempt could not be recorded; it will be repeated");
        }
    }
}

/// What its owner is told of an attempt without an answer.
fn no_answer(error: &Unanswered) -> NoAnswer {
    match error {
        Unanswered::Connection(refusal) => match refusal {
            Refusal::Address { .. } | Refusal::Name | Refusal::Port => NoAnswer::Refused,
            Refusal::Unresolved => NoAnswer::Unresolved,
            Refusal::ConnectFailed(_) => NoAnswer::Unreachable,
            Refusal::TimedOut => NoAnswer::TimedOut,
        },
        Unanswered::Tls(_) => NoAnswer::Tls,
        Unanswered::Http(_) | Unanswered::Request(_) => NoAnswer::Http,
        Unanswered::TimedOut(_) => NoAnswer::TimedOut,
    }
}

/// What follows an attempt.
fn then(outcome: &Result<Answer, Unanswered>, number: u32, now: Timestamp, chance: f64) -> Then {
    let asked = match outcome {
        Ok(answer) if answer.status.is_success() => return Then::Delivered,
        Ok(answer) if answer.status == StatusCode::GONE => return Then::Gone,
        Ok(Answer { status: StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, retry_after }) => {
            retry_after.as_ref().and_then(|value| delay(value, now))
        }
        Ok(_) | Err(_) => None,
    };
    match wait_after(number, chance) {
        Some(scheduled) => Then::Again(now + scheduled.max(asked.unwrap_or_default())),
        None => Then::Exhausted,
    }
}

/// `Retry-After` is seconds, or a date.
fn delay(value: &HeaderValue, now: Timestamp) -> Option<Duration> {
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

async fn tidy(core: &Core) {
    if let Err(error) = core.store.purge_deliveries(core.clock.now(), TIDY).await {
        tracing::warn!(%error, "old deliveries could not be forgotten; trying again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, retry_after: Option<&'static str>) -> Result<Answer, Unanswered> {
        let retry_after = retry_after.map(HeaderValue::from_static);
        Ok(Answer { status: StatusCode::from_u16(status).unwrap(), retry_after })
    }

    #[test]
    fn what_had_no_answer_is_told_why() {
        let told = |error: Unanswered| no_answer(&error);
        let broken = std::io::Error::other("x");
        for (why, expected) in [
            (told(Unanswered::Connection(Refusal::Name)), NoAnswer::Refused),
            (told(Unanswered::Connection(Refusal::Port)), NoAnswer::Refused),
            (told(Unanswered::Connection(Refusal::Unresolved)), NoAnswer::Unresolved),
            (told(Unanswered::Connection(Refusal::ConnectFailed(broken.kind()))), NoAnswer::Unreachable),
            (told(Unanswered::Connection(Refusal::TimedOut)), NoAnswer::TimedOut),
            (told(Unanswered::Tls(broken)), NoAnswer::Tls),
            (told(Unanswered::TimedOut(ATTEMPT_LIMIT)), NoAnswer::TimedOut),
        ] {
            assert_eq!(why, expected);
        }
    }

    #[test]
    fn what_follows_an_answer() {
        // Sat, 21 Nov 2026 10:00:00 GMT.
        let now = Timestamp::from_ms(1_795_255_200_000);
        let again = |seconds| Then::Again(now + Duration::from_secs(seconds));
        for (outcome, number, expected) in [
            (answer(200, None), 1, Then::Delivered),
            (answer(204, None), 10, Then::Delivered),
            (answer(299, None), 11, Then::Delivered),
            (answer(301, None), 1, again(5)),
            (answer(307, Some("60")), 1, again(5)),
            (answer(400, None), 1, again(5)),
            (answer(404, None), 2, again(300)),
            (answer(410, None), 1, Then::Gone),
            (answer(500, Some("3600")), 1, again(5)),
            (answer(503, Some("60")), 1, again(60)),
            (answer(429, Some("60")), 2, again(300)),
            (answer(429, Some(" 3600 ")), 2, again(3600)),
            (answer(503, Some("Sat, 21 Nov 2026 10:02:00 GMT")), 1, again(120)),
            (answer(503, Some("Sat, 21 Nov 2026 09:00:00 GMT")), 1, again(5)),
            (answer(503, Some("soon")), 1, again(5)),
            (answer(503, Some("-1")), 1, again(5)),
            (answer(429, Some("999999999")), 1, again(24 * 3600)),
            (answer(429, Some("60")), 10, Then::Exhausted),
            (answer(500, None), 9, again(24 * 3600)),
            (Err(Unanswered::TimedOut(ATTEMPT_LIMIT)), 1, again(5)),
            (Err(Unanswered::TimedOut(ATTEMPT_LIMIT)), 10, Then::Exhausted),
            (Err(Unanswered::TimedOut(ATTEMPT_LIMIT)), 11, Then::Exhausted),
        ] {
            assert_eq!(then(&outcome, number, now, 0.5), expected, "{outcome:?} {number}");
        }
    }
}
