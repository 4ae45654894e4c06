//! What the role and the membership of this process allow.

use std::time::{Duration, Instant};

use super::Role;
use crate::service::Core;

/// Maximum wait for the leases of a process that stops: the longest render, and its report.
const FINISH: Duration = Duration::from_secs(30);
/// How often they are counted.
const COUNT_EVERY: Duration = Duration::from_millis(50);

impl Core {
    /// Whether this process has the queue, and does the periodic work.
    pub(crate) fn has_queue(&self) -> bool {
        self.cluster.as_ref().is_none_or(|cluster| cluster.settings.role.has_queue())
    }

    /// Whether this process may take work now. Always, unless it belongs to a cluster.
    pub fn is_member(&self) -> bool {
        self.cluster.as_ref().is_none_or(|cluster| cluster.member(Instant::now()).is_ok())
    }

    /// Whether this process deletes what has expired. One of a cluster suffices; if two do so for a moment, nothing is
    /// done twice, since they lock what they delete.
    pub(crate) fn cleans_up(&self) -> bool {
        self.cluster.as_ref().is_none_or(|cluster| cluster.is_oldest())
    }

    /// Whether a living process of the cluster has renderers, as of the last heartbeat.
    pub fn cluster_has_renderers(&self) -> bool {
        let Some(cluster) = &self.cluster else { return self.has_renderer() };
        cluster.lock().nodes.iter().any(|node| node.is_alive && node.slots > 0)
    }

    /// The role of this process in its cluster. `None` without a cluster.
    pub fn role(&self) -> Option<Role> {
        self.cluster.as_ref().map(|cluster| cluster.settings.role)
    }

    /// Waits until the renderers on other machines have finished, and leases nothing any more. What is left after
    /// half a minute is requeued when their sessions end.
    pub async fn finish_leases(&self) {
        let finished = async {
            while self.queue.dispatcher.close() > 0 {
                // Only at the end of a process, so that no lease has to notify anybody when it ends.
                tokio::time::sleep(COUNT_EVERY).await;
            }
        };
        if tokio::time::timeout(FINISH, finished).await.is_err() {
            tracing::warn!("some renders were still in progress; their grabs are requeued");
        }
    }
}
