//! `grabd admin nodes`.

use grabd_engine::clock::Clock;
use grabd_store::Store;
use grabd_store::nodes::Node;
use serde_json::{Value, json};

use super::output::CommandOutput;

pub(super) async fn run(store: &Store) -> anyhow::Result<CommandOutput> {
    let nodes = store.nodes().list_nodes().await?;
    let now = Clock::system().now();
    let mut lines = vec![format!(
        "{:36}  {:5}  {:5}  {:>5}  {:24}  {:>9}  {:9}  {}",
        "ID", "ROLE", "STATE", "SLOTS", "STARTED", "HEARTBEAT", "VERSION", "ADDRESS"
    )];
    lines.extend(nodes.iter().map(|node| {
        let Node { id, role, started_at, heartbeat_at, version, address, slots, load: _, is_alive } = node;
        let ago = format!("{} s ago", now.since(*heartbeat_at).as_secs());
        let (state, started_at) = (state(*is_alive), started_at.to_string());
        format!("{id}  {role:5}  {state:5}  {slots:>5}  {started_at:24}  {ago:>9}  {version:9}  {address}")
    }));
    if nodes.is_empty() {
        lines = vec!["No process belongs to a cluster: GRABD_CLUSTER__ENABLED=true (docs/FLEET.md).".to_owned()];
    }
    let rows: Vec<Value> = nodes.iter().map(row).collect();
    Ok(CommandOutput::ok(lines.join("\n"), json!({ "data": rows })))
}

fn row(node: &Node) -> Value {
    let Node { id, role, started_at, heartbeat_at, version, address, slots, load: _, is_alive } = node;
    json!({
        "id": id.to_string(), "role": role, "state": state(*is_alive), "slots": slots,
        "started_at": started_at.to_string(), "heartbeat_at": heartbeat_at.to_string(),
        "version": version, "address": address,
    })
}

const fn state(is_alive: bool) -> &'static str {
    if is_alive { "live" } else { "dead" }
}
