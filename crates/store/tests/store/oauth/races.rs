//! Many at once: a code is worth one pair of tokens, a refresh token as many as the grace gives.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::oauth::MAX_SIBLINGS;
use grabd_store::{Exchanged, NewTicket, Refresh};
use tokio_util::task::TaskTracker;

use super::house::{House, hash};
use crate::harness::{NOW, World, on_both};

const CROWD: u16 = 20;

/// The pairs that were issued, and how often the grant was ended.
fn count(outcomes: &[Exchanged]) -> (usize, usize) {
    let issued = outcomes.iter().filter(|outcome| matches!(outcome, Exchanged::Issued { .. })).count();
    let replayed = outcomes.iter().filter(|outcome| matches!(outcome, Exchanged::Replayed(_))).count();
    (issued, replayed)
}

async fn refresh_at_once(world: &World, refreshes: Vec<Refresh>) -> Vec<Exchanged> {
    let tasks = TaskTracker::new();
    let each = refreshes.into_iter().map(|refresh| {
        let store = world.store.clone();
        tasks.spawn(async move { store.refresh(refresh).await.unwrap() })
    });
    join_all(each.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap).collect()
}

on_both! {
    async fn of_twenty_who_exchange_a_code_one_wins_and_the_second_ends_it(world) {
        let house = House::new(world).await;
        for round in 0..5 {
            house.consent(round).await;
            let tasks = TaskTracker::new();
            let each = (0..CROWD).map(|number| {
                let (store, exchange) = (world.store.clone(), house.exchange(round, 100 + number));
                tasks.spawn(async move { store.exchange(exchange).await.unwrap() })
            });
            let outcomes: Vec<_> =
                join_all(each.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap).collect();
            assert_eq!(count(&outcomes), (1, 1), "{outcomes:?}");
            for number in 0..CROWD {
                assert_eq!(house.opens(100 + number, NOW).await, None, "what the first got is revoked");
            }
        }
    }

    async fn parallel_refreshes_within_the_grace_get_one_pair_and_three_siblings(world) {
        let house = House::new(world).await;
        let most = 1 + u16::try_from(MAX_SIBLINGS).unwrap();
        let grant = house.connect(1).await;
        let refreshes = (0..most).map(|number| house.refreshing(1, 100 + number, NOW)).collect();
        let outcomes = refresh_at_once(world, refreshes).await;
        assert_eq!(count(&outcomes), (usize::from(most), 0), "{outcomes:?}");
        for number in 0..most {
            assert_eq!(house.opens(100 + number, NOW).await, house.caller(grant));
        }

        house.connect(2).await;
        let refreshes = (0..CROWD).map(|number| house.refreshing(2, 200 + number, NOW)).collect();
        let outcomes = refresh_at_once(world, refreshes).await;
        assert_eq!(count(&outcomes), (usize::from(most), 1), "{outcomes:?}");
        for number in 0..CROWD {
            assert_eq!(house.opens(200 + number, NOW).await, None, "too many: everything has ended");
        }
        assert_eq!(house.opens(100, NOW).await, house.caller(grant));
    }

    async fn parallel_refreshes_without_a_grace_get_one_pair_which_the_second_ends(world) {
        let house = House::new(world).await;
        house.connect(1).await;
        let strict = |number| Refresh { grace: Duration::ZERO, ..house.refreshing(1, 100 + number, NOW) };
        let outcomes = refresh_at_once(world, (0..CROWD).map(strict).collect()).await;
        assert_eq!(count(&outcomes), (1, 1), "{outcomes:?}");
        for number in 0..CROWD {
            assert_eq!(house.opens(100 + number, NOW).await, None);
        }
    }

    async fn of_twenty_who_answer_a_question_one_does(world) {
        let house = House::new(world).await;
        let expires_at = NOW + Duration::from_secs(1);
        let ticket = NewTicket { hash: hash(b't', 1), user: house.user, request: "{}".into(), expires_at };
        world.store.keep_ticket(ticket).await.unwrap();
        let each = (0..CROWD).map(|_| world.store.take_ticket(hash(b't', 1), house.user, NOW));
        let taken = join_all(each).await.into_iter().filter(|taken| taken.as_ref().unwrap().is_some()).count();
        assert_eq!(taken, 1);
    }

    async fn a_grant_that_ends_meanwhile_leaves_nothing_behind(world) {
        let house = House::new(world).await;
        for round in 0..10 {
            let grant = house.connect(round).await;
            let (refreshed, ended) = tokio::join!(
                house.refresh(round, 100 + round, NOW),
                world.store.end_grant(house.user, grant),
            );
            assert!(ended.unwrap());
            assert!(matches!(refreshed, Exchanged::Issued { .. } | Exchanged::Invalid(_)), "{refreshed:?}");
            assert_eq!((house.opens(round, NOW).await, house.opens(100 + round, NOW).await), (None, None));
        }
    }
}
