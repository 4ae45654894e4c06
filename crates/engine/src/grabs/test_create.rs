//! Creates with test keys: the same checks, a placeholder instead of a render, and nothing spent.

use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::{Class, Facts, Failure, FailureReason, Grab, ImageKey, State};
use grabd_domain::render::{Capture, RenderError, RenderTask, Renderer};
use grabd_store::{NewPlaceholder, NewRecord};

use super::create::Answer;
use super::idempotency;
use crate::chance;
use crate::core::{Core, inside};
use crate::placeholder::{Switch, switch};

/// What `slow.test` takes.
const SLOW: Duration = Duration::from_secs(3);

/// Answers a create with a placeholder, or with the failure that a reserved `.test` name asks for.
pub(crate) async fn create(
    core: &Core,
    caller: Caller,
    spec: CaptureSpec,
    record: Option<NewRecord>,
) -> Result<Answer, Fault> {
    let (failure, takes) = asked_for(core, &spec)?;
    let now = core.clock.now();
    let id = chance::grab_id(now);
    let state = match failure {
        Some(failure) => State::Failed { finished_at: now, failure, facts: Facts::default() },
        None => {
            let image = ImageKey::new(chance::random(), spec.format.as_str());
            let task = RenderTask { id, spec: spec.clone(), budget: SLOW, alone: false };
            let Capture { image: file, facts, execution_ms } =
                core.placeholder.render(task).await.map_err(inside::<RenderError>("grabs.test_create"))?;
            let size_bytes = u64::try_from(file.len()).unwrap_or(0);
            State::Done { finished_at: now + takes, image: Some(image), size_bytes, execution_ms, facts }
        }
    };
    let new =
        NewPlaceholder { id, team: caller.team, spec: spec.clone(), now, outcome: state.clone(), idempotency: record };
    let repeat = core.store.create_placeholder(new).await.map_err(inside("grabs.test_create"))?;
    if let Some(repeat) = repeat {
        return idempotency::answer(repeat);
    }
    // To take three seconds is what `slow.test` is for; everything else is over by now. A caller who goes away ends the
    // wait, and a drain lets it end, as it does with every open request. What is stored was stored before, so that the
    // same key is in flight during it.
    tokio::time::sleep((now + takes).since(core.clock.now())).await;
    let grab = Grab {
        id,
        team: caller.team,
        environment: caller.environment,
        class: Class::Sync,
        spec,
        created_at: now,
        deleted_at: None,
        attempts: 0,
        state,
    };
    core.metrics.ended(&grab);
    Ok(Answer::first(grab))
}

/// What a reserved `.test` name asks for: a failure, or a wait.
///
/// # Errors
/// The refusal that it asks for.
pub(super) fn asked_for(core: &Core, spec: &CaptureSpec) -> Result<(Option<Failure>, Duration), Fault> {
    let failed = |reason, message| Ok((Some(Failure::new(reason, message)), Duration::ZERO));
    match switch(&spec.url.host().to_string()) {
        Some(Switch::Exhausted) => Err(Fault::CreditsExhausted),
        Some(Switch::Busy) => Err(Fault::QueueLimitExceeded { limit: core.settings.async_queue }),
        Some(Switch::Blocked) => {
            failed(FailureReason::RenderBlocked, "The target site blocked the capture: HTTP 403 (a test).")
        }
        Some(Switch::Broken) => failed(FailureReason::RenderFailed, "The page could not be rendered (a test)."),
        Some(Switch::Slow) => Ok((None, SLOW)),
        None => Ok((None, Duration::ZERO)),
    }
}
