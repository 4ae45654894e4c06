//! Reads of single grabs at the same time, which share statements.

use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::ids::{GrabId, TeamId};

use crate::harness::{TestDb, on_both};

const LIMIT: Duration = Duration::from_secs(20);

/// Reads all at once, so that the first one is in progress when the others come. Returns whether each was found.
async fn found(db: &TestDb, reads: &[(TeamId, GrabId)]) -> Vec<bool> {
    let reads = reads.iter().map(|(team, id)| db.store.grabs().find_grab(*team, Live, *id));
    join_all(reads).await.into_iter().map(|grab| grab.unwrap().is_some()).collect()
}

on_both! {
    async fn concurrent_reads_find_only_the_grabs_of_their_callers(db) {
        let (team, other) = (db.team(500).await, db.team(5).await);
        let theirs = db.pending(other).await;
        let mut reads = Vec::new();
        for _ in 0..150 {
            reads.push((team, db.pending(team).await));
        }
        let grabs = join_all(reads.iter().map(|(team, id)| db.store.grabs().find_grab(*team, Live, *id))).await;
        for ((_, id), grab) in reads.iter().zip(grabs) {
            assert_eq!(grab.unwrap().unwrap().id, *id);
        }
        let (mine, unknown) = (reads[0].1, GrabId(db.id()));
        let mixed = [(team, mine), (team, theirs), (other, theirs), (other, mine), (team, unknown), (team, mine)];
        assert_eq!(found(db, &mixed).await, [true, false, true, false, false, true]);
        let as_test = join_all([Live, Test, Live].map(|environment| db.store.grabs().find_grab(team, environment, mine))).await;
        let as_test: Vec<bool> = as_test.into_iter().map(|grab| grab.unwrap().is_some()).collect();
        assert_eq!(as_test, [true, false, true]);
    }

    async fn read_whose_caller_has_gone_does_not_hold_the_others(db) {
        let team = db.team(5).await;
        let id = db.pending(team).await;
        let mut abandoned = 0;
        while abandoned < 3 {
            let mut first = Box::pin(db.store.grabs().find_grab(team, Live, id));
            let mut second = Box::pin(db.store.grabs().find_grab(team, Live, id));
            // The database may answer before the first poll returns.
            if first.as_mut().now_or_never().is_some() || second.as_mut().now_or_never().is_some() {
                continue;
            }
            drop(first);
            let found = tokio::time::timeout(LIMIT, second).await.expect("the second read goes on");
            assert_eq!(found.unwrap().unwrap().id, id);
            abandoned += 1;
        }
    }

    async fn unreadable_grab_of_another_caller_does_not_fail_a_read(db) {
        let (team, other) = (db.team(5).await, db.team(5).await);
        let (mine, bad) = (db.pending(team).await, db.pending(other).await);
        let literal = db.literal(bad.0);
        db.execute_raw(&format!("UPDATE grab SET request = '{{' WHERE id = {literal}")).await.unwrap();
        let reads = [(team, mine), (other, bad), (team, mine), (other, bad)];
        let results = join_all(reads.map(|(team, id)| db.store.grabs().find_grab(team, Live, id))).await;
        assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, false]);
    }
}
