//! T0: test keys.

use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Facts, ImageKey, State};
use grabd_domain::ids::GrabId;
use grabd_store::{Error, NewPlaceholder};

use crate::harness::{NOW, blocked, facts, on_both, spec};

fn done(image: Option<ImageKey>) -> State {
    State::Done { finished_at: NOW, image, size_bytes: 10, execution_ms: 2, facts: facts() }
}

on_both! {
    async fn a_placeholder_is_born_ended_and_costs_nothing(world) {
        let team = world.team(0).await;
        let key = ImageKey::new(7, "png");
        let failed = State::Failed { finished_at: NOW, failure: blocked(), facts: Facts::default() };
        for outcome in [done(Some(key.clone())), failed] {
            let id = GrabId(world.id());
            let new = NewPlaceholder { id, team, spec: spec(), now: NOW, outcome: outcome.clone(), idempotency: None };
            world.store.create_placeholder(new).await.unwrap();
            let grab = world.store.find_grab(team, Environment::Test, id).await.unwrap().unwrap();
            assert_eq!((grab.state, grab.environment, grab.attempts), (outcome, Environment::Test, 0));
            assert_eq!(world.store.find_grab(team, Environment::Live, id).await.unwrap(), None);
        }
        assert_eq!(world.store.find_placeholder(&key).await.unwrap(), Some(spec()));
        assert_eq!(world.store.find_placeholder(&ImageKey::new(8, "png")).await.unwrap(), None);
        assert_eq!(world.store.ledger(team, None, 10).await.unwrap(), []);
    }

    async fn a_live_picture_is_no_placeholder(world) {
        let team = world.team(1).await;
        let leased = world.leased(team).await;
        world.store.complete(crate::harness::completion(&leased)).await.unwrap().unwrap();
        assert_eq!(world.store.find_placeholder(&leased.upload_key).await.unwrap(), None);
    }

    async fn an_open_placeholder_is_refused(world) {
        let team = world.team(0).await;
        for outcome in [State::Pending, State::Processing, done(None)] {
            let new = NewPlaceholder { id: GrabId(world.id()), team, spec: spec(), now: NOW, outcome, idempotency: None };
            let refused = world.store.create_placeholder(new).await;
            assert!(matches!(refused, Err(Error::Inconsistent(_))), "{refused:?}");
        }
    }
}
