//! What the pages about usage and credits read.

use std::time::Duration;

use grabd_domain::Day;
use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::credits::LotKind;
use grabd_domain::grabs::{Class, ImageKey, State};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::{By, EndedOnDay, Grant, NewGrab, NewPlaceholder};

use crate::harness::{NOW, World, completion, facts, failing, on_both, spec};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A lot that payment `pi_1` has bought.
async fn bought(world: &World, team: TeamId, credits: u32) {
    let source_ref = "stripe:pi_1".to_owned();
    let grant = Grant { team, kind: LotKind::Prepaid, credits, expires_at: None, source_ref, now: NOW };
    world.store.grant(grant).await.unwrap();
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
}
