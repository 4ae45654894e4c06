//! Creates a grab and, for synchronous requests, waits for its end.

use std::sync::Arc;

use grabd_domain::admission::Account;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::faults::{ErrorCause, Field};
use grabd_domain::grabs::{Class, Failure, FailureReason, Grab, RenderMetadata, State};
use grabd_domain::idempotency::Fingerprint;
use grabd_domain::limits::{ASYNC_DEADLINE, LEASE_MARGIN, SYNC_DEADLINE};
use grabd_domain::target::TargetHost;
use grabd_domain::{Fault, Timestamp};
use grabd_store::{Created, EndedGrab, FailGrab, FailureSource, NewGrab, NewLease, NewRecord};
use tokio::time::Instant;

use super::{cached, idempotency, secrets, test_create};
use crate::admission::{self, SlotUse};
use crate::core::{Core, internal_error};
use crate::failpoints::{self, Step};
use crate::queue::watchers::Subscription;
use crate::queue::{Lease, Reservation, lease_loop, sweep};
use crate::{random, storage};

/// A request to create a grab, not validated yet.
#[derive(Debug)]
pub struct CreateRequest {
    /// What to capture.
    pub capture: CaptureRequest,
    /// Synchronous or asynchronous.
    pub class: Class,
    /// The idempotency key, not validated yet.
    pub idempotency_key: Option<String>,
}

/// The result of a create.
#[derive(Clone, Debug)]
pub struct CreateResult {
    /// The current state of the grab.
    pub grab: Grab,
    /// Whether an earlier request with the same idempotency key created the grab.
    pub replayed: bool,
    /// Whether a grab that existed before answers the request. Nothing was created.
    pub cached: bool,
}

impl CreateResult {
    pub(super) const fn first(grab: Grab) -> Self {
        Self { grab, replayed: false, cached: false }
    }
}

/// Creates a grab, once for each idempotency key. A failed capture is an `Ok` with a failed grab.
///
/// A task of the core does the work, so a caller that disconnects or times out cancels nothing.
///
/// # Errors
/// When the grab cannot be created.
pub async fn create(core: &Core, caller: Caller, request: &CreateRequest) -> Result<CreateResult, Fault> {
    let started = Instant::now();
    let create = match validate(core, caller, request, request.class).await? {
        Validated::Fresh(create) => *create,
        Validated::Repeated(result) => return Ok(*result),
    };
    let task = {
        let core = core.clone();
        core.clone().spawn(async move {
            match caller.environment {
                Environment::Test => test_create::create(&core, caller, create).await,
                Environment::Live => create_live(&core, caller, create, started).await,
            }
        })
    };
    task.await.map_err(internal_error("grabs.create"))?
}

/// A validated request to create a grab.
pub(super) struct ValidCreate {
    pub(super) spec: CaptureSpec,
    class: Class,
    pub(super) record: Option<NewRecord>,
    /// Fingerprint of what determines the image.
    pub(super) fingerprint: Option<Fingerprint>,
}

/// The result of validating a create.
pub(super) enum Validated {
    Fresh(Box<ValidCreate>),
    /// An earlier request had the same idempotency key, or an earlier grab answers the request.
    Repeated(Box<CreateResult>),
}

/// Validates a create in contract order.
///
/// # Errors
/// The first invalid field.
pub(super) async fn validate(
    core: &Core,
    caller: Caller,
    request: &CreateRequest,
    class: Class,
) -> Result<Validated, Fault> {
    let spec = CaptureSpec::parse(&request.capture)?;
    spec.check_class(class)?;
    spec.blocking.check_lists(&core.settings.operations.listed_contents)?;
    let class = match caller.environment {
        Environment::Live => class,
        // Test keys do not use the queue.
        Environment::Test => Class::Sync,
    };
    let record = idempotency::new_record(core.webhooks.vault(), request, &spec, class)?;
    // Checked again when the grab is stored. Checked here to save repeated requests the DNS lookup and the slot.
    if let Some(record) = &record {
        let now = core.clock.now();
        let repeat = core.store.find_repeat(caller.team, caller.environment, record, now).await;
        if let Some(repeat) = repeat.map_err(internal_error("grabs.create"))? {
            return idempotency::replay(repeat).map(|result| Validated::Repeated(Box::new(result)));
        }
    }
    let named = |fault: Fault| if spec.has_own_document() { fault.renamed("base_url") } else { fault };
    core.guard.check_public(&spec.url).map_err(named)?;
    core.grabs.domains.check(&spec.url).map_err(named)?;
    if let Some(result) = cached::find(core, caller, &spec, record.as_ref()).await? {
        return Ok(Validated::Repeated(Box::new(result)));
    }
    core.grabs.storage.check()?;
    storage::check_team(core, caller).await?;
    let fingerprint = cached::fingerprint(&spec)?;
    Ok(Validated::Fresh(Box::new(ValidCreate { spec, class, record, fingerprint })))
}

