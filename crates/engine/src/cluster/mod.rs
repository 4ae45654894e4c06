//! Several processes on one PostgreSQL database: which of them live, and what each of them does.
//!
//! Each process writes its row every two seconds. If it could not for six seconds, it takes no work and ends its
//! sessions, before the others consider it dead ([`grabd_store::nodes::DEAD_AFTER`]) and take over its leases. A
//! process that was dead joins again under a new id. Nothing here decides who ends a grab: that is the lease's token.

pub(crate) mod membership;
mod process;

use std::fmt;
use std::time::{Duration, Instant};

use grabd_domain::Timestamp;
use grabd_domain::ids::NodeId;
use grabd_store::nodes::{NewNode, Node, NodeLoad};
use grabd_store::{Error, Store};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::timeout;

use crate::bus::BusSettings;
use crate::random;

/// For how long after it began to write its row a process may take work. Shorter than the time after which it is dead,
/// by more than the time between two checks.
const MEMBER_FOR: Duration = Duration::from_secs(6);

/// How often the row is written.
const INTERVAL: Duration = Duration::from_secs(2);
/// Time limit of a write.
const TIMEOUT: Duration = Duration::from_millis(1500);

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
    /// How hints get to the other processes.
    pub bus: BusSettings,
}

/// The membership of this process.
pub(crate) struct Cluster {
    pub(crate) settings: Settings,
    state: Mutex<State>,
}

/// The lock is only held for a few moments, hence no asynchronous one.
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

impl Settings {
    fn new_node(&self, id: NodeId) -> NewNode {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        NewNode { id, role: self.role.to_string(), version, address: self.address.clone() }
    }
}

impl Cluster {
    /// Joins the cluster.
    ///
    /// # Errors
    /// Database errors only.
    pub(crate) async fn join(store: &Store, settings: Settings, now: Timestamp) -> Result<Self, Error> {
        let (node, began) = (random::node_id(now), Instant::now());
        store.nodes().add_node(settings.new_node(node)).await?;
        tracing::info!(node.id = %node, role = %settings.role, "joined the cluster");
        let cluster = Self::new(settings, node, began);
        cluster.lock().nodes = store.nodes().list_nodes().await?;
        Ok(cluster)
    }

    /// Removes this process from the cluster, so that others need not wait until it is dead.
    pub(crate) async fn leave(&self, store: &Store) {
        let node = self.lock().node;
        match timeout(TIMEOUT, store.nodes().remove_node(node)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "this process could not leave the cluster; it counts as dead soon");
            }
            Err(_) => tracing::warn!("this process could not leave the cluster in time; it counts as dead soon"),
        }
    }

    fn new(settings: Settings, node: NodeId, written_at: Instant) -> Self {
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

    /// The slots of the other living processes, and how busy they are, as of the last heartbeat.
    pub(crate) fn other_loads(&self) -> Vec<(u32, NodeLoad)> {
        let state = self.lock();
        let others = state.nodes.iter().filter(|node| node.is_alive && node.id != state.node);
        others.map(|node| (node.slots, node.load)).collect()
    }

    /// Whether this process is the oldest living one with a queue.
    fn is_oldest(&self) -> bool {
        let state = self.lock();
        let has_queue = |node: &&Node| node.is_alive && node.role != Role::Edge.as_str();
        state.nodes.iter().find(has_queue).is_none_or(|oldest| oldest.id == state.node)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use grabd_store::nodes::DEAD_AFTER;

    use super::*;

    fn node(id: NodeId, role: Role, is_alive: bool) -> Node {
        Node {
            id,
            role: role.to_string(),
            started_at: Timestamp::from_ms(0),
            heartbeat_at: Timestamp::from_ms(0),
            version: String::new(),
            address: String::new(),
            slots: 3,
            load: NodeLoad { idle: 1, ..NodeLoad::default() },
            is_alive,
        }
    }

    #[test]
    fn process_takes_no_work_long_before_it_is_considered_dead() {
        let start = Instant::now();
        let own = random::node_id(Timestamp::from_ms(0));
        let settings = Settings { role: Role::Core, address: String::new(), bus: BusSettings::Database };
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
        let settings = Settings { role: Role::All, address: String::new(), bus: BusSettings::Database };
        let cluster = Cluster::new(settings, own, Instant::now());
        assert!(cluster.is_oldest(), "nothing is known of others");
        let of = |role, is_alive| {
            let nodes = vec![node(first, role, is_alive), node(own, Role::All, true), node(later, Role::Core, true)];
            cluster.lock().nodes = nodes;
            cluster.is_oldest()
        };
        assert!(!of(Role::Core, true));
        assert!(of(Role::Core, false));
        assert!(of(Role::Edge, true));
        // The other living ones.
        let load = NodeLoad { idle: 1, ..NodeLoad::default() };
        assert_eq!(cluster.other_loads(), [(3, load); 2]);
        of(Role::Core, false);
        assert_eq!(cluster.other_loads(), [(3, load)]);
    }
}
