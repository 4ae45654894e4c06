//! Several processes on one PostgreSQL database: which of them live, and what each of them does.
//!
//! Each process writes its row every two seconds. If it could not for [`MEMBER_FOR`], it takes no work and ends its
//! sessions, before the others consider it dead ([`grabd_store::nodes::DEAD_AFTER`]) and take over its leases. A process
//! that was dead joins again under a new id. Nothing here decides who ends a grab: that is the lease's token.

pub(crate) mod membership;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use grabd_domain::ids::NodeId;
use grabd_store::nodes::Node;

use crate::core::Core;

/// For how long after it began to write its row a process may take work. Shorter than the time after which it is dead,
/// by more than the time between two checks.
const MEMBER_FOR: Duration = Duration::from_secs(6);

/// The part of the work that a process of a cluster does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    All,
    /// Public interfaces, without the queue.
    Edge,
    /// The queue and its renderers.
    Core,
}

impl Role {
    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Edge => "edge",
            Self::Core => "core",
        }
    }

    /// Whether the process leases jobs and does the periodic work.
    pub const fn has_queue(self) -> bool {
        matches!(self, Self::All | Self::Core)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How this process belongs to a cluster.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its part of the work.
    pub role: Role,
    /// Where it listens, for operators.
    pub address: String,
}

/// The membership of this process.
pub(crate) struct Cluster {
    pub(crate) settings: Settings,
    state: Mutex<State>,
}

/// The lock is only held for a few moments, hence a std mutex.
struct State {
    node: NodeId,
    /// When the last successful write of the row began.
    written_at: Instant,
    /// Whether the sessions were ended because the row could not be written.
    is_suspended: bool,
    /// The processes at the last write.
    nodes: Vec<Node>,
}

/// This process is not a member of its cluster at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process has lost contact with its cluster")]
pub struct NotMember;

impl Cluster {
    pub(crate) fn new(settings: Settings, node: NodeId, written_at: Instant) -> Self {
        let state = State { node, written_at, is_suspended: false, nodes: Vec::new() };
        Self { settings, state: Mutex::new(state) }
    }

    /// The id of this process, if it may take work now.
    pub(crate) fn member(&self, now: Instant) -> Result<NodeId, NotMember> {
        let state = self.lock();
        match !state.is_suspended && now.saturating_duration_since(state.written_at) < MEMBER_FOR {
            true => Ok(state.node),
            false => Err(NotMember),
        }
    }

    /// Whether this process is the oldest living one with a queue.
    fn is_oldest(&self) -> bool {
        let state = self.lock();
        let has_queue = |node: &&Node| node.is_alive && node.role != Role::Edge.as_str();
        state.nodes.iter().find(has_queue).is_none_or(|oldest| oldest.id == state.node)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_store::nodes::DEAD_AFTER;

    use super::membership::INTERVAL;
    use super::*;
    use crate::random;

    fn node(id: NodeId, role: Role, is_alive: bool) -> Node {
        Node {
            id,
            role: role.to_string(),
            started_at: Timestamp::from_ms(0),
            heartbeat_at: Timestamp::from_ms(0),
            version: String::new(),
            address: String::new(),
            slots: 0,
            is_alive,
        }
    }

    #[test]
    fn process_takes_no_work_long_before_it_is_considered_dead() {
        let start = Instant::now();
        let own = random::node_id(Timestamp::from_ms(0));
        let settings = Settings { role: Role::Core, address: String::new() };
        let cluster = Cluster::new(settings, own, start);
        assert_eq!(cluster.member(start + MEMBER_FOR - Duration::from_millis(1)), Ok(own));
        assert_eq!(cluster.member(start + MEMBER_FOR), Err(NotMember));
        // The sessions end one interval later at the latest.
        assert!(MEMBER_FOR + INTERVAL < DEAD_AFTER);
        cluster.lock().is_suspended = true;
        assert_eq!(cluster.member(start), Err(NotMember));
    }

    #[test]
    fn oldest_living_process_with_a_queue_cleans_up() {
        let [first, own, later] = [1, 2, 3].map(|at| random::node_id(Timestamp::from_ms(at)));
        let cluster = Cluster::new(Settings { role: Role::All, address: String::new() }, own, Instant::now());
        assert!(cluster.is_oldest(), "nothing is known of others");
        let mut of = |role, is_alive| {
            let nodes = vec![node(first, role, is_alive), node(own, Role::All, true), node(later, Role::Core, true)];
            cluster.lock().nodes = nodes;
            cluster.is_oldest()
        };
        assert!(!of(Role::Core, true));
        assert!(of(Role::Core, false));
        assert!(of(Role::Edge, true));
    }
}
