//! Grabs and credits of API keys, and who created a grab.

use std::time::Duration;

use grabd_domain::credentials::{Environment, Principal, Scopes};
use grabd_domain::grabs::Class;
use grabd_domain::ids::{GrantId, KeyId, TeamId, UserId};
use grabd_store::accounts::{KeyUsage, NewKey};
use grabd_store::grabs::{FailureSource, GrabCreator, NewGrab};
use grabd_store::retention::PurgedGrabs;

use crate::harness::{NOW, TestDb, completion, failing, on_both};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn key(db: &TestDb, team: TeamId, environment: Environment) -> KeyId {
    let id = db.id();
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(id.as_bytes());
    let key = NewKey {
        id: KeyId(id),
        team,
        environment,
        name: "A key".into(),
        hash,
        last4: "abcd".into(),
        scopes: Scopes::ALL,
        expires_at: None,
        created_by: None,
        now: NOW,
    };
    db.store.accounts().create_key(key).await.unwrap();
    KeyId(id)
}

on_both! {
    async fn creator_of_a_grab_is_named_to_its_team_only(db) {
        let (team, other) = (db.team(9).await, db.team(9).await);
        let (own, foreign) = (key(db, team, Environment::Live).await, key(db, other, Environment::Live).await);
        let (user, grant) = (UserId(db.id()), GrantId(db.id()));
        for (creator, expected) in [
            (Some(Principal::Key(own)), GrabCreator::Key("A key".to_owned())),
            (Some(Principal::Key(foreign)), GrabCreator::DeletedKey),
            (Some(Principal::User(user)), GrabCreator::FormerMember),
            (Some(Principal::Grant(grant)), GrabCreator::DisconnectedApp),
            (None, GrabCreator::Unknown),
        ] {
            let new = NewGrab { creator, ..db.new_grab(team, Class::Sync) };
            let id = new.id;
            db.store.grabs().create(new).await.unwrap();
            assert_eq!(db.store.grabs().find_creator(team, id).await.unwrap(), expected);
            assert_eq!(db.store.grabs().find_creator(other, id).await.unwrap(), GrabCreator::Unknown);
        }
    }

    async fn usage_counts_grabs_and_spent_credits_of_each_key_also_after_their_purge(db) {
        let team = db.team(9).await;
        let (busy, idle) = (key(db, team, Environment::Live).await, key(db, team, Environment::Live).await);
        // One done, one failed, one open, and one by nobody's key.
        for (by, ends) in [(Some(busy), 2), (Some(busy), 1), (None, 2), (Some(busy), 0)] {
            let new = NewGrab { creator: by.map(Principal::Key), ..db.new_grab(team, Class::Sync) };
            let id = new.id;
            db.store.grabs().create(new).await.unwrap();
            match ends {
                2 => {
                    let leased = db.lease_one().await;
                    db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
                }
                1 => {
                    let cancelled = failing(id, FailureSource::Cancel, NOW);
                    db.store.grabs().fail(cancelled).await.unwrap().unwrap();
                }
                _ => {}
            }
        }
        let since = NOW - DAY * 30;
        let expected = KeyUsage { grabs: 3, credits: 1 };
        let usage = db.store.accounts().key_usage(team, since).await.unwrap();
        assert_eq!(usage.into_iter().collect::<Vec<_>>(), [(busy, expected)]);
        let purged = db.store.retention().purge_grabs(PurgedGrabs::Live, NOW + DAY, NOW + DAY, 9).await.unwrap();
        assert_eq!(purged, 3);
        let usage = db.store.accounts().key_usage(team, since).await.unwrap();
        assert_eq!((usage.get(&busy), usage.get(&idle)), (Some(&expected), None));
        // Numbers of purged grabs are kept as long as they are counted.
        assert_eq!(db.store.retention().purge_tallies(NOW + DAY * 31, 9).await.unwrap(), 0);
        assert!(db.store.retention().purge_tallies(NOW + DAY * 40, 9).await.unwrap() > 0);
        let usage = db.store.accounts().key_usage(team, since).await.unwrap();
        assert_eq!(usage.get(&busy), Some(&KeyUsage { grabs: 1, credits: 0 }), "the open grab is not purged");
    }
}
