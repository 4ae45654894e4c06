//! Fair queueing between teams.

use std::collections::HashMap;
use std::time::Duration;

use futures::{StreamExt, stream};
use grabd_domain::grabs::Class;
use grabd_store::grabs::{Created, NewGrab};

use crate::harness::{NOW, on_both};

const FLOOD: u32 = 1_500;
const SLOTS: usize = 4;

on_both! {
    async fn single_grab_overtakes_another_teams_flood(db) {
        let flooding = db.team(FLOOD).await;
        let flood = (0..FLOOD)
            .map(|_| NewGrab { deadline_at: NOW + Duration::from_secs(3600), ..db.new_grab(flooding, Class::Sync) });
        let created: Vec<_> = stream::iter(flood).map(|new| db.store.grabs().create(new)).buffered(16).collect().await;
        assert!(created.into_iter().all(|created| created.unwrap() == Created::Pending));
        // Lease some jobs so that the head of the queue has moved.
        for _ in 0..10 {
            db.store.grabs().lease(db.lease_request(Class::Sync, SLOTS, NOW)).await.unwrap();
        }
        let others = [db.team(1).await, db.team(1).await];
        let mut waiting = Vec::new();
        for team in others {
            waiting.push(db.pending(team).await);
        }
        let mut dispatched = 0;
        let mut waited = HashMap::new();
        while waited.len() < waiting.len() {
            for job in db.store.grabs().lease(db.lease_request(Class::Sync, SLOTS, NOW)).await.unwrap() {
                if waiting.contains(&job.grab) {
                    waited.insert(job.grab, dispatched);
                }
                dispatched += 1;
            }
            assert!(dispatched < 100, "grabs wait behind the flood");
        }
        let active_teams = 3;
        let longest = waited.values().max().unwrap();
        assert!(*longest <= SLOTS + active_teams, "{longest} jobs were leased first");
    }

    async fn two_floods_share_the_slots_equally(db) {
        let teams = [db.team(60).await, db.team(60).await];
        for team in teams {
            for _ in 0..60 {
                db.pending(team).await;
            }
        }
        let leased = db.store.grabs().lease(db.lease_request(Class::Sync, 40, NOW)).await.unwrap();
        let of_first = leased.iter().filter(|job| job.team == teams[0]).count();
        assert_eq!((leased.len(), of_first), (40, 20));
    }
}
