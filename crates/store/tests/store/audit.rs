//! The audit trail: written with the change, append-only, and purged by age.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Environment, Scopes};
use grabd_domain::ids::{KeyId, TeamId};
use grabd_store::accounts::{NewKey, SuspendOutcome};
use grabd_store::audit::AuditEntry;
use grabd_store::{Actor, Store};

use crate::harness::{NOW, TestDb, on_both};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn acting(db: &TestDb, now: Timestamp) -> Store {
    let address = Some("2001:db8::7".parse().unwrap());
    db.store.acting_as(Actor { name: "command:uid 0".to_owned(), address, now })
}

fn key(db: &TestDb, team: TeamId) -> NewKey {
    let id = db.id();
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(id.as_bytes());
    NewKey {
        id: KeyId(id),
        team,
        environment: Environment::Live,
        name: "a key".into(),
        hash,
        last4: "abcd".into(),
        scopes: Scopes::ALL,
        expires_at: None,
        created_by: None,
        now: NOW,
    }
}

async fn all(db: &TestDb) -> Vec<AuditEntry> {
    db.store.audit().list_audit(Timestamp::from_ms(0), None, 100).await.unwrap()
}

on_both! {
    async fn change_by_an_actor_is_recorded_with_it(db) {
        let team = db.team(0).await;
        db.store.accounts().create_key(key(db, team)).await.unwrap();
        assert_eq!(all(db).await, [], "a change by the service itself");
        let store = acting(db, NOW);
        let new = key(db, team);
        let id = new.id;
        store.accounts().create_key(new.clone()).await.unwrap();
        // A change that fails is rolled back with its entry.
        store.accounts().create_key(new).await.unwrap_err();
        assert!(store.accounts().revoke_key(id, NOW).await.unwrap());
        assert!(!store.accounts().revoke_key(KeyId(db.id()), NOW).await.unwrap());
        let entries = all(db).await;
        let seen: Vec<_> = entries.iter().map(|entry| (entry.action.as_str(), entry.target.clone())).collect();
        assert_eq!(seen, [("key.revoke", id.to_string()), ("key.create", id.to_string())]);
        let made = &entries[1];
        assert_eq!((made.actor.as_str(), made.address.as_deref()), ("command:uid 0", Some("2001:db8::7")));
        assert_eq!((made.at, made.team, made.detail.as_deref()), (NOW, Some(team), Some("live")));
        // Pages and filters.
        assert_eq!(db.store.audit().list_audit(NOW, Some(made.id + 1), 1).await.unwrap(), entries[1..]);
        assert_eq!(db.store.audit().list_audit(NOW + DAY, None, 9).await.unwrap(), []);
    }

    async fn entries_cannot_be_changed_and_only_old_ones_are_deleted(db) {
        let team = db.team(0).await;
        for days in [0, 10, 40, 80] {
            acting(db, NOW + DAY * days).accounts().create_key(key(db, team)).await.unwrap();
        }
        for statement in ["UPDATE audit SET actor = 'nobody'", "DELETE FROM audit"] {
            assert!(db.execute_raw(statement).await.is_err(), "{statement}");
        }
        assert_eq!(all(db).await.len(), 4);
        assert_eq!(db.store.audit().purge_audit(NOW + DAY * 5, 10).await.unwrap(), 1);
        // Those of the 30 days before the newest are kept, whatever the retention.
        assert_eq!(db.store.audit().purge_audit(NOW + DAY * 1000, 1).await.unwrap(), 1);
        assert_eq!(db.store.audit().purge_audit(NOW + DAY * 1000, 10).await.unwrap(), 1);
        assert_eq!(db.store.audit().purge_audit(NOW + DAY * 1000, 10).await.unwrap(), 0);
        assert_eq!(all(db).await.len(), 1);
    }

    async fn suspended_team_authenticates_nobody_and_creates_nothing(db) {
        let team = db.team(5).await;
        let new = key(db, team);
        let hash = new.hash;
        db.store.accounts().create_key(new).await.unwrap();
        let open = db.pending(team).await;
        assert!(db.store.accounts().authenticate(&hash).await.unwrap().is_some());
        assert!(!db.store.accounts().is_key_suspended(&hash).await.unwrap());
        let store = acting(db, NOW);
        assert_eq!(store.accounts().suspend_team(team, "abuse", NOW).await.unwrap(), SuspendOutcome::Changed);
        assert_eq!(store.accounts().suspend_team(team, "again", NOW).await.unwrap(), SuspendOutcome::Unchanged);
        assert_eq!(store.accounts().suspend_team(TeamId(db.id()), "abuse", NOW).await.unwrap(), SuspendOutcome::UnknownTeam);
        assert_eq!(db.store.accounts().authenticate(&hash).await.unwrap(), None);
        assert!(db.store.accounts().is_key_suspended(&hash).await.unwrap());
        assert!(!db.store.accounts().is_key_suspended(&[9; 32]).await.unwrap());
        let new = db.new_grab(team, grabd_domain::grabs::Class::Sync);
        assert_eq!(db.store.grabs().create(new).await.unwrap(), grabd_store::grabs::Created::TeamInactive);
        assert_eq!(db.store.accounts().open_grabs_of(team, 9).await.unwrap(), [open]);
        let suspension = db.store.accounts().find_team(team).await.unwrap().unwrap().suspension.unwrap();
        assert_eq!((suspension.at, suspension.reason.as_str()), (NOW, "abuse"));
        assert_eq!(store.accounts().restore_team(team, NOW).await.unwrap(), SuspendOutcome::Changed);
        assert!(db.store.accounts().authenticate(&hash).await.unwrap().is_some());
        assert_eq!(db.store.accounts().find_team(team).await.unwrap().unwrap().suspension, None);
        let actions: Vec<String> = all(db).await.into_iter().map(|entry| entry.action).collect();
        assert_eq!(actions, ["team.restore", "team.suspend"]);
    }
}
