//! Placeholders of test keys.

use futures::future::join_all;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{ImageKey, RenderMetadata, State};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::Error;
use grabd_store::grabs::{NewPlaceholder, PlaceholderOutcome, ShownImage};

use crate::harness::{NOW, blocked, facts, on_both, spec};

pub(crate) fn done(image: Option<ImageKey>) -> State {
    State::Done { finished_at: NOW, image, size_bytes: 10, execution_ms: 2, metadata: facts() }
}

pub(crate) fn placeholder(id: GrabId, team: TeamId, outcome: State) -> NewPlaceholder {
    NewPlaceholder {
        id,
        team,
        creator: None,
        spec: spec(),
        now: NOW,
        outcome,
        idempotency: None,
        fingerprint: None,
        ceiling: None,
    }
}

on_both! {
    async fn placeholder_is_created_ended_and_spends_nothing(db) {
        let team = db.team(0).await;
        let key = ImageKey::new(7, "png");
        let failed = State::Failed { finished_at: NOW, failure: blocked(), metadata: RenderMetadata::default() };
        for outcome in [done(Some(key.clone())), failed] {
            let id = GrabId(db.id());
            let new = placeholder(id, team, outcome.clone());
            db.store.grabs().create_placeholder(new).await.unwrap();
            let grab = db.store.grabs().find_grab(team, Environment::Test, id).await.unwrap().unwrap();
            assert_eq!((grab.state, grab.environment, grab.attempts), (outcome, Environment::Test, 0));
            assert_eq!(db.store.grabs().find_grab(team, Environment::Live, id).await.unwrap(), None);
        }
        assert_eq!(db.store.grabs().find_image(&key).await.unwrap(), Some(ShownImage::Placeholder(Box::new(spec()))));
        assert_eq!(db.store.grabs().find_image(&ImageKey::new(8, "png")).await.unwrap(), None);
        assert_eq!(db.store.credits().ledger(team, None, 10).await.unwrap(), []);
    }

    async fn live_image_is_found_until_it_is_deleted(db) {
        let team = db.team(1).await;
        let leased = db.leased(team).await;
        db.store.grabs().complete(crate::harness::completion(&leased)).await.unwrap().unwrap();
        assert_eq!(db.store.grabs().find_image(&leased.upload_key).await.unwrap(), Some(ShownImage::Stored));
        assert!(db.store.grabs().delete_grab(team, Environment::Live, leased.grab, NOW).await.unwrap());
        assert_eq!(db.store.grabs().find_image(&leased.upload_key).await.unwrap(), None);
    }

    async fn placeholders_are_created_together_except_those_whose_id_is_taken(db) {
        let (team, taken) = (db.team(0).await, GrabId(db.id()));
        let image = |n| done(Some(ImageKey::new(n, "png")));
        db.store.grabs().create_placeholder(placeholder(taken, team, image(1000))).await.unwrap();
        let ids: Vec<_> = (0..100_u128).map(|n| if n % 50 == 7 { taken } else { GrabId(db.id()) }).collect();
        let new = ids.iter().zip(0..).map(|(id, n)| placeholder(*id, team, image(n)));
        let created = join_all(new.map(|new| db.store.grabs().create_placeholder(new))).await;
        for ((id, n), created) in ids.into_iter().zip(0..).zip(created) {
            let found = db.store.grabs().find_grab(team, Environment::Test, id).await.unwrap().unwrap();
            if id == taken {
                assert!(created.is_err());
                assert_eq!(found.state, image(1000));
            } else {
                assert_eq!(created.unwrap(), PlaceholderOutcome::Stored);
                assert_eq!(found.state, image(n));
            }
        }
    }

    async fn create_placeholder_rejects_open_outcomes(db) {
        let team = db.team(0).await;
        for outcome in [State::Pending, State::Processing, done(None)] {
            let new = placeholder(GrabId(db.id()), team, outcome);
            let refused = db.store.grabs().create_placeholder(new).await;
            assert!(matches!(refused, Err(Error::Inconsistent(_))), "{refused:?}");
        }
    }
}
