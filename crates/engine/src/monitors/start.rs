//! Starts runs: claims due monitors, and creates the grabs of their runs.

use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::Code;
use grabd_domain::grabs::Class;
use grabd_domain::idempotency::LIFE;
use grabd_domain::ids::MonitorId;
use grabd_domain::monitor::{MonitorSpec, Run, RunError, RunOutcome};
use grabd_store::Error;
use grabd_store::monitors::{Claimed, RunResult, StartRun};

use super::finish::finish;
use super::secrets;
use crate::failpoints::{self, Step};
use crate::grabs::{self, CreateRequest};
use crate::service::Core;

/// How long a process has for the start of a run. After a crash, another one tries again when this is over.
pub(super) const START_LEASE: Duration = Duration::from_secs(30);
/// How long the start of a run is tried again, if a limit or an outage refuses its grab for now. It counts from the first start,
/// which may be long after the due time.
const START_LIMIT: Duration = Duration::from_secs(10 * 60);

/// What follows from a refused create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// Trying again may help.
    Passing,
    /// The team has no credits.
    NoCredits,
    /// It is refused each time.
    Lasting,
}

impl Refusal {
    const fn of(code: Code) -> Self {
        match code {
            Code::CreditsExhausted => Self::NoCredits,
            Code::RateLimitExceeded | Code::QueueLimitExceeded | Code::IdempotencyConflict | Code::InternalError => {
                Self::Passing
            }
            Code::Unauthorized
            | Code::BadRequest
            | Code::InvalidViewport
            | Code::SsrfDetected
            | Code::IdempotencyMismatch
            | Code::NotFound
            | Code::RenderBlocked
            | Code::RenderFailed
            | Code::Forbidden => Self::Lasting,
        }
    }
}

/// Outcome of claiming a monitor that is due.
pub(super) enum Claim {
    /// Its run is to be started.
    Run(Box<StartRun>),
    /// It has no run to start at this time.
    None,
    /// Another process has claimed it.
    Elsewhere,
}

/// Claims a monitor that is due.
///
/// # Errors
/// Errors of the database as a whole.
pub(super) async fn claim(core: &Core, monitor: MonitorId) -> Result<Claim, Error> {
    let now = core.clock.now();
    match core.store.monitors().claim(monitor, now, now + START_LEASE).await? {
        None => Ok(Claim::Elsewhere),
        Some(Claimed::Run(start)) => {
            failpoints::reach(core, Step::RunClaimed, None).await?;
            Ok(Claim::Run(start))
        }
        Some(Claimed::Missed(run)) => {
            core.metrics.run_ended(RunOutcome::Missed);
            tracing::info!(monitor.id = %monitor, run.id = %run, "a due time of a monitor was missed");
            Ok(Claim::None)
        }
        Some(Claimed::Repeated | Claimed::NoAccess) => Ok(Claim::None),
    }
}

/// Creates the grab of a run and notes it. A repeated start gets the same grab, by its idempotency key. After that has expired,
/// there may be a grab that cannot be found, and no second one is created.
///
/// # Errors
/// Errors of the database as a whole.
pub(super) async fn run(core: &Core, start: &StartRun) -> Result<(), Error> {
    let (run, claimed_at) = (start.run, start.claimed_at);
    if start.is_repeated && core.clock.now() + START_LEASE >= claimed_at + LIFE {
        let message =
            "The service stopped when it started this run, and was not running for so long that it is not repeated.";
        let error = RunError::new(Code::InternalError.as_str(), &message);
        return finish(core, run, RunResult::Failed(error)).await;
    }
    let created = match request(core, start) {
        Some(request) => grabs::create(core, caller(start), &request).await.map_err(crate::Error::into_fault),
        // The key file was replaced without a rotation, which the operator must fix.
        None => Err(Fault::InternalError),
    };
    let now = core.clock.now();
    let fault = match created {
        Ok(created) => {
            failpoints::reach(core, Step::RunCreated, None).await?;
            core.store.monitors().attach_grab(run, created.grab.id, now).await?;
            return Ok(());
        }
        Err(fault) => fault,
    };
    let error = RunError::new(fault.code().as_str(), &fault);
    let result = match Refusal::of(fault.code()) {
        Refusal::NoCredits => RunResult::OutOfCredits(error),
        Refusal::Passing if now < claimed_at + START_LIMIT => {
            tracing::info!(run.id = %run, code = fault.code().as_str(), "a run of a monitor is started later");
            return core.store.monitors().delay_run(run, now + START_LEASE).await;
        }
        Refusal::Passing | Refusal::Lasting => RunResult::Failed(error),
    };
    finish(core, run, result).await
}

/// The create of a run. `None` if the secret options cannot be decrypted.
fn request(core: &Core, start: &StartRun) -> Option<CreateRequest> {
    let StartRun { run: _, due_at, claimed_at: _, compared_to, monitor, secrets, is_repeated: _ } = start;
    let capture = secrets::unseal(&core.vault, monitor.id, monitor.spec.capture.clone(), secrets.as_deref())?;
    let spec = MonitorSpec { capture, ..monitor.spec.clone() };
    Some(CreateRequest {
        capture: spec.run_request(*compared_to),
        tolerance: spec.tolerance(),
        class: Class::Async,
        idempotency_key: Some(Run::idempotency_key(monitor.id, *due_at)),
        may_read: true,
        is_link: false,
    })
}

const fn caller(start: &StartRun) -> Caller {
    let monitor = &start.monitor;
    Caller { team: monitor.team, environment: monitor.environment, principal: monitor.creator }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_and_outages_pass() {
        let passing: Vec<&str> =
            Code::ALL.into_iter().filter(|code| Refusal::of(*code) == Refusal::Passing).map(Code::as_str).collect();
        let expected = ["idempotency_conflict", "rate_limit_exceeded", "queue_limit_exceeded", "internal_error"];
        assert_eq!(passing, expected);
        assert_eq!(Refusal::of(Code::CreditsExhausted), Refusal::NoCredits);
    }
}
