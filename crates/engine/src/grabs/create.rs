//! Creates a grab and, for synchronous requests, waits for its end.

use std::sync::Arc;
use std::time::Duration;

use grabd_domain::admission::Payer;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::faults::{Code, ErrorCause};
use grabd_domain::grabs::{Class, Failure, FailureReason, Grab, RenderMetadata, State};
use grabd_domain::ids::GrabId;
use grabd_domain::limits::{ASYNC_DEADLINE, SYNC_DEADLINE};
use grabd_domain::{Fault, Timestamp};
use grabd_store::grabs::{Created, EndedGrab, FailGrab, FailureSource, NewGrab, NewLease};
use tokio::time::Instant;
use tracing::Instrument;

use super::request::{CreateRequest, CreateResult, ValidCreate, Validated};
use super::{cached, compare, idempotency, placeholder_create, upload};
use crate::admission::{self, SlotUse};
use crate::error::Error;
use crate::failpoints::{self, Step};
use crate::queue::watchers::Subscription;
use crate::queue::{self, Lease, Reservation, lease_loop, secrets, sweep};
use crate::service::Core;
use crate::{proxies, random, storage, targets};

/// Creates a grab, once for each idempotency key. A failed capture is an `Ok` with a failed grab.
///
/// A task of the core does the work, so a caller that disconnects or times out cancels nothing.
///
/// # Errors
/// When the grab cannot be created.
#[tracing::instrument(name = "grabs.create", skip_all)]
pub async fn create(core: &Core, caller: Caller, request: &CreateRequest) -> Result<CreateResult, Error> {
    let started = Instant::now();
    let result = match validate(core, caller, request, request.class).await {
        Ok(Validated::Fresh(create)) => perform(core, caller, *create, started).await,
        Ok(Validated::Repeated(result)) => Ok(*result),
        Err(error) => Err(error),
    };
    result.inspect_err(|error| log_refusal(caller, error))
}

/// Logs a create that made no grab, without what the caller sent. What went wrong inside is logged elsewhere.
pub(super) fn log_refusal(caller: Caller, error: &Error) {
    if let Some(fault) = error.as_fault().filter(|fault| fault.code() != Code::InternalError) {
        let field = fault.field().map(|field| field.name);
        tracing::info!(team.id = %caller.team, code = fault.code().as_str(), field, "a create was refused");
    }
}

/// Creates a grab that was validated. Its time began at `started`.
///
/// # Errors
/// When the grab cannot be created.
pub(crate) async fn perform(
    core: &Core,
    caller: Caller,
    create: ValidCreate,
    started: Instant,
) -> Result<CreateResult, Error> {
    let task = {
        let (spawner, core) = (core, core.clone());
        let work = async move {
            match caller.environment {
                Environment::Test => placeholder_create::create(&core, caller, create).await,
                Environment::Live => create_live(&core, caller, create, started).await,
            }
        };
        // Its log lines name the request. What went wrong inside is logged there, since the caller may have gone.
        spawner.spawn(async move { work.await.map_err(Error::into_fault) }.in_current_span())
    };
    Ok(task.await??)
}

/// Validates a create in contract order.
///
/// # Errors
/// The first invalid field.
pub(crate) async fn validate(
    core: &Core,
    caller: Caller,
    request: &CreateRequest,
    class: Class,
) -> Result<Validated, Error> {
    let spec = CaptureSpec { tolerance: request.tolerance.clone(), ..CaptureSpec::parse(&request.capture)? };
    spec.check_class(class)?;
    spec.blocking.check_lists(&core.settings.operations.listed_contents)?;
    let class = match caller.environment {
        Environment::Live => class,
        // Test keys do not use the queue.
        Environment::Test => Class::Sync,
    };
    let only_of = request.only_of(caller);
    let record = idempotency::new_record(&core.vault, caller, request, &spec, class)?;
    // Checked again when the grab is stored. Checked here to save repeated requests the DNS lookup and the slot.
    if let Some(record) = &record {
        let now = core.clock.now();
        let repeat = core.store.grabs().find_repeat(caller.team, caller.environment, record, now).await;
        if let Some(repeat) = repeat? {
            return Ok(Validated::Repeated(Box::new(idempotency::replay(repeat, &spec)?)));
        }
    }
    let named = |fault: Fault| if spec.has_own_document() { fault.renamed("base_url") } else { fault };
    targets::check_page_url(core, &spec.url).map_err(named)?;
    proxies::check(core, caller, &spec).await?;
    upload::check(core, &spec)?;
    compare::check(core, caller, &spec, only_of).await?;
    if let Some(result) = cached::find(core, caller, &spec, only_of, record.as_ref()).await? {
        return Ok(Validated::Repeated(Box::new(result)));
    }
    storage::check_team(core, caller).await?;
    let fingerprint = cached::fingerprint(&spec)?;
    Ok(Validated::Fresh(Box::new(ValidCreate { spec, class, record, fingerprint, is_link: request.is_link })))
}

async fn create_live(
    core: &Core,
    caller: Caller,
    create: ValidCreate,
    started: Instant,
) -> Result<CreateResult, Error> {
    let class = create.class;
    let OpenGrab { grab, payer, mut states, deadline, deadline_at } =
        match submit(core, caller, create, started).await? {
            Submitted::Open(open) => *open,
            Submitted::Repeated(result) => return Ok(*result),
        };
    let grab = match class {
        Class::Sync => match tokio::time::timeout_at(deadline, states.wait_for_end()).await {
            Ok(grab) => Arc::unwrap_or_clone(grab),
            Err(_) => time_out(core, caller, payer, (grab.id, deadline_at), states.rendered_for()).await?,
        },
        Class::Async => grab,
    };
    Ok(CreateResult::first(grab))
}

