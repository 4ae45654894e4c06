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

/// How long one stream lasts; its reader resumes with another.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The stream was cut although the grab goes on: resume with the last revision.
#[derive(Debug)]
pub struct Cut;

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

/// The grab as it stands, then each later revision, until it has ended. Only revisions after `seen` are shown.
///
/// # Errors
/// [`Fault::NotFound`] before anything is streamed.
pub async fn watch(
    core: &Core,
    caller: Caller,
    id: GrabId,
    seen: u64,
) -> Result<impl Stream<Item = Result<Arc<Grab>, Cut>> + Send + 'static, Fault> {
    // Subscribe, then read, then stream: no change falls between.
    let states = core.watchers.subscribe(id);
    let first = Arc::new(get(core, caller, id).await?);
    let watch = Watch { core: core.clone(), states, first, seen, until: Instant::now() + LONGEST };
    Ok(futures::stream::unfold(Step::First(Box::new(watch)), step))
}

async fn step(step: Step) -> Option<(Result<Arc<Grab>, Cut>, Step)> {
    let mut watch = match step {
        Step::First(watch) => {
            let grab = Arc::clone(&watch.first);
            if grab.revision() > watch.seen {
                return Some(show(watch, grab));
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
        grab = watch.states.after(watch.seen) => grab,
        () = watch.core.draining.cancelled() => return Some((Err(Cut), Step::End)),
        // A reader that is gone without a word shows by nothing but the time.
        () = tokio::time::sleep_until(watch.until) => return Some((Err(Cut), Step::End)),
    };
    Some(show(watch, grab))
}

fn show(mut watch: Box<Watch>, grab: Arc<Grab>) -> (Result<Arc<Grab>, Cut>, Step) {
    watch.seen = grab.revision();
    let next = if grab.status().is_terminal() { Step::End } else { Step::Next(watch) };
    (Ok(grab), next)
}
