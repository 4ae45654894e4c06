//! Concurrent creates, and concurrent ends of one grab.

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use grabd_domain::grabs::{Class, Status};
use grabd_domain::limits::SYNC_DEADLINE;
use grabd_store::grabs::{Created, FailureSource, LostLeases, NewGrab, ReleaseOutcome};
use tokio_util::task::TaskTracker;

use crate::harness::{NOW, completion, failing, on_both};

on_both! {
    async fn concurrent_creates_use_exactly_the_available_credits(db) {
        let team = db.team(0).await;
        let other = db.team(50).await;
        for credits in [7, 5, 11] {
            db.grant(team, grabd_domain::credits::LotKind::Prepaid, credits, None).await;
        }
        // Another team creates grabs at the same time, and lots are spent while they are held.
        let creators = (0..16).map(|creator| {
            let store = db.store.clone();
            let news: Vec<NewGrab> =
                (0..3).map(|_| db.new_grab(if creator % 4 == 0 { other } else { team }, Class::Sync)).collect();
            let requests: Vec<_> = (0..3).map(|_| db.lease_request(Class::Sync, 1, NOW)).collect();
            TaskTracker::new().spawn(async move {
                let mut outcomes = Vec::new();
                for (new, request) in news.into_iter().zip(requests) {
                    outcomes.push((new.team, store.grabs().create(new).await.unwrap()));
                    for job in store.grabs().lease(request).await.unwrap() {
                        store.grabs().complete(completion(&job)).await.unwrap().unwrap();
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

    async fn concurrent_creates_reach_the_queue_limit_exactly(db) {
        let team = db.team(100).await;
        let creators: Vec<_> = (0..16)
            .map(|_| {
                let store = db.store.clone();
                let news: Vec<NewGrab> =
                    (0..2).map(|_| NewGrab { async_limit: 20, ..db.new_grab(team, Class::Async) }).collect();
                TaskTracker::new().spawn(async move {
                    let mut created = 0;
                    for new in news {
                        let outcome = store.grabs().create(new).await.unwrap();
                        assert!(matches!(outcome, Created::Pending | Created::QueueLimit { limit: 20 }));
                        created += u32::from(outcome == Created::Pending);
                    }
                    created
                })
            })
            .collect();
        let created: u32 = join_all(creators).await.into_iter().map(Result::unwrap).sum();
        assert_eq!(created, 20);
        assert_eq!(db.credits(team).await, (100, 20));
    }

    async fn concurrent_ends_of_a_lease_have_one_winner(db) {
        const ROUNDS: u32 = 30;
        let team = db.team(ROUNDS).await;
        let mut done = 0;
        for round in 0..ROUNDS {
            let leased = db.leased(team).await;
            let overdue = NOW + SYNC_DEADLINE * 2;
            let (by_lease, by_deadline) = (FailureSource::Lease(leased.token), FailureSource::Deadline);
            let complete = async || db.store.grabs().complete(completion(&leased)).await.unwrap().is_some();
            let fail = async |source, now| db.store.grabs().fail(failing(leased.grab, source, now)).await.unwrap().is_some();
            let reclaim = async || {
                let released = db.store.grabs().reclaim_leases(LostLeases::Expired, overdue, 9).await.unwrap();
                released.iter().any(|(_, released)| *released != ReleaseOutcome::Stale)
            };
            let mut ends: [BoxFuture<'_, bool>; 5] = [
                complete().boxed(),
                complete().boxed(),
                fail(by_lease, NOW).boxed(),
                fail(by_deadline, overdue).boxed(),
                reclaim().boxed(),
            ];
            // Each operation is the first one in turn: with a head start, so that it wins, or at the same time as the others.
            let first = round as usize % ends.len();
            ends.rotate_left(first);
            let has_head_start = (round as usize / ends.len()).is_multiple_of(2);
            let [head, others @ ..] = ends;
            let others = join_all(others);
            let (head, others) = if has_head_start { (head.await, others.await) } else { tokio::join!(head, others) };
            assert!(head || !has_head_start, "operation {first} ended no lease although it was alone");
            let mut wins = [head, others[0], others[1], others[2], others[3]];
            wins.rotate_right(first);
            let [complete, again, fail, expire, reclaim] = wins;
            // A reclaimed grab is pending again, so its deadline may still end it.
            let winners = [complete, again, fail, reclaim || expire].iter().filter(|won| **won).count();
            assert_eq!(winners, 1, "{wins:?}");
            let status = db.grab(team, leased.grab).await.status();
            assert_eq!(status == Status::Done, complete || again, "{wins:?}");
            done += u32::from(status == Status::Done);
            db.store.grabs().expire_jobs(overdue, 9).await.unwrap();
        }
        assert_eq!(db.credits(team).await, (ROUNDS - done, 0));
        assert!(done > 0 && done < ROUNDS, "{done}");
    }
}
