//! Mends what nobody finished: lost leases, passed deadlines, images nobody owns, credits whose term ended.

use std::time::{Duration, Instant};

use grabd_domain::ids::{GrabId, LeaseToken, SessionId};
use grabd_domain::limits::LEASE_MARGIN;
use grabd_store::{Dead, Released};

use crate::core::Core;
use crate::failpoints::{self, Step};
use crate::grabs;

/// How often overdue leases, deadlines and states that another process wrote are looked for. Half of the second within
/// which those who watch are to hear of every change.
const EVERY: Duration = Duration::from_millis(500);
/// Rows mended in one look, so that a look stays short.
const BATCH: u32 = 100;
/// Every so many looks, what is in no hurry: images, terms, callers' keys, sessions, tokens.
const SLOW_EVERY: u32 = 20;
/// Rows of a kind forgotten in one slow look. Many creates may come with a key, so it is a hundred for each
/// second.
const PURGE: u32 = 1000;
/// A wall clock that moves this much against the monotonic one has jumped.
const JUMP: Duration = Duration::from_secs(5);
/// What a released job waits for each attempt it has had.
const BACK_OFF: Duration = Duration::from_millis(200);

/// At start, every leased job belongs to a life that is over: this process alone holds the data directory.
pub(crate) async fn take_over(core: &Core) -> Result<(), grabd_store::Error> {
    let mut count = 0;
    loop {
        let rescued = core.store.rescue(Dead::All, core.clock.now(), BATCH).await?;
        count += rescued.len();
        if rescued.is_empty() {
            break;
        }
        failpoints::reach(core, Step::TakingOver, None).await?;
    }
    if count > 0 {
        tracing::info!(count, "took over grabs that an earlier run left unfinished");
    }
    Ok(())
}

/// Runs until the core stops.
pub(crate) async fn run(core: Core) {
    let mut tick = tokio::time::interval(EVERY);
    let mut looks: u32 = 0;
    let mut clock = JumpWatch::new(&core);
    loop {
        tokio::select! {
            () = core.stop.cancelled() => break,
            _ = tick.tick() => {}
        }
        looks = looks.wrapping_add(1);
        if clock.is_sane(&core)
            && let Err(error) = look(&core, looks.is_multiple_of(SLOW_EVERY)).await
        {
            tracing::warn!(%error, "the sweep failed; trying again");
        }
    }
    if let Err(error) = core.flush_uses().await {
        tracing::warn!(%error, "the last use of some keys and apps was not recorded");
    }
}

async fn look(core: &Core, slow: bool) -> Result<(), grabd_store::Error> {
    let now = core.clock.now();
    for ended in core.store.expire_jobs(now, BATCH).await? {
        core.dispatcher.cancel(ended.id);
        grabs::ended(core, ended);
    }
    rescue(core, Dead::Overdue).await?;
    let watched = core.watchers.watched();
    for chunk in watched.chunks(1000) {
        for grab in core.store.find_grabs(chunk).await? {
            core.watchers.publish(grab);
        }
    }
    core.flush_uses().await?;
    if slow {
        collect_images(core).await?;
        core.store.expire_lots(now, BATCH).await?;
        core.store.purge_keys(now, PURGE).await?;
        core.store.purge_sessions(now, PURGE).await?;
        core.store.purge_links(now, PURGE).await?;
        core.store.purge_oauth(now, PURGE).await?;
    }
    Ok(())
}

/// A session is gone: its grabs go back to the queue at once.
pub(crate) async fn session_lost(core: &Core, session: SessionId) {
    core.dispatcher.detach(session);
    if let Err(error) = rescue(core, Dead::Session(session)).await {
        tracing::warn!(%error, "the grabs of a lost session will be rescued when their leases end");
    }
}

async fn rescue(core: &Core, dead: Dead) -> Result<(), grabd_store::Error> {
    for (grab, released) in core.store.rescue(dead, core.clock.now(), BATCH).await? {
        after_release(core, grab, released);
    }
    Ok(())
}

/// Gives an assignment back that nobody carries out.
pub(crate) async fn release(core: &Core, grab: GrabId, token: LeaseToken, cause: &str) -> bool {
    core.dispatcher.forget(token);
    let released = match failpoints::reach(core, Step::Releasing, Some((grab, token))).await {
        Ok(()) => core.store.release(grab, token, core.clock.now()).await,
        Err(error) => Err(error),
    };
    match released {
        Ok(released) => {
            tracing::warn!(grab.id = %grab, cause, ?released, "a render was given back");
            core.metrics.given_back();
            let held = !matches!(released, Released::Stale);
            after_release(core, grab, released);
            held
        }
        Err(error) => {
            tracing::warn!(%error, grab.id = %grab, "a render could not be given back; its lease ends by itself");
            false
        }
    }
}

fn after_release(core: &Core, grab: GrabId, released: Released) {
    match released {
        Released::Again(attempts) => {
            let core = core.clone();
            let wait = BACK_OFF * attempts;
            core.clone().spawn(async move {
                tokio::select! {
                    () = core.stop.cancelled() => {}
                    // Its row says from when on it may be leased again, and becoming due is no event.
                    () = tokio::time::sleep(wait) => core.dispatcher.ring(),
                }
            });
        }
        Released::GivenUp(ended) => {
            tracing::error!(grab.id = %grab, "a grab was given up after its last attempt");
            grabs::ended(core, ended);
        }
        Released::Stale => {}
    }
}

async fn collect_images(core: &Core) -> Result<(), grabd_store::Error> {
    for key in core.store.due_images(core.clock.now(), BATCH).await? {
        match core.images.delete(&key).await {
            Ok(()) => core.store.forget_image(&key).await?,
            Err(error) => tracing::warn!(%error, "an image could not be deleted; trying again"),
        }
    }
    Ok(())
}

/// Compares the wall clock with the monotonic one. After a jump, nothing is called overdue for the length of a lease's
/// margin: what looks late may only be the clock.
struct JumpWatch {
    wall: grabd_domain::Timestamp,
    monotonic: Instant,
    distrust_until: Option<Instant>,
}

impl JumpWatch {
    fn new(core: &Core) -> Self {
        Self { wall: core.clock.now(), monotonic: Instant::now(), distrust_until: None }
    }

    fn is_sane(&mut self, core: &Core) -> bool {
        let (wall, monotonic) = (core.clock.now(), Instant::now());
        let wall_ms = wall.as_ms().saturating_sub(self.wall.as_ms());
        let real_ms = i64::try_from((monotonic - self.monotonic).as_millis()).unwrap_or(i64::MAX);
        (self.wall, self.monotonic) = (wall, monotonic);
        if wall_ms.abs_diff(real_ms) > u64::try_from(JUMP.as_millis()).unwrap_or(u64::MAX) {
            tracing::warn!(by_ms = wall_ms - real_ms, "the wall clock jumped; deadlines wait for one lease");
            self.distrust_until = Some(monotonic + LEASE_MARGIN);
        }
        self.distrust_until.is_none_or(|until| monotonic >= until)
    }
}