/// A live grab that was just created, with what is needed to wait for its end.
pub(super) struct OpenGrab {
    pub(super) grab: Grab,
    pub(super) payer: Payer,
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
) -> Result<Submitted, Error> {
    let ValidCreate { spec, class, record, fingerprint, is_link } = create;
    let payer = admission::admit(core, caller, is_link).await?;
    storage::check_disk(core, storage::Creator::live(payer, core.settings.abuse.has_strangers))?;
    // Nothing is requested from the URL of a caller's document.
    if !spec.has_own_document() {
        targets::check_host(core, &spec.url).await?;
    }
    upload::check_host(core, &spec).await?;
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
            let wait = admission::wait_limit(core, payer, deadline_at.since(now));
            let kept = core.queue.admission.kept_percent(now);
            (Some(wait), core.is_member().then(|| core.queue.dispatcher.reserve(payer, kept)).flatten())
        }
        Class::Async => (None, None),
    };
    let proxy = match &slot {
        Some(_) => proxies::route(core, caller.team, &spec).await.map_err(|error| error.into_error(&spec))?,
        // Read when it is leased.
        None => None,
    };
    let ceiling = storage::live_ceiling(core, caller.team, payer).await?;
    let token = random::lease_token();
    let lease = slot.as_ref().map(|slot| NewLease {
        token,
        until: now + lease_loop::budget(now, deadline_at, &spec) + spec.lease_margin(),
        session: slot.session(),
        random: random::random(),
    });
    let new = NewGrab {
        id,
        team: caller.team,
        payer,
        creator: Some(caller.principal),
        class,
        spec: spec.clone(),
        secrets: secrets::seal(core, id, &spec)?,
        now,
        deadline_at,
        async_limit: core.async_queue(caller.team),
        lease,
        wait,
        idempotency: record,
        fingerprint,
        ceiling,
    };
    let created = core.store.grabs().create(new).await?;
    failpoints::reach(core, Step::Created, Some((id, token))).await?;
    let (attempts, state) = match (created, slot) {
        (Created::Leased { upload_key }, Some(slot)) => {
            let budget = lease_loop::budget(now, deadline_at, &spec);
            let spec = spec.clone();
            let lease = Lease { grab: id, token, upload_key, spec, proxy, budget, attempt: 1, payer, since: now };
            core.queue.request_spans.remember(id);
            assign(core, slot, lease).await;
            (1, State::Processing)
        }
        (Created::Leased { .. } | Created::Pending, _) => {
            core.queue.request_spans.remember(id);
            core.queue.dispatcher.notify();
            core.bus.work_queued();
            (0, State::Pending)
        }
        (Created::Repeated(repeat), _) => {
            return Ok(Submitted::Repeated(Box::new(idempotency::replay(repeat, &spec)?)));
        }
        (Created::QueueLimit { limit }, _) => return Err(Fault::QueueLimitExceeded { limit }.into()),
        (Created::WaitTooLong { expected }, _) => return Err(admission::refuse_wait(core, expected).into()),
        (Created::StorageFull, _) => {
            return Err(match ceiling {
                Some(ceiling) => storage::refuse(core, caller.team, ceiling).await,
                None => Error::state("a create without a limit of storage was refused for it"),
            });
        }
        (Created::CreditsExhausted, _) => return Err(Fault::CreditsExhausted.into()),
        (Created::TeamInactive, _) => return Err(Fault::TeamSuspended.into()),
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
    Ok(Submitted::Open(Box::new(OpenGrab { grab, payer, states, deadline, deadline_at })))
}

async fn assign(core: &Core, slot: Reservation<'_>, lease: Lease) {
    let (grab, token) = (lease.grab, lease.token);
    if slot.assign(lease).is_err() || failpoints::reach(core, Step::Assigned, Some((grab, token))).await.is_err() {
        sweep::release(core, grab, token, "the session was gone").await;
    }
}

/// Fails the grab because its deadline has passed, unless it has ended already: deleting the job decides. A caller that
/// receives the timeout is therefore never charged. `rendered_for` is how long another process has been rendering it.
pub(super) async fn time_out(
    core: &Core,
    caller: Caller,
    payer: Payer,
    (id, deadline_at): (GrabId, Timestamp),
    rendered_for: Option<Duration>,
) -> Result<Grab, Error> {
    let seconds = SYNC_DEADLINE.as_secs();
    let message = format!("The page could not be rendered within {seconds} s, waiting for a browser included.");
    let now = core.clock.now();
    let in_slot = core.queue.dispatcher.lease_of(id).map(|lease| lease.used(now)).or(rendered_for);
    let cause = match in_slot {
        Some(in_slot) => Failure::timeout_cause(in_slot, SYNC_DEADLINE),
        None if core.queue.admission.is_out_of_budget(payer, now) => ErrorCause::Request,
        None => ErrorCause::Service,
    };
    let failing = FailGrab {
        grab: id,
        source: FailureSource::Deadline,
        failure: Failure::new(FailureReason::RenderFailed, message).caused_by(cause),
        metadata: RenderMetadata::default(),
        now: now.max(deadline_at),
    };
    match core.store.grabs().fail(failing).await? {
        Some(EndedGrab { grab }) => {
            let lease = core.queue.dispatcher.cancel(id);
            if let Some(lease) = lease {
                admission::slot_used(core, lease, SlotUse::Failed).await;
            }
            queue::record_end(core, grab.clone());
            Ok(grab)
        }
        None => super::get(core, caller, id).await,
    }
}
