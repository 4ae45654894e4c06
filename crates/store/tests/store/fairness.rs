//! Who floods the queue lines up behind itself.

use std::collections::HashMap;
use std::time::Duration;

use futures::{StreamExt, stream};
use grabd_domain::grabs::Class;
use grabd_store::{Created, NewGrab};

use crate::harness::{NOW, on_both};

const FLOOD: u32 = 1_500;
const SLOTS: usize = 4;

on_both! {
    async fn a_single_grab_passes_another_teams_flood(world) {
        let flooding = world.team(FLOOD).await;
        let flood = (0..FLOOD).map(|_| NewGrab {
            deadline_at: NOW + Duration::from_secs(3600),
            ..world.new_grab(flooding, Class::Sync)
        });
        let created: Vec<_> = stream::iter(flood).map(|new| world.store.create(new)).buffered(16).collect().await;
        assert!(created.into_iter().all(|created| created.unwrap() == Created::Pending));
        // Some of it is already under way, so that the head of the queue has moved.
        for _ in 0..10 {
            world.store.lease(world.ask(Class::Sync, SLOTS, NOW)).await.unwrap();
        }
        let others = [world.team(1).await, world.team(1).await];
        let mut waiting = Vec::new();
        for team in others {
            waiting.push(world.pending(team).await);
        }
        let mut dispatched = 0;
        let mut waited = HashMap::new();
        while waited.len() < waiting.len() {
            for job in world.store.lease(world.ask(Class::Sync, SLOTS, NOW)).await.unwrap() {
                if waiting.contains(&job.grab) {
                    waited.insert(job.grab, dispatched);
                }
                dispatched += 1;
            }
            assert!(dispatched < 100, "they wait behind the flood");
        }
        let active_teams = 3;
        let longest = waited.values().max().unwrap();
        assert!(*longest <= SLOTS + active_teams, "{longest} went first");
    }

    async fn two_floods_share_the_slots(world) {
        let teams = [world.team(60).await, world.team(60).await];
        for team in teams {
            for _ in 0..60 {
                world.pending(team).await;
            }
        }
        let leased = world.store.lease(world.ask(Class::Sync, 40, NOW)).await.unwrap();
        let of_first = leased.iter().filter(|job| job.team == teams[0]).count();
        assert_eq!((leased.len(), of_first), (40, 20));
    }
}
