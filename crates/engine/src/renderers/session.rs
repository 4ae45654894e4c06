//! One renderer's session, and the results of its leases.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grabd_domain::domains::DomainRules;
use grabd_domain::grabs::Stage;
use grabd_domain::ids::{GrabId, LeaseToken, SessionId};
use grabd_domain::render::RendererStatus;
use tokio::sync::mpsc;

use crate::admission;
use crate::cluster::NotMember;
use crate::grabs::finish::{self, AttemptResult, OutcomeUnknown};
use crate::queue::{RequestedFiles, SessionMessage, SessionSlots, sweep};
use crate::random;
use crate::service::Core;

/// Disposing of a page takes less than this, unless the page prevents it.
const MIN_OVERRUN: Duration = Duration::from_millis(300);

/// Why a renderer cannot attach now.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// This process may take no work.
    #[error(transparent)]
    NotMember(#[from] NotMember),
    /// The database failed.
    #[error("the session could not be stored")]
    Database(#[from] grabd_store::Error),
}

/// A renderer that is attached.
pub struct RendererSession {
    core: Core,
    id: SessionId,
}

impl RendererSession {
    /// Attaches a renderer with these slots. Returns its session, and the messages for it.
    ///
    /// # Errors
    /// When this process may take no work now. Trying again later may help.
    pub async fn attach(
        core: &Core,
        slots: SessionSlots,
    ) -> Result<(Self, mpsc::Receiver<SessionMessage>), AttachError> {
        let id = random::session_id();
        let node = match &core.cluster {
            Some(cluster) => {
                let node = cluster.member(Instant::now())?;
                core.store.nodes().add_node_session(node, id).await?;
                Some((cluster, node))
            }
            None => None,
        };
        let messages = core.queue.dispatcher.attach(id, slots, core.clock.now());
        if let Some((cluster, node)) = node
            && cluster.member(Instant::now()) != Ok(node)
        {
            // The process lost its membership meanwhile, and the session belongs to its former id.
            core.queue.dispatcher.detach(id);
            return Err(NotMember.into());
        }
        Ok((Self { core: core.clone(), id }, messages))
    }

    /// Its id.
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// Marks slots as idle again.
    pub fn ready(&self, slots: usize) {
        self.core.queue.dispatcher.ready(self.id, slots);
    }

    /// Assigns nothing to the renderer any more, because it stops. It still reports the results of its leases.
    pub fn drain(&self) {
        self.core.queue.dispatcher.drain_session(self.id);
    }

    /// Returns the slots that stayed idle since the last call, if the renderer offers them to other cores too.
    pub fn return_unused(&self) {
        self.core.queue.dispatcher.return_unused(self.id);
    }

    /// Records the condition that the renderer reported.
    pub fn record_heartbeat(&self, condition: RendererStatus) {
        self.core.queue.dispatcher.record_heartbeat(self.id, condition, self.core.clock.now());
    }

    /// Records a stage of an attempt, `ms` milliseconds after its start, and shows it to the watchers of the grab. A stage
    /// that was reported before, or of a lease that this session does not hold, is ignored.
    pub fn record_stage(&self, token: LeaseToken, stage: Stage, ms: u32) {
        if let Some((grab, stages)) = self.core.queue.dispatcher.record_stage(self.id, token, stage, ms) {
            self.core.queue.watchers.publish_stages(grab, stages);
        }
    }

    /// Records that the slot of a lease that has ended is free, after it was in use for this much longer. Ignored unless this
    /// session held the lease, and once for each lease.
    pub async fn record_freed(&self, token: LeaseToken, took: Duration) {
        if let Some(account) = self.core.queue.dispatcher.take_ended(self.id, token)
            && took >= MIN_OVERRUN
        {
            admission::charge(&self.core, account, took).await;
        }
    }

    /// Requeues the grabs of the renderer's session with another core, because that session broke. Ids are random, so
    /// a renderer can name only its own sessions.
    pub async fn requeue_broken(&self, session: SessionId) {
        sweep::session_broke_elsewhere(&self.core, session).await;
    }

    /// Detaches the renderer, and requeues the grabs whose leases it holds.
    pub async fn end(self) {
        sweep::session_lost(&self.core, self.id).await;
    }
}

/// The rules for the domains of documents that are in effect. The same as before if they have not changed.
pub fn domain_rules(core: &Core) -> Arc<DomainRules> {
    core.grabs.domains.current()
}

/// Whether the grab of this lease asks for attachments.
pub fn needs_files(core: &Core, token: LeaseToken) -> bool {
    core.queue.dispatcher.requested_files(token) != RequestedFiles::default()
}

/// Records the result of an attempt, in a task of its own, so that a disconnecting renderer does not interrupt it.
/// Returns `false` and changes nothing when the lease is no longer held.
///
/// # Errors
/// [`OutcomeUnknown`] when the database fails. Retrying is safe.
pub async fn record(
    core: &Core,
    grab: GrabId,
    token: LeaseToken,
    result: AttemptResult,
) -> Result<bool, OutcomeUnknown> {
    let task = core.spawn({
        let core = core.clone();
        async move { finish::finish(&core, grab, token, result).await }
    });
    let recorded = match task.await {
        Ok(recorded) => recorded,
        Err(panic) => Err(OutcomeUnknown::Panicked(panic)),
    };
    recorded.inspect_err(|error| tracing::error!(%error, grab.id = %grab, "a result could not be recorded"))
}

/// Releases the lease of an attempt whose image could not be stored. Returns whether the lease was still held.
pub async fn image_not_stored(core: &Core, grab: GrabId, token: LeaseToken, error: &grabd_images::Error) -> bool {
    finish::not_stored(core, grab, token, error).await
}
