//! Streams the states of one grab.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::{Grab, Stages};
use grabd_domain::ids::GrabId;
use tokio::time::Instant;

use super::get;
use crate::error::Error;
use crate::queue::watchers::{GrabUpdate, Subscription};
use crate::service::Core;

/// Maximum duration of one stream; clients resume with another.
const MAX_DURATION: Duration = Duration::from_secs(30 * 60);

/// The stream ended although the grab has not. Resume with the last revision.
#[derive(Debug)]
pub struct WatchInterrupted;

/// What a watcher is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Each revision.
    Revisions,
    /// Each revision, and each stage of the render. Stages are lost if nobody watches.
    Stages,
}

impl Follow {
    /// Stages if a caller asks for them.
    pub const fn stages_if(is_asked: bool) -> Self {
        if is_asked { Self::Stages } else { Self::Revisions }
    }

    /// The stages that the watcher has `seen`, if it is told about new ones.
    pub(super) fn after(self, seen: &Stages) -> Option<&Stages> {
        match self {
            Self::Revisions => None,
            Self::Stages => Some(seen),
        }
    }
}

enum Step {
    First(Box<Watch>),
    Next(Box<Watch>),
    End,
}

struct Watch {
    core: Core,
    follow: Follow,
    states: Subscription,
    /// The last revision that was sent, and the stages that were sent with it.
    seen: u64,
    stages: Stages,
    until: Instant,
}

/// The stages that the render of a grab has reached.
pub fn stages(core: &Core, grab: &Grab) -> Stages {
    grab.shown_stages(core.queue.dispatcher.stages_of(grab.id).unwrap_or_default())
}

/// Streams the current state of the grab and each later one until it has ended. Revisions up to `seen` are skipped.
///
/// # Errors
/// [`NotFound`](grabd_domain::Fault::NotFound) when the caller has no such grab.
#[tracing::instrument(name = "grabs.watch", skip_all)]
pub async fn watch(
    core: &Core,
    caller: Caller,
    id: GrabId,
    seen: u64,
    follow: Follow,
) -> Result<impl Stream<Item = Result<GrabUpdate, WatchInterrupted>> + Send + 'static, Error> {
    // Subscribe before reading, so that no change is missed.
    let states = core.queue.watchers.subscribe(id);
    let first = get(core, caller, id).await?;
    let has_ended = first.status().is_terminal() && first.revision() <= seen;
    let later = (!has_ended).then(|| states_from(core, states, first, seen, follow));
    Ok(futures::stream::iter(later).flatten())
}

/// Streams this state of the grab, which was read after the subscription, and each later one until it has ended. Revisions up
/// to `seen` are skipped.
pub(super) fn states_from(
    core: &Core,
    states: Subscription,
    first: Grab,
    seen: u64,
    follow: Follow,
) -> impl Stream<Item = Result<GrabUpdate, WatchInterrupted>> + Send + use<> {
    let id = first.id;
    core.queue.watchers.publish(first);
    if let Some(stages) = core.queue.dispatcher.stages_of(id) {
        core.queue.watchers.publish_stages(id, stages);
    }
    let (core, stages, until) = (core.clone(), Stages::default(), Instant::now() + MAX_DURATION);
    let watch = Watch { core, follow, states, seen, stages, until };
    futures::stream::unfold(Step::First(Box::new(watch)), step)
}

async fn step(step: Step) -> Option<(Result<GrabUpdate, WatchInterrupted>, Step)> {
    let mut watch = match step {
        // The current state is sent even if the stream is about to end.
        Step::First(watch) => match watch.states.update_now(watch.seen, watch.follow.after(&watch.stages)) {
            Some(update) => return Some(emit(watch, update)),
            None => watch,
        },
        Step::Next(watch) => watch,
        Step::End => return None,
    };
    let update = tokio::select! {
        update = watch.states.update_after(watch.seen, watch.follow.after(&watch.stages)) => update,
        () = watch.core.draining.cancelled() => return Some((Err(WatchInterrupted), Step::End)),
        // Time limit of the stream: a client that vanished cannot be detected otherwise.
        () = tokio::time::sleep_until(watch.until) => return Some((Err(WatchInterrupted), Step::End)),
    };
    Some(emit(watch, update))
}

fn emit(mut watch: Box<Watch>, update: GrabUpdate) -> (Result<GrabUpdate, WatchInterrupted>, Step) {
    (watch.seen, watch.stages) = (update.grab.revision(), update.stages);
    let next = if update.grab.status().is_terminal() { Step::End } else { Step::Next(watch) };
    (Ok(update), next)
}
