//! Status of the service on one page.

use std::time::Duration;

use futures::try_join;
use grabd_domain::Timestamp;
use grabd_images::DiskSpace;
use grabd_store::Kind;
use grabd_store::nodes::Node;
use grabd_store::operator::{DeliveryBacklog, OutcomeCount, Queue};

use super::Operator;
use super::latency::Latency;
use crate::error::Error;
use crate::queue::AttachedRenderer;
use crate::renderers::HEARTBEAT_INTERVAL;
use crate::service::Core;

/// Teams listed with their queued grabs.
pub const QUEUE_TEAMS: u32 = 10;
/// A renderer is late when it has sent no status for this long, which is more than one missed report.
pub const LATE_AFTER: Duration = HEARTBEAT_INTERVAL.saturating_mul(3);
/// Hours in the figures of the last day.
pub const HOURS: u32 = 24;
/// The last day, in the figures.
const DAY: Duration = Duration::from_secs(60 * 60).saturating_mul(HOURS);
/// The latest captures whose latency is measured. More would make the page slow, and the percentiles hardly different.
pub const LATENCY_CAPTURES: u32 = 5000;

/// The figures.
#[derive(Clone, Debug)]
pub struct Overview {
    /// Version of grabd.
    pub version: &'static str,
    /// When this process started.
    pub started_at: Timestamp,
    /// When the figures were read.
    pub now: Timestamp,
    /// Attached renderers.
    pub renderers: Vec<AttachedRenderer>,
    /// The processes of the cluster, oldest first. Empty without a cluster.
    pub nodes: Vec<Node>,
    /// Open grabs.
    pub queue: Queue,
    /// Default limit of open asynchronous grabs per team.
    pub async_queue: u32,
    /// Ended grabs of the last day, by hour and result. Hour 0 is the first of the [`HOURS`].
    pub ended: Vec<OutcomeCount>,
    /// How long the latest live captures of the last day took, at most [`LATENCY_CAPTURES`]. `None` without captures.
    pub latency: Option<Latency>,
    /// Free and total space of the disk of the images. `None` before its first measurement.
    pub disk: Option<DiskSpace>,
    /// Bytes of the stored images of all teams.
    pub image_bytes: u64,
    /// Connections refused by the address guard since this process started, by reason.
    pub refused: Vec<(&'static str, u64)>,
    /// Requests refused by a team's rate limit since this process started.
    pub rate_limited: u64,
    /// Attempts returned by renderers since this process started.
    pub given_back: u64,
    /// Undelivered webhook messages.
    pub undelivered: DeliveryBacklog,
    /// Kind of database.
    pub database: Kind,
    /// Size of the database in bytes.
    pub database_bytes: u64,
}

/// Reads all figures.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "operator.overview", skip_all)]
pub async fn overview(core: &Core, _: &Operator) -> Result<Overview, Error> {
    let now = core.clock.now();
    let store = &core.store;
    let read = async {
        try_join!(
            store.operator().queue(QUEUE_TEAMS),
            store.operator().count_ended(now - DAY),
            store.operator().latencies(now - DAY, LATENCY_CAPTURES),
            store.operator().image_bytes(),
            store.operator().delivery_backlog(),
            store.operator().size_bytes(),
            store.nodes().list_nodes()
        )
    };
    let (queue, ended, latencies, image_bytes, undelivered, database_bytes, nodes) = read.await?;
    let (given_back, rate_limited) = core.metrics.since_start();
    Ok(Overview {
        version: env!("CARGO_PKG_VERSION"),
        started_at: core.started_at,
        now,
        renderers: core.queue.dispatcher.renderers(),
        nodes,
        queue,
        async_queue: core.settings.async_queue,
        ended,
        latency: Latency::of(latencies),
        disk: core.grabs.storage.disk(),
        image_bytes,
        refused: core.guard.refused_counts(),
        rate_limited,
        given_back,
        undelivered,
        database: store.kind(),
        database_bytes,
    })
}
