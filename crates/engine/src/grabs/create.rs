//! Creates a grab and, for a caller who holds the line, waits for its end.

use std::sync::Arc;

use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::faults::Field;
use grabd_domain::grabs::{Class, Facts, Failure, FailureReason, Grab, State};
use grabd_domain::limits::{ASYNC_DEADLINE, LEASE_MARGIN, SYNC_DEADLINE};
use grabd_domain::target::TargetHost;
use grabd_domain::{Fault, Timestamp};
use grabd_store::{By, Created, Ended, Failing, NewGrab, NewLease, NewRecord};
use tokio::time::Instant;

use super::{idempotency, test_create};
use crate::chance;
use crate::core::{Core, inside};
use crate::failpoints::{self, Step};
use crate::queue::watchers::Subscription;
use crate::queue::{Lease, Reservation, pump, sweep};

/// A create as it came over a wire.
#[derive(Debug)]
pub struct CreateRequest {
    /// What to capture.
    pub capture: CaptureRequest,
    /// How the caller wants to wait.
    pub class: Class,
    /// The caller's key, not judged yet.
    pub idempotency_key: Option<String>,
}

/// What a create is answered.
pub struct Answer {
    /// The grab as it stands.
    pub grab: Grab,
    /// Was this the answer to an earlier request with the same key?
    pub replayed: bool,
}

impl Answer {
    pub(super) const fn first(grab: Grab) -> Self {
        Self { grab, replayed: false }
    }
}

/// Creates a grab for the caller, once for each key. A capture that fails is an `Ok` with a failed grab.
///
/// The work is a task of the core's own: a caller who goes away, or whose deadline passes, cancels nothing.
///
/// # Errors
/// Whatever keeps the grab from being created.
pub async fn create(core: &Core, caller: Caller, request: &CreateRequest) -> Result<Answer, Fault> {
    let began = Instant::now();
    let work = match judge(core, caller, request, request.class).await? {
        Judged::Fresh(work) => work,
        Judged::Repeated(answer) => return Ok(answer),
    };
    let task = {
        let core = core.clone();
        core.clone().spawn(async move {
            match caller.environment {
                Environment::Test => test_create::create(&core, caller, work.spec, work.record).await,
                Environment::Live => live(&core, caller, work, began).await,
            }
        })
    };
    task.await.map_err(inside("grabs.create"))?
}

/// A create that may be carried out, as far as its own words go.
pub(super) struct Work {
    pub(super) spec: CaptureSpec,
    class: Class,
    pub(super) record: Option<NewRecord>,
}

/// What a create comes to before anything is done.
pub(super) enum Judged {
    Fresh(Work),
    /// It was answered before.
    Repeated(Answer),
}

/// Judges a create in the contract's order.
///
/// # Errors
/// The first thing in it that cannot be accepted.
pub(super) async fn judge(core: &Core, caller: Caller, request: &CreateRequest, class: Class) -> Result<Judged, Fault> {
    let spec = CaptureSpec::parse(&request.capture)?;
    let class = match caller.environment {
        Environment::Live => class,
        // Nothing of a test key queues.
        Environment::Test => Class::Sync,
    };
    let record = idempotency::record(request, &spec, class)?;
    // Asked again when the grab is stored; asked here, a repeated request costs no look-up and no slot.
    if let Some(record) = &record {
        let now = core.clock.now();
        let repeat = core.store.find_repeat(caller.team, caller.environment, record, now).await;
        if let Some(repeat) = repeat.map_err(inside("grabs.create"))? {
            return idempotency::answer(repeat).map(Judged::Repeated);
        }
    }
    core.guard.check_public(&spec.url)?;
    Ok(Judged::Fresh(Work { spec, class, record }))
}

async fn live(core: &Core, caller: Caller, work: Work, began: Instant) -> Result<Answer, Fault> {
    let class = work.class;
    let Made { grab, mut states, deadline, deadline_at } = match begin(core, caller, work, began).await? {
        Begun::Made(made) => *made,
        Begun::Repeated(answer) => return Ok(*answer),
    };
    let grab = match class {
        Class::Sync => match tokio::time::timeout_at(deadline, states.end()).await {
            Ok(grab) => Arc::unwrap_or_clone(grab),
            Err(_) => time_out(core, caller, grab.id, deadline_at).await?,
        },
        Class::Async => grab,
    };
    Ok(Answer::first(grab))
}

/// A live grab that was just made, and what it takes to wait for its end.
pub(super) struct Made {
    pub(super) grab: Grab,
    /// Subscribed to before the grab was there, so that no state is missed.
    pub(super) states: Subscription,
    pub(super) deadline: Instant,
    pub(super) deadline_at: Timestamp,
}

/// What storing a live grab came to.
pub(super) enum Begun {
    Made(Box<Made>),
    /// Somebody was faster with the same key.
    Repeated(Box<Answer>),
}

