//! What the pages about usage and credits read, and what a refund takes.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Day;
use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::credits::{EntryKind, LotKind};
use grabd_domain::grabs::{Class, ImageKey, State};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::{By, EndedOnDay, Grant, NewGrab, NewPlaceholder, Share, TakeBack, TakenBack};

use crate::harness::{NOW, World, completion, facts, failing, on_both, spec};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A lot that payment `pi_1` has bought.
async fn bought(world: &World, team: TeamId, credits: u32) {
    let source_ref = "stripe:pi_1".to_owned();
    let grant = Grant { team, kind: LotKind::Prepaid, credits, expires_at: None, source_ref, now: NOW };
    world.store.grant(grant).await.unwrap();
}

fn refund(parts: u64, of: u64) -> TakeBack {
    let (source_ref, reference) = ("stripe:pi_1".to_owned(), "stripe:refund:pi_1".to_owned());
    TakeBack { source_ref, share: Share { parts, of }, reference, now: NOW }
}

/// A live grab of a day, done or failed.
async fn ended(world: &World, team: TeamId, days_ago: u32, done: bool) {
    let new = world.new_grab(team, Class::Sync);
    let at = NOW - DAY * days_ago;
    world.store.create(NewGrab { now: at, ..new }).await.unwrap();
    let leased = world.lease_one().await;
    match done {
        true => world.store.complete(completion(&leased)).await.unwrap().unwrap(),
        false => world.store.fail(failing(leased.grab, By::Lease(leased.token), NOW)).await.unwrap().unwrap(),
    };
}

on_both! {
    async fn a_team_sees_what_its_own_lots_have_left_and_where_they_came_from(world) {
        let (team, other) = (world.team(0).await, world.team(7).await);
        bought(world, team, 2).await;
        world.grant(team, LotKind::Subscription, 9, Some(NOW + DAY)).await;
        world.grant(team, LotKind::Subscription, 5, Some(NOW + DAY * 2)).await;
        world.pending(team).await;
        let lots = world.store.holdings(team, 10).await.unwrap();
        let seen: Vec<_> = lots.iter().map(|own| (own.lot.kind, own.lot.remaining, own.lot.held)).collect();
        let (term, prepaid) = (LotKind::Subscription, LotKind::Prepaid);
        assert_eq!(seen, [(term, 9, 1), (term, 5, 0), (prepaid, 2, 0)]);
        assert_eq!((lots[2].source_ref.as_str(), lots[2].granted_at), ("stripe:pi_1", NOW));
        assert_eq!(world.store.holdings(team, 2).await.unwrap(), lots[..2]);
        assert_eq!(world.store.holdings(other, 10).await.unwrap().len(), 1);
        // What is spent is the ledger's alone.
        world.store.take_back(refund(1, 1)).await.unwrap().unwrap();
        assert_eq!(world.store.holdings(team, 10).await.unwrap(), lots[..2]);
    }

    async fn ended_grabs_are_counted_by_day_and_environment(world) {
        let (team, other) = (world.team(20).await, world.team(5).await);
        for (days_ago, done) in [(0, true), (0, true), (0, false), (29, true), (30, true)] {
            ended(world, team, days_ago, done).await;
        }
        ended(world, other, 0, true).await;
        let outcome = State::Done {
            finished_at: NOW,
            image: Some(ImageKey::new(7, "png")),
            size_bytes: 10,
            execution_ms: 2,
            facts: facts(),
        };
        let id = GrabId(world.id());
        let placeholder = NewPlaceholder { id, team, spec: spec(), now: NOW, outcome, idempotency: None };
        world.store.create_placeholder(placeholder).await.unwrap();
        world.pending(team).await;
        let today = Day::of(NOW);
        let mut counted = world.store.count_ended_by_day(team, today.before(29), today).await.unwrap();
        counted.sort_by_key(|row| (row.day, row.environment.as_str(), row.done));
        let row = |days, environment, done, grabs| EndedOnDay { day: today.before(days), environment, done, grabs };
        assert_eq!(
            counted,
            [row(29, Live, true, 1), row(0, Live, false, 1), row(0, Live, true, 2), row(0, Test, true, 1)]
        );
        assert_eq!(world.store.count_ended_by_day(world.team(0).await, today.before(29), today).await.unwrap(), []);
    }

    async fn a_refund_takes_what_is_left_once(world) {
        let team = world.team(0).await;
        bought(world, team, 10).await;
        for _ in 0..3 {
            let leased = world.leased(team).await;
            world.store.complete(completion(&leased)).await.unwrap().unwrap();
        }
        world.pending(team).await;
        let lot = world.lot(team).await.id;
        let halves = join_all((0..8).map(|_| world.store.take_back(refund(1, 2)))).await;
        let taken: u32 = halves.into_iter().map(|half| half.unwrap().unwrap().taken).sum();
        assert_eq!((taken, world.credits(team).await), (5, (2, 1)));
        // The other half: one is left, one is held, and three are spent.
        let taken = world.store.take_back(refund(2, 2)).await.unwrap();
        assert_eq!(taken, Some(TakenBack { lot, taken: 1, missing: 4 }));
        assert_eq!(world.credits(team).await, (1, 1));
        let again = world.store.take_back(refund(2, 2)).await.unwrap();
        assert_eq!(again, Some(TakenBack { lot, taken: 0, missing: 4 }));
        let entries = world.store.ledger(team, None, 10).await.unwrap();
        let adjusted: Vec<_> = entries.iter().filter(|entry| entry.kind == EntryKind::Adjust).collect();
        assert_eq!(adjusted.iter().map(|entry| entry.amount).collect::<Vec<_>>(), [-1, -5]);
        assert!(adjusted.iter().all(|entry| entry.reference.as_deref() == Some("stripe:refund:pi_1")));
    }

    async fn a_refund_of_nothing_here_takes_nothing(world) {
        let team = world.team(3).await;
        assert_eq!(world.store.take_back(refund(1, 1)).await.unwrap(), None);
        assert_eq!(world.credits(team).await, (3, 0));
    }
}
