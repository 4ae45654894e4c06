//! The processes of a cluster. Each writes its row every few seconds; one that has not done so for [`DEAD_AFTER`] is
//! dead, and the others take over its leases. All times are those of the database's clock, which they share.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::ids::{NodeId, SessionId};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{
    ActiveValue::Set, ColumnTrait, Condition, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use crate::areas::Nodes;
use crate::codes;
use crate::database::{Transaction, Tx};
use crate::entities::{job, node, node_session};
use crate::{Error, Kind, Result};

/// A process that has not written its row for this long is dead.
pub const DEAD_AFTER: Duration = Duration::from_secs(10);
/// Rows of dead processes are kept for this long, for operators.
pub const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of processes that are listed.
const LISTED: u64 = 1000;

const SQLITE_NOW: &str = "CAST((julianday('now') - 2440587.5) * 86400000 AS bigint)";
const POSTGRES_NOW: &str = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS bigint)";

/// A process that joins the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// Its id.
    pub id: NodeId,
    /// Its part of the work.
    pub role: String,
    /// Its version of grabd.
    pub version: String,
    /// Where it listens, for operators.
    pub address: String,
}

/// A process of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id. Ids sort by the start of the process.
    pub id: NodeId,
    /// Its part of the work.
    pub role: String,
    /// When it joined.
    pub started_at: Timestamp,
    /// When it wrote its row last.
    pub heartbeat_at: Timestamp,
    /// Its version of grabd.
    pub version: String,
    /// Where it listens.
    pub address: String,
    /// The slots of the renderers that are attached to it.
    pub slots: u32,
    /// How busy its renderers were when it wrote its row last.
    pub load: NodeLoad,
    /// Whether it has written its row within [`DEAD_AFTER`].
    pub is_alive: bool,
}

/// How busy the renderers of a process are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLoad {
    /// Its idle slots.
    pub idle: u32,
    /// Those of them that all accounts may use.
    pub open_idle: u32,
    /// Its slots that are kept for paying accounts.
    pub kept: u32,
    /// Usual duration of a render, in milliseconds.
    pub render_ms: u32,
    /// The same of renders for paying accounts.
    pub paid_render_ms: u32,
}

/// The current time of the database in milliseconds, as an SQL expression.
fn database_now(kind: Kind) -> Expr {
    Expr::cust(match kind {
        Kind::Sqlite => SQLITE_NOW,
        Kind::Postgres => POSTGRES_NOW,
    })
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Leases whose session belongs to no living process.
pub(crate) fn holder_is_dead(kind: Kind) -> Condition {
    let earliest = database_now(kind).sub(milliseconds(DEAD_AFTER));
    let living = Query::select()
        .expr(Expr::value(1))
        .from(node_session::Entity)
        .inner_join(
            node::Entity,
            Expr::col((node::Entity, node::Column::Id)).equals((node_session::Entity, node_session::Column::NodeId)),
        )
        .and_where(
            Expr::col((node_session::Entity, node_session::Column::SessionId))
                .equals((job::Entity, job::Column::SessionId)),
        )
        .and_where(Expr::col((node::Entity, node::Column::HeartbeatAt)).gt(earliest))
        .take();
    Condition::all().add(Expr::exists(living).not())
}

impl Nodes<'_> {
    /// Adds a process to the cluster. Returns the database's time.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn add_node(self, new: NewNode) -> Result<Timestamp> {
        self.store.database.write(AddNode { new, kind: self.store.kind() }).await
    }

    /// Writes that a process is alive, how many slots it has, and how busy they are. Returns the database's time; `None`
    /// if the process is not a member, or was dead already: others may have taken over its leases.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn write_heartbeat(self, node: NodeId, slots: u32, load: NodeLoad) -> Result<Option<Timestamp>> {
        self.store.database.write(Heartbeat { node, slots, load, kind: self.store.kind() }).await
    }

    /// Removes a process that stops, with its sessions.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn remove_node(self, node: NodeId) -> Result<()> {
        self.store.database.write(RemoveNode(node)).await
    }

    /// Notes that a renderer session belongs to a process. Must be done before the session gets a lease.
    ///
    /// # Errors
    /// Database errors, also if the process is not a member.
    pub async fn add_node_session(self, node: NodeId, session: SessionId) -> Result<()> {
        self.store.database.write(AddSession { node, session }).await
    }

    /// Forgets a session whose leases were released.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn remove_node_session(self, session: SessionId) -> Result<()> {
        self.store.database.write(RemoveSession(session)).await
    }

    /// The processes of the cluster, oldest first: living ones, and those that died within [`KEPT`].
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_nodes(self) -> Result<Vec<Node>> {
        let rows = node::Entity::find()
            .expr_as(database_now(self.store.kind()), "now")
            .order_by_asc(node::Column::Id)
            .limit(LISTED)
            .into_model::<Row>()
            .all(self.store.database.reader())
            .await?;
        rows.into_iter().map(Row::read).collect()
    }

    /// Deletes the rows of processes that died longer than [`KEPT`] ago. Returns their number.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_nodes(self) -> Result<u64> {
        self.store.database.write(PurgeNodes(self.store.kind())).await
    }
}