/// Stores a live grab and hands it to a renderer that has a free slot, or to the queue.
///
/// # Errors
/// Whatever keeps the grab from being created.
pub(super) async fn begin(core: &Core, caller: Caller, work: Work, began: Instant) -> Result<Begun, Fault> {
    let Work { spec, class, record } = work;
    admit(core, &spec).await?;
    let now = core.clock.now();
    let id = chance::grab_id(now);
    let (deadline, deadline_at) = match class {
        Class::Sync => {
            let deadline = began + SYNC_DEADLINE;
            (deadline, now + deadline.saturating_duration_since(Instant::now()))
        }
        Class::Async => (began + ASYNC_DEADLINE, now + ASYNC_DEADLINE),
    };
    // Before the commit, so that the end cannot be missed.
    let states = core.watchers.subscribe(id);
    let slot = match class {
        Class::Sync => core.dispatcher.reserve(),
        Class::Async => None,
    };
    let token = chance::lease_token();
    let lease = slot.as_ref().map(|slot| NewLease {
        token,
        until: now + pump::budget(now, deadline_at) + LEASE_MARGIN,
        session: slot.session(),
        random: chance::random(),
    });
    let new = NewGrab {
        id,
        team: caller.team,
        class,
        spec: spec.clone(),
        now,
        deadline_at,
        async_limit_default: core.settings.async_queue,
        lease,
        idempotency: record,
    };
    let created = core.store.create(new).await.map_err(inside("grabs.create"))?;
    failpoints::reach(core, Step::Created, Some((id, token))).await.map_err(inside("grabs.create"))?;
    let (attempts, state) = match (created, slot) {
        (Created::Leased { upload_key }, Some(slot)) => {
            let budget = pump::budget(now, deadline_at);
            start(core, slot, &Lease { grab: id, token, upload_key, spec: spec.clone(), budget, attempt: 1 }).await;
            (1, State::Processing)
        }
        (Created::Leased { .. } | Created::Pending, _) => {
            core.dispatcher.ring();
            (0, State::Pending)
        }
        (Created::Repeated(repeat), _) => {
            return idempotency::answer(repeat).map(|answer| Begun::Repeated(Box::new(answer)));
        }
        (Created::QueueLimit { limit }, _) => return Err(Fault::QueueLimitExceeded { limit }),
        (Created::CreditsExhausted, _) => return Err(Fault::CreditsExhausted),
        (Created::TeamInactive, _) => return Err(Fault::Unauthorized),
    };
    let grab = Grab {
        id,
        team: caller.team,
        environment: caller.environment,
        class,
        spec,
        created_at: now,
        deleted_at: None,
        attempts,
        state,
    };
    Ok(Begun::Made(Box::new(Made { grab, states, deadline, deadline_at })))
}

/// A live grab's host is looked up before anything is stored, so that a private address is refused at once. No answer,
/// or none in time, is left to the render, where the guard decides again on the address it dials.
async fn admit(core: &Core, spec: &CaptureSpec) -> Result<(), Fault> {
    let host = spec.url.host();
    if matches!(host, TargetHost::Address(_)) {
        return Ok(());
    }
    match core.guard.resolve(&host).await {
        Err(refusal) if refusal.is_refused() => {
            tracing::info!(host = %host, reason = refusal.reason(), "a create was refused: its host is not public");
            let allowed = "a URL whose host has public addresses only";
            Err(Fault::SsrfDetected(Field::new("url", &format!("\"{host}\""), allowed)))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

async fn start(core: &Core, slot: Reservation<'_>, lease: &Lease) {
    let held = Some((lease.grab, lease.token));
    if slot.assign(lease).is_err() || failpoints::reach(core, Step::Assigned, held).await.is_err() {
        sweep::release(core, lease.grab, lease.token, "the session was gone").await;
    }
}

/// The caller is told "timed out" only if nobody finished first: whoever deletes the job decides, so a caller who is
/// told so is never billed.
pub(super) async fn time_out(
    core: &Core,
    caller: Caller,
    id: grabd_domain::ids::GrabId,
    deadline_at: Timestamp,
) -> Result<Grab, Fault> {
    let seconds = SYNC_DEADLINE.as_secs();
    let message = format!("The page could not be rendered within {seconds} s, waiting for a browser included.");
    let failing = Failing {
        grab: id,
        by: By::Deadline,
        failure: Failure::new(FailureReason::RenderFailed, message),
        facts: Facts::default(),
        now: core.clock.now().max(deadline_at),
    };
    match core.store.fail(failing).await.map_err(inside("grabs.time_out"))? {
        Some(Ended { grab }) => {
            core.dispatcher.cancel(id);
            super::ended(core, grab.clone());
            Ok(grab)
        }
        None => super::get(core, caller, id).await,
    }
}
