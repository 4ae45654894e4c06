//! Many at once: exactly what there is, is given; exactly one ends a grab.

use futures::future::join_all;
use grabd_domain::grabs::{Class, Status};
use grabd_domain::limits::SYNC_DEADLINE;
use grabd_store::{By, Created, Dead, NewGrab, Released};
use tokio_util::task::TaskTracker;

use crate::harness::{NOW, completion, failing, on_both};

on_both! {
    async fn sixteen_creators_share_exactly_the_credits_there_are(world) {
        let team = world.team(0).await;
        let other = world.team(50).await;
        for credits in [7, 5, 11] {
            world.grant(team, grabd_domain::credits::LotKind::Prepaid, credits, None).await;
        }
        // Another team is busy at the same time, and lots are being spent while they are held.
        let creators = (0..16).map(|creator| {
            let store = world.store.clone();
            let news: Vec<NewGrab> = (0..3)
                .map(|_| world.new_grab(if creator % 4 == 0 { other } else { team }, Class::Sync))
                .collect();
            let asks: Vec<_> = (0..3).map(|_| world.ask(Class::Sync, 1, NOW)).collect();
            TaskTracker::new().spawn(async move {
                let mut outcomes = Vec::new();
                for (new, ask) in news.into_iter().zip(asks) {
                    outcomes.push((new.team, store.create(new).await.unwrap()));
                    for job in store.lease(ask).await.unwrap() {
                        store.complete(completion(&job)).await.unwrap().unwrap();
                    }
                }
                outcomes
            })
        });
        let creators: Vec<_> = creators.collect();
        let mut created = 0;
        let mut exhausted = 0;
        for outcomes in join_all(creators).await {
            for (of, outcome) in outcomes.unwrap() {
                assert!(matches!(outcome, Created::Pending | Created::CreditsExhausted), "{outcome:?}");
                if of == team {
                    created += u32::from(outcome == Created::Pending);
                    exhausted += u32::from(outcome == Created::CreditsExhausted);
                }
            }
        }
        assert_eq!((created, exhausted), (23, 13));
    }

    async fn sixteen_creators_reach_the_queue_limit_exactly(world) {
        let team = world.team(100).await;
        let creators: Vec<_> = (0..16)
            .map(|_| {
                let store = world.store.clone();
                let news: Vec<NewGrab> = (0..2)
                    .map(|_| NewGrab { async_limit_default: 20, ..world.new_grab(team, Class::Async) })
                    .collect();
                TaskTracker::new().spawn(async move {
                    let mut created = 0;
                    for new in news {
                        let outcome = store.create(new).await.unwrap();
                        assert!(matches!(outcome, Created::Pending | Created::QueueLimit { limit: 20 }));
                        created += u32::from(outcome == Created::Pending);
                    }
                    created
                })
            })
            .collect();
        let created: u32 = join_all(creators).await.into_iter().map(Result::unwrap).sum();
        assert_eq!(created, 20);
        assert_eq!(world.credits(team).await, (100, 20));
    }

    async fn of_those_who_end_one_lease_exactly_one_wins(world) {
        const ROUNDS: u32 = 30;
        let team = world.team(ROUNDS).await;
        let mut done = 0;
        for round in 0..ROUNDS {
            let leased = world.leased(team).await;
            let overdue = NOW + SYNC_DEADLINE * 2;
            let (by_lease, by_deadline) = (By::Lease(leased.token), By::Deadline);
            let complete = async { world.store.complete(completion(&leased)).await.unwrap().is_some() };
            let again = async { world.store.complete(completion(&leased)).await.unwrap().is_some() };
            let fail = async { world.store.fail(failing(leased.grab, by_lease, NOW)).await.unwrap().is_some() };
            let expire =
                async { world.store.fail(failing(leased.grab, by_deadline, overdue)).await.unwrap().is_some() };
            let rescue = async {
                let released = world.store.rescue(Dead::Overdue, overdue, 9).await.unwrap();
                released.iter().any(|(_, released)| *released != Released::Stale)
            };
            // Each comes first in some round, so that none always wins.
            let wins = match round % 5 {
                0 => { let r = tokio::join!(complete, again, fail, expire, rescue); [r.0, r.1, r.2, r.3, r.4] }
                1 => { let r = tokio::join!(fail, complete, again, rescue, expire); [r.1, r.2, r.0, r.4, r.3] }
                2 => { let r = tokio::join!(expire, rescue, complete, fail, again); [r.2, r.4, r.3, r.0, r.1] }
                3 => { let r = tokio::join!(rescue, again, fail, complete, expire); [r.3, r.1, r.2, r.4, r.0] }
                _ => { let r = tokio::join!(again, expire, rescue, fail, complete); [r.4, r.0, r.3, r.1, r.2] }
            };
            let [complete, again, fail, expire, rescue] = wins;
            // A rescued grab is open again, so its deadline may still end it: that is not the lease.
            let winners = [complete, again, fail, rescue || expire].iter().filter(|won| **won).count();
            assert_eq!(winners, 1, "{wins:?}");
            let status = world.grab(team, leased.grab).await.status();
            assert_eq!(status == Status::Done, complete || again, "{wins:?}");
            done += u32::from(status == Status::Done);
            world.store.expire_jobs(overdue, 9).await.unwrap();
        }
        assert_eq!(world.credits(team).await, (ROUNDS - done, 0));
        assert!(done > 0 && done < ROUNDS, "{done}");
    }
}
