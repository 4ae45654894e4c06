//! Creates a grab that lives as long as its caller stays.

use std::sync::Arc;

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::grabs::Class;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::cancel::cancel;
use super::create::{self, Answer, Begun, CreateRequest, Judged, Made, Work};
use super::test_create;
use crate::core::{Core, inside};

/// More than one grab has: three attempts make two states each, and there is an end.
const STATES: usize = 16;

/// A grab under way. Dropping it before the end takes the request back.
pub(crate) struct Capture {
    /// The grab as it was created, or as it was answered before.
    pub(crate) first: Answer,
    /// Every later state; the last one is the end.
    pub(crate) rest: mpsc::Receiver<Result<Answer, Fault>>,
}

type Told = mpsc::Sender<Result<Answer, Fault>>;

/// Creates a grab as a synchronous create does, and tells its states.
///
/// The work is a task of the core's own, which notices that nobody listens any more: also while the grab is created.
///
/// # Errors
/// Whatever keeps the grab from being created.
pub(crate) async fn capture(core: &Core, caller: Caller, request: &CreateRequest) -> Result<Capture, Fault> {
    let began = Instant::now();
    let judged = create::judge(core, caller, request, Class::Sync).await?;
    let (tell, mut rest) = mpsc::channel(STATES);
    match judged {
        Judged::Repeated(first) => return Ok(Capture { first, rest }),
        Judged::Fresh(work) => {
            let core = core.clone();
            core.clone().spawn(async move {
                if let Err(fault) = follow(&core, caller, work, began, &tell).await {
                    say(&tell, Err(fault));
                }
            });
        }
    }
    match rest.recv().await {
        Some(first) => Ok(Capture { first: first?, rest }),
        None => Err(inside("grabs.capture")("its task ended without a word")),
    }
}

async fn follow(core: &Core, caller: Caller, work: Work, began: Instant, tell: &Told) -> Result<(), Fault> {
    let begun = match caller.environment {
        // A placeholder is there at once; nothing can be taken back.
        Environment::Test => {
            Begun::Repeated(Box::new(test_create::create(core, caller, work.spec, work.record).await?))
        }
        Environment::Live => create::begin(core, caller, work, began).await?,
    };
    let Made { grab, mut states, deadline, deadline_at } = match begun {
        Begun::Made(made) => *made,
        Begun::Repeated(answer) => {
            say(tell, Ok(*answer));
            return Ok(());
        }
    };
    let id = grab.id;
    let mut seen = grab.revision();
    say(tell, Ok(Answer::first(grab)));
    loop {
        let grab = tokio::select! {
            // What has ended cannot be taken back.
            biased;
            grab = states.after(seen) => grab,
            () = tell.closed() => {
                cancel(core, id).await;
                return Ok(());
            }
            () = tokio::time::sleep_until(deadline) => {
                Arc::new(create::time_out(core, caller, id, deadline_at).await?)
            }
        };
        seen = grab.revision();
        let over = grab.status().is_terminal();
        say(tell, Ok(Answer::first(Arc::unwrap_or_clone(grab))));
        if over {
            return Ok(());
        }
    }
}

/// There is room for every state, so only a listener who left misses one.
fn say(tell: &Told, state: Result<Answer, Fault>) {
    let _ = tell.try_send(state);
}
