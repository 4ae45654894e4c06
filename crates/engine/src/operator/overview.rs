//! How the service is, at one look.

use std::time::Duration;

use futures::try_join;
use grabd_domain::{Fault, Timestamp};
use grabd_store::{EndedAs, Kind, Queue, Undelivered};

use super::Operator;
use crate::core::{Core, inside};
use crate::queue::Attached;
use crate::renderer::TELL_EVERY;

/// Teams that are shown with what they have in the queue.
pub const QUEUE_TEAMS: u32 = 10;
/// A renderer that told nothing for so long has missed more than one turn.
pub const LATE_AFTER: Duration = TELL_EVERY.saturating_mul(3);
/// What counts as the last day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The figures.
#[derive(Clone, Debug)]
pub struct Overview {
    /// Of grabd.
    pub version: &'static str,
    /// Since when this process runs.
    pub started_at: Timestamp,
    /// When the figures were read.
    pub now: Timestamp,
    /// The renderers that are attached.
    pub renderers: Vec<Attached>,
    /// What is open.
    pub queue: Queue,
    /// Asynchronous grabs a team may have open, unless it has a limit of its own.
    pub async_queue: u32,
    /// How the grabs of the last day ended.
    pub ended: Vec<EndedAs>,
    /// What the address guard of this process refused since its start, by reason.
    pub refused: Vec<(&'static str, u64)>,
    /// Requests that a team's rate limit refused in this process since its start.
    pub rate_limited: u64,
    /// Attempts that renderers gave back to this process since its start.
    pub given_back: u64,
    /// Messages that endpoints have not got.
    pub undelivered: Undelivered,
    /// Which database it is.
    pub database: Kind,
    /// How large it is.
    pub database_bytes: u64,
}

/// Reads all figures.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn overview(core: &Core, _: &Operator) -> Result<Overview, Fault> {
    let now = core.clock.now();
    let store = &core.store;
    let read = async {
        try_join!(store.queue(QUEUE_TEAMS), store.count_ended(now - DAY), store.undelivered(), store.size_bytes())
    };
    let (queue, ended, undelivered, database_bytes) = read.await.map_err(inside("operator.overview"))?;
    let (given_back, rate_limited) = core.metrics.since_start();
    Ok(Overview {
        version: env!("CARGO_PKG_VERSION"),
        started_at: core.started_at,
        now,
        renderers: core.dispatcher.attached(),
        queue,
        async_queue: core.settings.async_queue,
        ended,
        refused: core.guard.refused(),
        rate_limited,
        given_back,
        undelivered,
        database: store.kind(),
        database_bytes,
    })
}
