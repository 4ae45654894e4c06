//! Creates a grab that is cancelled when its caller disconnects.

use std::sync::Arc;

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::grabs::{Class, Stages};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::cancel::cancel;
use super::create::{self, OpenGrab, Submitted};
use super::placeholder_create;
use super::request::{CreateRequest, CreateResult, ValidCreate, Validated};
use super::watch::Follow;
use crate::error::Error;
use crate::queue::watchers::GrabUpdate;
use crate::service::Core;

/// More states than one grab can have: two and four stages for each of three attempts, and the end.
const MAX_STATES: usize = 32;

/// The states of a grab. Dropping it before the end cancels the grab.
pub struct CaptureStream {
    /// The created grab, or the replayed one.
    pub first: CreateResult,
    /// All later states. The last one is terminal.
    pub rest: mpsc::Receiver<Result<CaptureState, Fault>>,
}

/// A state of a grab that is being captured.
#[derive(Clone, Debug)]
pub struct CaptureState {
    /// The grab, and how it was created.
    pub result: CreateResult,
    /// The stages that its render has reached.
    pub stages: Stages,
}

type StateSender = mpsc::Sender<Result<CaptureState, Fault>>;

/// Creates a grab like a synchronous create, and streams its states.
///
/// A task of the core does the work. It notices when the receiver is dropped, even while the grab is being created.
///
/// # Errors
/// When the grab cannot be created.
#[tracing::instrument(name = "grabs.capture", skip_all)]
pub async fn capture(
    core: &Core,
    caller: Caller,
    request: &CreateRequest,
    follow: Follow,
) -> Result<CaptureStream, Error> {
    let started = Instant::now();
    let validated = create::validate(core, caller, request, Class::Sync).await?;
    let (states, mut rest) = mpsc::channel(MAX_STATES);
    match validated {
        Validated::Repeated(first) => return Ok(CaptureStream { first: *first, rest }),
        Validated::Fresh(create) => {
            let core = core.clone();
            core.clone().spawn(async move {
                if let Err(error) = run(&core, caller, *create, (started, follow), &states).await {
                    let _ = states.try_send(Err(error.into_fault()));
                }
            });
        }
    }
    match rest.recv().await {
        Some(first) => Ok(CaptureStream { first: first?.result, rest }),
        None => Err(Error::state("the task ended without a result")),
    }
}

async fn run(
    core: &Core,
    caller: Caller,
    create: ValidCreate,
    (started, follow): (Instant, Follow),
    sender: &StateSender,
) -> Result<(), Error> {
    let submitted = match caller.environment {
        // Placeholders are complete when they are created, so there is nothing to cancel.
        Environment::Test => Submitted::Repeated(Box::new(placeholder_create::create(core, caller, create).await?)),
        Environment::Live => create::submit(core, caller, create, started).await?,
    };
    let OpenGrab { grab, payer, mut states, deadline, deadline_at } = match submitted {
        Submitted::Open(open) => *open,
        Submitted::Repeated(result) => {
            send(sender, *result, Stages::default());
            return Ok(());
        }
    };
    let id = grab.id;
    let (mut seen, mut seen_stages) = (grab.revision(), Stages::default());
    // The stages of a watched grab are only known together with its state.
    core.queue.watchers.publish(grab.clone());
    send(sender, CreateResult::first(grab), seen_stages);
    loop {
        let GrabUpdate { grab, stages } = tokio::select! {
            // Prefer the end over the cancellation: a grab that has ended cannot be cancelled.
            biased;
            update = states.update_after(seen, follow.after(&seen_stages)) => update,
            () = sender.closed() => {
                cancel(core, id).await;
                return Ok(());
            }
            // The deadline of a synchronous grab.
            () = tokio::time::sleep_until(deadline) => {
                let rendered_for = states.rendered_for();
                let ended = create::time_out(core, caller, payer, (id, deadline_at), rendered_for).await?;
                GrabUpdate { grab: Arc::new(ended), stages: Stages::default() }
            }
        };
        (seen, seen_stages) = (grab.revision(), stages);
        let is_last = grab.status().is_terminal();
        send(sender, CreateResult::first(Arc::unwrap_or_clone(grab)), stages);
        if is_last {
            return Ok(());
        }
    }
}

/// The channel has capacity for all states, so sending fails only when the receiver was dropped.
fn send(states: &StateSender, result: CreateResult, stages: Stages) {
    let _ = states.try_send(Ok(CaptureState { result, stages }));
}