#[derive(FromQueryResult)]
struct Row {
    id: Uuid,
    role: String,
    started_at: i64,
    heartbeat_at: i64,
    version: String,
    address: String,
    slots: i32,
    idle: i32,
    open_idle: i32,
    kept: i32,
    render_ms: i32,
    paid_render_ms: i32,
    now: i64,
}

impl Row {
    fn read(self) -> Result<Node> {
        let Self { id, role, started_at, heartbeat_at, version, address, slots, now, .. } = self;
        Ok(Node {
            id: NodeId(id),
            role,
            started_at: Timestamp::from_ms(started_at),
            heartbeat_at: Timestamp::from_ms(heartbeat_at),
            version,
            address,
            slots: codes::read_count(slots)?,
            load: NodeLoad {
                idle: codes::read_count(self.idle)?,
                open_idle: codes::read_count(self.open_idle)?,
                kept: codes::read_count(self.kept)?,
                render_ms: codes::read_count(self.render_ms)?,
                paid_render_ms: codes::read_count(self.paid_render_ms)?,
            },
            is_alive: heartbeat_at > now - milliseconds(DEAD_AFTER),
        })
    }
}

#[derive(FromQueryResult)]
struct HeartbeatAt {
    heartbeat_at: i64,
}

async fn heartbeat_at(tx: &Tx, node: NodeId) -> Result<Timestamp> {
    let row = node::Entity::find_by_id(node.0)
        .select_only()
        .column(node::Column::HeartbeatAt)
        .into_model::<HeartbeatAt>()
        .one(tx)
        .await?;
    let row = row.ok_or(Error::Inconsistent("a node disappeared in its transaction"))?;
    Ok(Timestamp::from_ms(row.heartbeat_at))
}

struct AddNode {
    new: NewNode,
    kind: Kind,
}

impl Transaction for AddNode {
    type Outcome = Timestamp;

    async fn apply(&self, tx: &Tx) -> Result<Timestamp> {
        let NewNode { id, role, version, address } = &self.new;
        let row = node::ActiveModel {
            id: Set(id.0),
            role: Set(role.clone()),
            started_at: Set(0),
            heartbeat_at: Set(0),
            version: Set(version.clone()),
            address: Set(address.clone()),
            slots: Set(0),
            ..Default::default()
        };
        node::Entity::insert(row).exec_without_returning(tx).await?;
        node::Entity::update_many()
            .col_expr(node::Column::StartedAt, database_now(self.kind))
            .col_expr(node::Column::HeartbeatAt, database_now(self.kind))
            .filter(node::Column::Id.eq(id.0))
            .exec(tx)
            .await?;
        heartbeat_at(tx, *id).await
    }
}

struct Heartbeat {
    node: NodeId,
    slots: u32,
    load: NodeLoad,
    kind: Kind,
}

impl Transaction for Heartbeat {
    type Outcome = Option<Timestamp>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<Timestamp>> {
        let earliest = database_now(self.kind).sub(milliseconds(DEAD_AFTER));
        let NodeLoad { idle, open_idle, kept, render_ms, paid_render_ms } = self.load;
        let value = |number: u32| Expr::value(i32::try_from(number).unwrap_or(i32::MAX));
        let written = node::Entity::update_many()
            .col_expr(node::Column::HeartbeatAt, database_now(self.kind))
            .col_expr(node::Column::Slots, value(self.slots))
            .col_expr(node::Column::Idle, value(idle))
            .col_expr(node::Column::OpenIdle, value(open_idle))
            .col_expr(node::Column::Kept, value(kept))
            .col_expr(node::Column::RenderMs, value(render_ms))
            .col_expr(node::Column::PaidRenderMs, value(paid_render_ms))
            .filter(node::Column::Id.eq(self.node.0))
            // A process that is dead stays so: others may be taking over their leases.
            .filter(Expr::col(node::Column::HeartbeatAt).gt(earliest))
            .exec(tx)
            .await?;
        match written.rows_affected {
            0 => Ok(None),
            _ => heartbeat_at(tx, self.node).await.map(Some),
        }
    }
}

struct RemoveNode(NodeId);

impl Transaction for RemoveNode {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        node::Entity::delete_by_id(self.0.0).exec(tx).await?;
        Ok(())
    }
}

struct AddSession {
    node: NodeId,
    session: SessionId,
}

impl Transaction for AddSession {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let row = node_session::ActiveModel { session_id: Set(self.session.0), node_id: Set(self.node.0) };
        node_session::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(())
    }
}

struct RemoveSession(SessionId);

impl Transaction for RemoveSession {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        node_session::Entity::delete_by_id(self.0.0).exec(tx).await?;
        Ok(())
    }
}

struct PurgeNodes(Kind);

impl Transaction for PurgeNodes {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let earliest = database_now(self.0).sub(milliseconds(KEPT));
        let old = node::Entity::delete_many().filter(Expr::col(node::Column::HeartbeatAt).lte(earliest));
        Ok(old.exec(tx).await?.rows_affected)
    }
}