async fn create_live(
    core: &Core,
    caller: Caller,
    create: ValidCreate,
    started: Instant,
) -> Result<CreateResult, Fault> {
    let class = create.class;
    let OpenGrab { grab, account, mut states, deadline, deadline_at } =
        match submit(core, caller, create, started).await? {
            Submitted::Open(open) => *open,
            Submitted::Repeated(result) => return Ok(*result),
        };
    let grab = match class {
        Class::Sync => match tokio::time::timeout_at(deadline, states.wait_for_end()).await {
            Ok(grab) => Arc::unwrap_or_clone(grab),
            Err(_) => time_out(core, caller, account, grab.id, deadline_at).await?,
        },
        Class::Async => grab,
    };
    Ok(CreateResult::first(grab))
}

/// A live grab that was just created, with what is needed to wait for its end.
pub(super) struct OpenGrab {
    pub(super) grab: Grab,
    pub(super) account: Account,
    /// Subscribed before the grab was stored, so that no state is missed.
    pub(super) states: Subscription,
    pub(super) deadline: Instant,
    pub(super) deadline_at: Timestamp,
}

/// The result of [`submit`].
pub(super) enum Submitted {
    Open(Box<OpenGrab>),
    /// A concurrent request with the same idempotency key was stored first.
    Repeated(Box<CreateResult>),
}

/// Stores a live grab and assigns it to a renderer with a free slot, or leaves it in the queue.
///
/// # Errors
/// When the grab cannot be created.
pub(super) async fn submit(
    core: &Core,
    caller: Caller,
    create: ValidCreate,
    started: Instant,
) -> Result<Submitted, Fault> {
    let ValidCreate { spec, class, record, fingerprint } = create;
    let account = admission::admit(core, caller).await?;
    check_host(core, &spec).await?;
    let now = core.clock.now();
    let id = random::grab_id(now);
    let (deadline, deadline_at) = match class {
        Class::Sync => {
            let deadline = started + SYNC_DEADLINE;
            (deadline, now + deadline.saturating_duration_since(Instant::now()))
        }
        Class::Async => (started + ASYNC_DEADLINE, now + ASYNC_DEADLINE),
    };
    // Subscribe before the commit, so that the end cannot be missed.
    let states = core.queue.watchers.subscribe(id);
    let (wait, slot) = match class {
        Class::Sync => {
            let wait = admission::wait_limit(core, account, deadline_at.since(now));
            (Some(wait), core.queue.dispatcher.reserve(account, core.queue.admission.kept_percent(now)))
        }
        Class::Async => (None, None),
    };
    let token = random::lease_token();
    let lease = slot.as_ref().map(|slot| NewLease {
        token,
        until: now + lease_loop::budget(now, deadline_at, &spec) + LEASE_MARGIN,
        session: slot.session(),
        random: random::random(),
    });
    let new = NewGrab {
        id,
        team: caller.team,
        account,
        key: caller.principal.key(),
        class,
        spec: spec.clone(),
        secrets: secrets::seal(core, id, &spec)?,
        now,
        deadline_at,
        async_limit_default: core.settings.async_queue,
        lease,
        wait,
        idempotency: record,
        fingerprint,
    };
    let created = core.store.create(new).await.map_err(internal_error("grabs.create"))?;
    failpoints::reach(core, Step::Created, Some((id, token))).await.map_err(internal_error("grabs.create"))?;
    let (attempts, state) = match (created, slot) {
        (Created::Leased { upload_key }, Some(slot)) => {
            let budget = lease_loop::budget(now, deadline_at, &spec);
            let spec = spec.clone();
            let lease = Lease { grab: id, token, upload_key, spec, budget, attempt: 1, account, since: now };
            assign(core, slot, &lease).await;
            (1, State::Processing)
        }
        (Created::Leased { .. } | Created::Pending, _) => {
            core.queue.dispatcher.notify();
            (0, State::Pending)
        }
        (Created::Repeated(repeat), _) => {
            return idempotency::replay(repeat).map(|result| Submitted::Repeated(Box::new(result)));
        }
        (Created::QueueLimit { limit }, _) => return Err(Fault::QueueLimitExceeded { limit }),
        (Created::WaitTooLong { expected }, _) => return Err(admission::refuse_wait(core, expected)),
        (Created::CreditsExhausted, _) => return Err(Fault::CreditsExhausted),
        (Created::TeamInactive, _) => return Err(Fault::TeamSuspended),
    };
    let grab = Grab {
        id,
        team: caller.team,
        environment: caller.environment,
        class,
        spec: spec.without_secrets(),
        created_at: now,
        deleted_at: None,
        attempts,
        state,
    };
    Ok(Submitted::Open(Box::new(OpenGrab { grab, account, states, deadline, deadline_at })))
}

