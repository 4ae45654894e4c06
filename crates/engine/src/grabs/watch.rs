//! Streams the states of one grab.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::GrabId;
use tokio::time::Instant;

use super::get;
use crate::core::Core;
use crate::queue::watchers::Subscription;

/// Maximum duration of one stream; clients resume with another.
const MAX_DURATION: Duration = Duration::from_secs(30 * 60);

/// The stream ended although the grab has not. Resume with the last revision.
#[derive(Debug)]
pub struct WatchInterrupted;

enum Step {
    First(Box<Watch>),
    Next(Box<Watch>),
    End,
}

struct Watch {
    core: Core,
    states: Subscription,
    first: Arc<Grab>,
    seen: u64,
    until: Instant,
}

/// Streams the current state of the grab and each later one until it has ended. Revisions up to `seen` are skipped.
///
/// # Errors
/// [`Fault::NotFound`] when the caller has no such grab.
#[tracing::instrument(name = "grabs.watch", skip_all)]
pub async fn watch(
    core: &Core,
    caller: Caller,
    id: GrabId,
    seen: u64,
) -> Result<impl Stream<Item = Result<Arc<Grab>, WatchInterrupted>> + Send + 'static, Fault> {
    // Subscribe before reading, so that no change is missed.
    let states = core.queue.watchers.subscribe(id);
    let first = Arc::new(get(core, caller, id).await?);
    let watch = Watch { core: core.clone(), states, first, seen, until: Instant::now() + MAX_DURATION };
    Ok(futures::stream::unfold(Step::First(Box::new(watch)), step))
}

async fn step(step: Step) -> Option<(Result<Arc<Grab>, WatchInterrupted>, Step)> {
    let mut watch = match step {
        Step::First(watch) => {
            let grab = Arc::clone(&watch.first);
            if grab.revision() > watch.seen {
                return Some(emit(watch, grab));
            }
            if grab.status().is_terminal() {
                return None;
            }
            watch
        }
        Step::Next(watch) => watch,
        Step::End => return None,
    };
    let grab = tokio::select! {
        grab = watch.states.next_after(watch.seen) => grab,
        () = watch.core.draining.cancelled() => return Some((Err(WatchInterrupted), Step::End)),
        // Time limit of the stream: a client that vanished cannot be detected otherwise.
        () = tokio::time::sleep_until(watch.until) => return Some((Err(WatchInterrupted), Step::End)),
    };
    Some(emit(watch, grab))
}

fn emit(mut watch: Box<Watch>, grab: Arc<Grab>) -> (Result<Arc<Grab>, WatchInterrupted>, Step) {
    watch.seen = grab.revision();
    let next = if grab.status().is_terminal() { Step::End } else { Step::Next(watch) };
    (Ok(grab), next)
}
