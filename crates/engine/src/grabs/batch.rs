//! Queues several grabs. Each is a create of its own, in the order of the request, so that limits, credits and
//! idempotency apply as they do to single creates.

use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::{Code, Field};
use tokio::time::{Instant, timeout};

use super::create;
use super::request::{CreateRequest, CreateResult};
use crate::accounts::{RateLimitDecision, own_async_queue, take_request};
use crate::error::Error;
use crate::service::Core;

/// Maximum number of grabs in one batch.
pub const MAX_BATCH: usize = 50;
/// The time after which no further grab is created.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// The longest time for one grab, which only waits for the database and for names to be resolved.
const CREATE_LIMIT: Duration = Duration::from_secs(5);

/// The results of a batch.
#[derive(Debug)]
pub struct Batch {
    /// One for each request, in their order. After a refusal that would meet all further ones, they have the same.
    pub results: Vec<Result<CreateResult, CreateError>>,
    /// Whether such a refusal ended the batch early.
    pub is_stopped: bool,
    /// The state of the rate limit, if requests were counted here.
    pub decision: Option<RateLimitDecision>,
}

/// Why no grab was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// As with a single create.
    Fault(Fault),
    /// The grabs before it took too long.
    OutOfTime,
}

impl CreateError {
    /// Whether it would meet all other grabs of the caller, too.
    pub fn is_for_all(&self) -> bool {
        let Self::Fault(fault) = self else { return true };
        match fault.code() {
            Code::Unauthorized
            | Code::Forbidden
            | Code::RateLimitExceeded
            | Code::QueueLimitExceeded
            | Code::CreditsExhausted
            | Code::InternalError => true,
            Code::BadRequest
            | Code::InvalidViewport
            | Code::SsrfDetected
            | Code::IdempotencyMismatch
            | Code::IdempotencyConflict
            | Code::NotFound
            | Code::RenderBlocked
            | Code::RenderFailed => false,
        }
    }
}

/// Creates one grab after the other; the requests are asynchronous. One request of the caller has been counted; each grab
/// after the first counts as another, but for those that earlier requests with their idempotency keys have created. So a
/// batch that a limit has ended can be repeated after each delay, and gets further each time.
///
/// # Errors
/// [`Fault::BadRequest`] for a batch that is empty or too large, and the refusal of the first grab if it would meet all.
#[tracing::instrument(name = "grabs.create_batch", skip_all, fields(count = requests.len()))]
pub async fn create_batch(core: &Core, caller: Caller, requests: &[CreateRequest]) -> Result<Batch, Error> {
    check_size(requests.len())?;
    let until = Instant::now() + TIME_LIMIT;
    let mut batch = Batch { results: Vec::with_capacity(requests.len()), is_stopped: false, decision: None };
    // Whether a request has been counted that created nothing yet: the first one, or that of a replay.
    let mut is_counted = true;
    for (index, request) in requests.iter().enumerate() {
        let result = match Instant::now() < until {
            // The answer may have an error for each request, so what went wrong inside is logged here.
            true => create_one(core, caller, is_counted, request, &mut batch.decision)
                .await
                .map_err(|error| CreateError::Fault(error.into_fault())),
            false => Err(CreateError::OutOfTime),
        };
        is_counted = result.as_ref().is_ok_and(|created| created.replayed);
        let stops = result.as_ref().err().filter(|refusal| refusal.is_for_all()).cloned();
        batch.results.push(result);
        match stops {
            None => {}
            Some(CreateError::Fault(fault)) if index == 0 => return Err(fault.into()),
            Some(refusal) => {
                batch.is_stopped = true;
                batch.results.resize_with(requests.len(), || Err(refusal.clone()));
                break;
            }
        }
    }
    Ok(batch)
}

fn check_size(count: usize) -> Result<(), Fault> {
    match count {
        1..=MAX_BATCH => Ok(()),
        _ => {
            let allowed = format!("a list of 1 to {MAX_BATCH} captures");
            Err(Fault::BadRequest(Field::new("requests", &count.to_string(), allowed)))
        }
    }
}

async fn create_one(
    core: &Core,
    caller: Caller,
    is_counted: bool,
    request: &CreateRequest,
    decision: &mut Option<RateLimitDecision>,
) -> Result<CreateResult, Error> {
    if !is_counted {
        let counted = take_request(core, caller).await;
        let state = *counted.as_ref().unwrap_or_else(|(_, state)| state);
        *decision = Some(RateLimitDecision { async_queue: own_async_queue(core, caller), ..state });
        counted.map_err(|(fault, _)| fault)?;
    }
    // A create that takes too long is not interrupted: a task of the core does the work.
    let created = timeout(CREATE_LIMIT, create::create(core, caller, request)).await;
    created?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_has_1_to_50_captures() {
        for (count, is_valid) in [(0, false), (1, true), (50, true), (51, false)] {
            assert_eq!(check_size(count).is_ok(), is_valid, "{count}");
        }
        let message = check_size(51).unwrap_err().to_string();
        assert!(message.contains("`requests`") && message.contains("1 to 50") && message.contains("51"), "{message}");
    }

    #[test]
    fn refusals_that_meet_all_grabs_are_those_of_limits_and_of_the_service() {
        for (fault, is_for_all) in [
            (Fault::CreditsExhausted, true),
            (Fault::QueueLimitExceeded { limit: 3 }, true),
            (Fault::RateLimitExceeded { per_minute: 1, retry_after_s: 9 }, true),
            (Fault::InternalError, true),
            (Fault::BadRequest(Field::new("url", "x", "an absolute http(s) URL")), false),
            (Fault::SsrfDetected(Field::new("url", "x", "public")), false),
            (Fault::IdempotencyConflict, false),
        ] {
            assert_eq!(CreateError::Fault(fault.clone()).is_for_all(), is_for_all, "{fault}");
        }
        assert!(CreateError::OutOfTime.is_for_all());
    }
}