/// Resolves the host of a live grab before anything is stored, to refuse private addresses immediately. When resolution
/// fails or times out, the grab is accepted: the guard checks the dialled address again during the render.
async fn check_host(core: &Core, spec: &CaptureSpec) -> Result<(), Fault> {
    let host = spec.url.host();
    // Nothing is requested from the URL of a caller's document.
    if matches!(host, TargetHost::Address(_)) || spec.has_own_document() {
        return Ok(());
    }
    match core.guard.resolve(&host).await {
        Err(refusal) if refusal.is_refused() => {
            tracing::info!(host = %host, reason = refusal.reason(), "a create was refused: the host is not public");
            let allowed = "a URL whose host has public addresses only";
            Err(Fault::SsrfDetected(Field::new("url", &format!("\"{host}\""), allowed)))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

async fn assign(core: &Core, slot: Reservation<'_>, lease: &Lease) {
    let held = Some((lease.grab, lease.token));
    if slot.assign(lease).is_err() || failpoints::reach(core, Step::Assigned, held).await.is_err() {
        sweep::release(core, lease.grab, lease.token, "the session was gone").await;
    }
}

/// Fails the grab because its deadline has passed, unless it has ended already: deleting the job decides. A caller that
/// receives the timeout is therefore never charged.
pub(super) async fn time_out(
    core: &Core,
    caller: Caller,
    account: Account,
    id: grabd_domain::ids::GrabId,
    deadline_at: Timestamp,
) -> Result<Grab, Fault> {
    let seconds = SYNC_DEADLINE.as_secs();
    let message = format!("The page could not be rendered within {seconds} s, waiting for a browser included.");
    let now = core.clock.now();
    let cause = match core.queue.dispatcher.lease_of(id) {
        Some(lease) => Failure::timeout_cause(lease.used(now), SYNC_DEADLINE),
        None if core.queue.admission.is_out_of_budget(account, now) => ErrorCause::Request,
        None => ErrorCause::Service,
    };
    let failing = FailGrab {
        grab: id,
        source: FailureSource::Deadline,
        failure: Failure::new(FailureReason::RenderFailed, message).caused_by(cause),
        metadata: RenderMetadata::default(),
        now: now.max(deadline_at),
    };
    match core.store.fail(failing).await.map_err(internal_error("grabs.time_out"))? {
        Some(EndedGrab { grab }) => {
            let lease = core.queue.dispatcher.cancel(id);
            if let Some(lease) = lease {
                admission::slot_used(core, lease, SlotUse::Failed).await;
            }
            super::record_end(core, grab.clone());
            Ok(grab)
        }
        None => super::get(core, caller, id).await,
    }
}
