//! The keys with which the service signs its requests to captured sites.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_store::identity::{NewIdentityKey, RotateIdentityOutcome, StoredIdentityKey};
use grabd_store::{Actor, Store};

use crate::harness::{NOW, on_both};

const HOUR: Duration = Duration::from_secs(60 * 60);

fn key(id: &str, now: Timestamp) -> NewIdentityKey {
    let (used_from, others_removed_at) = (now + HOUR, now + 2 * HOUR);
    NewIdentityKey { key_id: id.to_owned(), secret: id.as_bytes().to_vec(), now, used_from, others_removed_at }
}

async fn ids(store: &Store) -> Vec<String> {
    store.identity().list_keys().await.unwrap().into_iter().map(|key| key.key_id).collect()
}

on_both! {
    async fn first_key_is_made_once_and_used_at_once(db) {
        let identity = db.store.identity();
        let (one, other) =
            tokio::join!(identity.create_first_key(key("a", NOW)), identity.create_first_key(key("b", NOW)));
        assert_ne!(one.unwrap(), other.unwrap(), "one of two processes makes the key");
        let keys = identity.list_keys().await.unwrap();
        let [made] = &keys[..] else { panic!("{keys:?}") };
        let expected = StoredIdentityKey {
            number: 1,
            key_id: made.key_id.clone(),
            secret: made.key_id.as_bytes().to_vec(),
            created_at: NOW,
            used_from: NOW,
            removed_at: None,
        };
        assert_eq!(*made, expected);
        assert!(!identity.create_first_key(key("c", NOW)).await.unwrap());
    }

    async fn rotation_keeps_the_former_key_until_verifiers_know_the_new_one(db) {
        let actor = Actor { name: "command:uid 0".to_owned(), address: None, now: NOW };
        let store = db.store.acting_as(actor);
        let identity = store.identity();
        identity.create_first_key(key("a", NOW)).await.unwrap();
        let rotated = identity.rotate_key(key("b", NOW), false).await.unwrap();
        assert_eq!(rotated, RotateIdentityOutcome::Rotated { used_from: NOW + HOUR });
        let again = identity.rotate_key(key("c", NOW + HOUR), false).await.unwrap();
        assert_eq!(again, RotateIdentityOutcome::UnderWay { until: NOW + 2 * HOUR });
        assert_eq!(ids(&store).await, ["a", "b"]);
        assert_eq!(identity.purge_keys(NOW + HOUR).await.unwrap(), 0);
        assert_eq!(identity.purge_keys(NOW + 2 * HOUR).await.unwrap(), 1);
        assert_eq!(ids(&store).await, ["b"]);
        let third = identity.rotate_key(key("c", NOW + 2 * HOUR), false).await.unwrap();
        assert_eq!(third, RotateIdentityOutcome::Rotated { used_from: NOW + 3 * HOUR });
        let numbers: Vec<i32> = identity.list_keys().await.unwrap().iter().map(|key| key.number).collect();
        assert_eq!(numbers, [2, 3]);
        // The trail has what happened, and not what was refused.
        let entries = store.audit().list_audit(Timestamp::from_ms(0), None, 10).await.unwrap();
        let rotations = entries.iter().filter(|entry| entry.action == "identity.rotate");
        let mut targets: Vec<&str> = rotations.map(|entry| &*entry.target).collect();
        targets.sort_unstable();
        assert_eq!(targets, ["b", "c"]);
    }

    async fn forced_rotation_leaves_the_new_key_only(db) {
        for (id, is_forced) in [("a", false), ("b", false), ("c", true)] {
            let new = match is_forced {
                true => NewIdentityKey { used_from: NOW, others_removed_at: NOW, ..key(id, NOW) },
                false => key(id, NOW),
            };
            let rotated = db.store.identity().rotate_key(new, is_forced).await.unwrap();
            assert!(matches!(rotated, RotateIdentityOutcome::Rotated { .. }), "{id}");
        }
        let keys = db.store.identity().list_keys().await.unwrap();
        let [only] = &keys[..] else { panic!("{keys:?}") };
        assert_eq!((&*only.key_id, only.used_from, only.removed_at), ("c", NOW, None));
    }

    async fn resealed_key_must_be_the_one_that_was_read(db) {
        let identity = db.store.identity();
        identity.create_first_key(key("a", NOW)).await.unwrap();
        assert!(!identity.reseal_key(1, b"other".to_vec(), b"new".to_vec()).await.unwrap());
        assert!(identity.reseal_key(1, b"a".to_vec(), b"new".to_vec()).await.unwrap());
        assert_eq!(identity.list_keys().await.unwrap()[0].secret, b"new");
    }
}
