//! API keys and their authentication.

use std::time::Duration;

use grabd_domain::accounts::REVOKED_KEY_LIFE;
use grabd_domain::credentials::{Caller, Environment, Principal, Scopes};
use grabd_domain::ids::{KeyId, TeamId};
use grabd_store::Error;
use grabd_store::accounts::{KeyCaller, NewKey};

use crate::harness::{NOW, TestDb, on_both};

fn new_key(db: &TestDb, team: TeamId, environment: Environment, hash: u8) -> NewKey {
    NewKey {
        id: KeyId(db.id()),
        team,
        environment,
        name: "A key".into(),
        hash: [hash; 32],
        last4: "3-_9".into(),
        scopes: Scopes::ALL,
        expires_at: None,
        created_by: None,
        now: NOW,
    }
}

on_both! {
    async fn key_authenticates_its_team_and_environment_until_revoked(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        let live = new_key(db, team, Environment::Live, 1);
        let test = new_key(db, other, Environment::Test, 2);
        for key in [&live, &test] {
            db.store.accounts().create_key(key.clone()).await.unwrap();
        }
        let caller = |key: &NewKey| {
            let caller =
                Caller { team: key.team, environment: key.environment, principal: Principal::Key(key.id) };
            Some(KeyCaller { caller, scopes: Scopes::ALL, expires_at: None })
        };
        assert_eq!(db.store.accounts().authenticate(&[1; 32]).await.unwrap(), caller(&live));
        assert_eq!(db.store.accounts().authenticate(&[2; 32]).await.unwrap(), caller(&test));
        assert_eq!(db.store.accounts().authenticate(&[3; 32]).await.unwrap(), None);

        assert!(db.store.accounts().revoke_key(live.id, NOW).await.unwrap());
        assert_eq!(db.store.accounts().authenticate(&[1; 32]).await.unwrap(), None);
        assert_eq!(db.store.accounts().authenticate(&[2; 32]).await.unwrap(), caller(&test));
    }

    async fn revoked_keys_are_deleted_after_a_month(db) {
        let team = db.team(0).await;
        let (revoked, active) =
            (new_key(db, team, Environment::Live, 1), new_key(db, team, Environment::Live, 2));
        for key in [&revoked, &active] {
            db.store.accounts().create_key(key.clone()).await.unwrap();
        }
        db.store.accounts().revoke_key(revoked.id, NOW).await.unwrap();
        let month = NOW + REVOKED_KEY_LIFE;
        assert_eq!(db.store.retention().purge_revoked_keys(month - Duration::from_millis(1), 9).await.unwrap(), 0);
        assert_eq!(db.store.retention().purge_revoked_keys(month, 9).await.unwrap(), 1);
        let left: Vec<_> = db.store.accounts().list_keys(team).await.unwrap().iter().map(|key| key.id).collect();
        assert_eq!(left, [active.id]);
    }

    async fn key_of_an_inactive_team_does_not_authenticate(db) {
        let team = db.team(0).await;
        db.store.accounts().create_key(new_key(db, team, Environment::Live, 1)).await.unwrap();
        db.execute_raw("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(db.store.accounts().authenticate(&[1; 32]).await.unwrap(), None);
        assert_eq!(db.store.accounts().find_team(team).await.unwrap().unwrap().status, "inactive");
    }

    async fn revoke_key_keeps_the_first_time_and_returns_false_for_unknown_keys(db) {
        let team = db.team(0).await;
        let key = new_key(db, team, Environment::Live, 1);
        let id = key.id;
        db.store.accounts().create_key(key).await.unwrap();
        assert!(!db.store.accounts().revoke_key(KeyId(db.id()), NOW).await.unwrap());
        assert!(db.store.accounts().revoke_key(id, NOW).await.unwrap());
        assert!(db.store.accounts().revoke_key(id, NOW + Duration::from_secs(9)).await.unwrap());
        assert_eq!(db.store.accounts().list_keys(team).await.unwrap()[0].revoked_at, Some(NOW));
    }

    async fn use_of_a_key_is_written_at_most_once_an_hour(db) {
        let team = db.team(0).await;
        let key = new_key(db, team, Environment::Live, 1);
        let id = key.id;
        db.store.accounts().create_key(key).await.unwrap();
        let hour = Duration::from_secs(3600);
        let mut seen = Vec::new();
        for at in [NOW, NOW + hour - Duration::from_millis(1), NOW + hour, NOW] {
            db.store.accounts().touch_keys(vec![id], at).await.unwrap();
            seen.push(db.store.accounts().list_keys(team).await.unwrap()[0].last_used_at.unwrap());
        }
        assert_eq!(seen, [NOW, NOW, NOW + hour, NOW + hour]);
    }

    async fn restrictions_of_a_key_are_stored(db) {
        let team = db.team(0).await;
        let scopes = Scopes::new([grabd_domain::credentials::Scope::Read]).unwrap();
        let expires_at = Some(NOW + Duration::from_secs(9));
        let restricted = NewKey { scopes, expires_at, ..new_key(db, team, Environment::Test, 1) };
        db.store.accounts().create_key(restricted).await.unwrap();
        let found = db.store.accounts().authenticate(&[1; 32]).await.unwrap().unwrap();
        assert_eq!((found.scopes, found.expires_at), (scopes, expires_at));
    }

    async fn expired_keys_are_deleted_after_a_month(db) {
        let team = db.team(0).await;
        let expiring = NewKey { expires_at: Some(NOW), ..new_key(db, team, Environment::Live, 1) };
        let later = NewKey { expires_at: Some(NOW + REVOKED_KEY_LIFE), ..new_key(db, team, Environment::Live, 2) };
        for key in [&expiring, &later] {
            db.store.accounts().create_key(key.clone()).await.unwrap();
        }
        let month = NOW + REVOKED_KEY_LIFE;
        assert_eq!(db.store.retention().purge_revoked_keys(month - Duration::from_millis(1), 9).await.unwrap(), 0);
        assert_eq!(db.store.retention().purge_revoked_keys(month, 9).await.unwrap(), 1);
        assert_eq!(db.store.accounts().list_keys(team).await.unwrap()[0].id, later.id);
    }

    async fn touch_keys_keeps_the_latest_use(db) {
        let team = db.team(0).await;
        let keys = [1, 2, 3].map(|hash| new_key(db, team, Environment::Live, hash));
        for key in &keys {
            db.store.accounts().create_key(key.clone()).await.unwrap();
        }
        let later = NOW + Duration::from_secs(1);
        db.store.accounts().touch_keys(vec![keys[0].id, keys[1].id], later).await.unwrap();
        db.store.accounts().touch_keys(vec![keys[1].id, keys[2].id, KeyId(db.id())], NOW).await.unwrap();
        db.store.accounts().touch_keys(Vec::new(), NOW).await.unwrap();
        let used: Vec<_> = db.store.accounts().list_keys(team).await.unwrap().iter().map(|key| key.last_used_at).collect();
        assert_eq!(used, [Some(later), Some(later), Some(NOW)]);
    }

    async fn teams_and_keys_are_listed_oldest_first(db) {
        let teams = [db.team(0).await, db.team(0).await];
        let listed: Vec<_> = db.store.accounts().list_teams().await.unwrap().iter().map(|team| team.id).collect();
        assert_eq!(listed, teams);
        db.store.accounts().create_key(new_key(db, teams[0], Environment::Live, 1)).await.unwrap();
        assert_eq!(db.store.accounts().list_keys(teams[1]).await.unwrap(), []);
        assert_eq!(db.store.accounts().find_team(TeamId(db.id())).await.unwrap(), None);
    }

    async fn create_key_rejects_duplicate_hashes_and_unknown_teams(db) {
        let team = db.team(0).await;
        db.store.accounts().create_key(new_key(db, team, Environment::Live, 1)).await.unwrap();
        let duplicate = db.store.accounts().create_key(new_key(db, team, Environment::Test, 1)).await;
        assert!(matches!(duplicate, Err(Error::Constraint(_))), "{duplicate:?}");
        let orphan = db.store.accounts().create_key(new_key(db, TeamId(db.id()), Environment::Test, 2)).await;
        assert!(matches!(orphan, Err(Error::Constraint(_))), "{orphan:?}");
    }
}
