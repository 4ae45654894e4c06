//! The audit trail: written with the change, append-only, and purged by age.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::credentials::{Environment, Scopes};
use grabd_domain::ids::{KeyId, TeamId, UserId};
use grabd_store::accounts::{InitialTeam, NewKey, NewTeam, NewUser, SuspendOutcome};
use grabd_store::audit::{AuditEntry, AuditFilter, NamedEntry};
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

fn as_user(db: &TestDb, user: UserId, now: Timestamp) -> Store {
    db.store.acting_as(Actor { name: format!("user:{user}"), address: None, now })
}

async fn named_team(db: &TestDb, name: &str) -> TeamId {
    let id = TeamId(db.id());
    db.store.accounts().create_team(NewTeam { id, name: name.into(), now: NOW }).await.unwrap();
    id
}

async fn user(db: &TestDb, email: &str) -> UserId {
    let (id, email) = (UserId(db.id()), Email::parse(email).unwrap());
    let initial_team = InitialTeam::Existing(named_team(db, "A team").await);
    let new = NewUser { id, email, password_hash: "$argon2id$".into(), initial_team, verified: true, now: NOW };
    db.store.accounts().create_user(new).await.unwrap();
    id
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

    async fn search_filters_and_names_what_entries_are_about(db) {
        let (acme, beta) = (named_team(db, "Acme").await, named_team(db, "Beta").await);
        let (ada, olga) = (user(db, "ada@example.com").await, user(db, "olga@example.com").await);
        db.store.accounts().set_operator(olga, true).await.unwrap();
        let (by_ada, by_olga) = (as_user(db, ada, NOW), as_user(db, olga, NOW + DAY));
        let new = key(db, acme);
        let key_id = new.id;
        by_ada.accounts().create_key(new).await.unwrap();
        by_ada.accounts().create_key(key(db, beta)).await.unwrap();
        by_olga.accounts().suspend_team(acme, "abuse", NOW).await.unwrap();
        by_olga.accounts().suspend_user(ada, "spam", NOW).await.unwrap();
        let search = async |filter: AuditFilter| db.store.audit().search(&filter, None, 9).await.unwrap();
        let all = search(AuditFilter::default()).await;
        let seen: Vec<_> = all.iter().map(|named| {
            let NamedEntry { entry, team_name, target_name, is_by_operator } = named;
            (entry.action.as_str(), entry.email.as_deref(), team_name.as_deref(), target_name.as_deref(), *is_by_operator)
        }).collect();
        let (adas, olgas) = (Some("ada@example.com"), Some("olga@example.com"));
        assert_eq!(seen, [
            ("user.suspend", olgas, None, adas, true),
            ("team.suspend", olgas, Some("Acme"), None, true),
            ("key.create", adas, Some("Beta"), Some("a key"), false),
            ("key.create", adas, Some("Acme"), Some("a key"), false),
        ]);
        let none = AuditFilter::default;
        for (filter, expected) in [
            (AuditFilter { teams: Some(vec![acme]), ..none() }, &all[1..2].iter().chain(&all[3..]).cloned().collect::<Vec<_>>()[..]),
            (AuditFilter { teams: Some(vec![acme, beta]), ..none() }, &all[1..]),
            (AuditFilter { teams: Some(vec![]), ..none() }, &[]),
            (AuditFilter { actor: Some(format!("user:{olga}")), ..none() }, &all[..2]),
            (AuditFilter { actions: Some(vec!["key.create"]), ..none() }, &all[2..]),
            (AuditFilter { actions: Some(vec!["key.create", "user.suspend"]), teams: Some(vec![beta]), ..none() }, &all[2..3]),
            (AuditFilter { since: Some(NOW + DAY), ..none() }, &all[..2]),
            (AuditFilter { since: Some(NOW), until: Some(NOW + DAY), ..none() }, &all[2..]),
        ] {
            assert_eq!(search(filter.clone()).await, expected, "{filter:?}");
        }
        // Pages.
        let second = db.store.audit().search(&none(), Some(all[0].entry.id), 2).await.unwrap();
        assert_eq!(second, all[1..3]);
        // What was deleted has no name.
        assert!(db.store.retention().delete_team(acme, None, NOW).await.unwrap().is_ok());
        db.store.retention().delete_user(ada, NOW).await.unwrap();
        let after = search(AuditFilter { teams: Some(vec![acme]), ..none() }).await;
        let of_key = after.iter().find(|named| named.entry.target == key_id.to_string()).unwrap();
        assert_eq!((&of_key.team_name, &of_key.target_name, &of_key.entry.email), (&None, &None, &None));
    }
}
