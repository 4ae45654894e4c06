//! The processes of a cluster, and the leases of dead ones.

use std::time::Duration;

use grabd_domain::grabs::Class;
use grabd_domain::ids::{NodeId, SessionId};
use grabd_store::Store;
use grabd_store::grabs::{BACK_OFF, LeasedJob, LostLeases, ReleaseOutcome};
use grabd_store::nodes::{DEAD_AFTER, KEPT, NewNode, NodeLoad};

use crate::harness::{NOW, TestDb, completion, on_both};

async fn join(db: &TestDb) -> NodeId {
    let id = NodeId(db.id());
    let new = NewNode { id, role: "core".into(), version: "1.2.3".into(), address: "one 127.0.0.1:1".into() };
    db.store.nodes().add_node(new).await.unwrap();
    id
}

/// Leases a job for a session of this process.
async fn lease(db: &TestDb, node: NodeId) -> LeasedJob {
    let request = db.lease_request(Class::Sync, 1, NOW);
    db.store.nodes().add_node_session(node, request.session).await.unwrap();
    db.store.grabs().lease(request).await.unwrap().pop().unwrap()
}

/// Moves the last heartbeat of a process into the past.
async fn age(db: &TestDb, node: NodeId, by: Duration) {
    let (id, by) = (db.literal(node.0), by.as_millis());
    let sql = format!("UPDATE node SET heartbeat_at = heartbeat_at - {by} WHERE id = {id}");
    assert_eq!(db.execute_raw(&sql).await.unwrap(), 1);
}

on_both! {
    async fn leases_of_dead_processes_are_released_and_those_of_living_ones_are_not(db) {
        let team = db.team(9).await;
        for _ in 0..4 {
            db.pending(team).await;
        }
        let (living, dying, leaving) = (join(db).await, join(db).await, join(db).await);
        let held = lease(db, living).await;
        let lost = lease(db, dying).await;
        let left = lease(db, leaving).await;
        // The session of a process without a cluster.
        let unknown = db.lease_one().await;
        let reclaim = async || {
            let mut released = db.store.grabs().reclaim_leases(LostLeases::DeadNodes, NOW, 9).await.unwrap();
            released.sort_unstable_by_key(|(grab, _)| *grab);
            released.into_iter().map(|(grab, outcome)| {
                assert_eq!(outcome, ReleaseOutcome::Requeued(1));
                grab
            }).collect::<Vec<_>>()
        };
        assert_eq!(reclaim().await, [unknown.grab]);
        age(db, dying, DEAD_AFTER).await;
        db.store.nodes().remove_node(leaving).await.unwrap();
        let mut expected = [lost.grab, left.grab];
        expected.sort_unstable();
        assert_eq!(reclaim().await, expected);
        assert_eq!(reclaim().await, []);
        // The dead process returns, and cannot finish what was taken over.
        assert_eq!(db.store.grabs().complete(completion(&lost)).await.unwrap(), None);
        assert!(db.store.grabs().complete(completion(&held)).await.unwrap().is_some());
        let again = db.store.grabs().lease(db.lease_request(Class::Sync, 9, NOW + BACK_OFF)).await.unwrap();
        let again = again.iter().find(|job| job.grab == lost.grab).unwrap();
        assert_eq!(again.attempt, 2);
        assert!(db.store.grabs().complete(completion(again)).await.unwrap().is_some());
        assert_eq!(db.credits(team).await, (7, 2));
    }

    async fn dead_process_stays_dead_until_it_joins_again(db) {
        let node = join(db).await;
        let before = db.store.nodes().list_nodes().await.unwrap().remove(0);
        assert!(before.is_alive);
        assert_eq!((before.role.as_str(), before.version.as_str(), before.slots), ("core", "1.2.3", 0));
        age(db, node, DEAD_AFTER / 2).await;
        let load = NodeLoad { idle: 5, open_idle: 4, kept: 2, render_ms: 1200, paid_render_ms: 900 };
        let written = db.store.nodes().write_heartbeat(node, 7, load).await.unwrap().unwrap();
        let after = db.store.nodes().list_nodes().await.unwrap().remove(0);
        assert_eq!((after.heartbeat_at, after.slots, after.started_at), (written, 7, before.started_at));
        assert_eq!((before.load, after.load), (NodeLoad::default(), load));
        assert!(written >= before.heartbeat_at, "{written} {before:?}");
        age(db, node, DEAD_AFTER).await;
        assert!(!db.store.nodes().list_nodes().await.unwrap()[0].is_alive);
        assert_eq!(db.store.nodes().write_heartbeat(node, 7, load).await.unwrap(), None);
        assert!(!db.store.nodes().list_nodes().await.unwrap()[0].is_alive);
        assert_eq!(db.store.nodes().write_heartbeat(NodeId(db.id()), 7, load).await.unwrap(), None, "it never joined");
    }

    async fn dead_processes_are_listed_for_a_day(db) {
        let (old, recent) = (join(db).await, join(db).await);
        let session = SessionId(db.id());
        db.store.nodes().add_node_session(old, session).await.unwrap();
        age(db, old, KEPT).await;
        age(db, recent, KEPT - Duration::from_secs(60)).await;
        assert_eq!(db.store.nodes().purge_nodes().await.unwrap(), 1);
        let left: Vec<_> = db.store.nodes().list_nodes().await.unwrap().into_iter().map(|node| node.id).collect();
        assert_eq!(left, [recent]);
        // Its sessions are deleted with it, so the id is free.
        db.store.nodes().add_node_session(recent, session).await.unwrap();
        db.store.nodes().remove_node_session(session).await.unwrap();
        db.store.nodes().add_node_session(recent, session).await.unwrap();
        assert!(db.store.nodes().add_node_session(old, SessionId(db.id())).await.is_err(), "its process is not a member");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_of_a_cluster_share_the_database_but_not_with_a_service_alone() {
    let db = TestDb::postgres().await;
    let now = Duration::ZERO;
    let second = Store::open(&db.url).await.unwrap();
    let one = db.store.lock_cluster(now).await.unwrap().unwrap();
    let two = second.lock_cluster(now).await.unwrap().unwrap();
    second.lock_service(now).await.unwrap().unwrap_err();
    one.release().await;
    second.lock_service(now).await.unwrap().unwrap_err();
    two.release().await;
    let alone = second.lock_service(now).await.unwrap().unwrap();
    db.store.lock_cluster(now).await.unwrap().unwrap_err();
    alone.release().await;
    second.close().await;
    db.finish().await;
}
