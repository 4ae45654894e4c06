//! Deletion after the operator's retention.

use std::time::Duration;

use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{ImageKey, RenderMetadata, State};
use grabd_domain::idempotency::IdempotencyKey;
use grabd_domain::ids::{GrabId, TeamId};
use grabd_domain::{Day, Timestamp};
use grabd_store::credits::Drift;
use grabd_store::grabs::{DailyOutcomeCount, GrabCounts, NewPlaceholder, NewRecord, PlaceholderOutcome, Repeat};
use grabd_store::retention::PurgedGrabs;

use crate::harness::{NOW, TestDb, completion, on_both, spec};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn record() -> NewRecord {
    NewRecord { key: IdempotencyKey::parse("one").unwrap(), fingerprint: [1; 32], only_of: None }
}

/// Creates a test grab that ended at a time.
async fn placeholder(db: &TestDb, team: TeamId, at: Timestamp, idempotency: Option<NewRecord>) -> GrabId {
    let id = GrabId(db.id());
    let outcome = State::Done {
        finished_at: at,
        image: Some(ImageKey::new(id.0.as_u128(), "png")),
        size_bytes: 1,
        execution_ms: 1,
        metadata: RenderMetadata::default(),
    };
    let new = NewPlaceholder {
        id,
        team,
        creator: None,
        spec: spec(),
        now: at,
        outcome,
        idempotency,
        fingerprint: None,
        ceiling: None,
    };
    assert_eq!(db.store.grabs().create_placeholder(new).await.unwrap(), PlaceholderOutcome::Stored);
    id
}

async fn exists(db: &TestDb, team: TeamId, environment: Environment, id: GrabId) -> bool {
    db.store.grabs().find_grab(team, environment, id).await.unwrap().is_some()
}

on_both! {
    async fn test_grabs_are_deleted_after_their_retention_oldest_first(db) {
        let team = db.team(0).await;
        let mut ids = Vec::new();
        for days in [9, 8, 6] {
            ids.push(placeholder(db, team, NOW - DAY * days, None).await);
        }
        let live = db.pending(db.team(1).await).await;
        let purge = |limit| db.store.retention().purge_grabs(PurgedGrabs::Test, NOW - DAY * 7, NOW, limit);
        assert_eq!(purge(1).await.unwrap(), 1);
        assert!(!exists(db, team, Environment::Test, ids[0]).await);
        assert!(exists(db, team, Environment::Test, ids[1]).await);
        assert_eq!(purge(9).await.unwrap(), 1);
        assert_eq!(purge(9).await.unwrap(), 0);
        assert!(exists(db, team, Environment::Test, ids[2]).await);
        assert_eq!(db.store.grabs().find_grabs(&[live]).await.unwrap().len(), 1);
        assert_eq!(db.store.grabs().due_images(NOW, 9).await.unwrap(), [], "placeholders have no files");
    }

    async fn usage_counts_include_purged_grabs(db) {
        let team = db.team(0).await;
        for days in [8, 8, 10, 29, 33] {
            placeholder(db, team, NOW - DAY * days, None).await;
        }
        placeholder(db, team, NOW, None).await;
        let (first, last) = (Day::of(NOW).before(29), Day::of(NOW));
        let by_day = || async {
            let mut days = db.store.grabs().count_ended_by_day(team, first, last).await.unwrap();
            days.sort_by_key(|count| count.day);
            days
        };
        let (counts, days) = (db.store.grabs().count_grabs(team, NOW - DAY * 30).await.unwrap(), by_day().await);
        assert_eq!(counts, GrabCounts { all: 5, live: 0 });
        // Twice, so that a second purge adds to the numbers of the first.
        for ended_before in [NOW - DAY * 9, NOW - DAY * 7] {
            db.store.retention().purge_grabs(PurgedGrabs::Test, ended_before, NOW, 9).await.unwrap();
        }
        assert_eq!(db.store.grabs().count_grabs(team, NOW - DAY * 30).await.unwrap(), counts);
        assert_eq!(by_day().await, days);
        placeholder(db, team, NOW - DAY * 8, None).await;
        db.store.retention().purge_grabs(PurgedGrabs::Test, NOW - DAY * 7, NOW, 9).await.unwrap();
        let day = Day::of(NOW - DAY * 8);
        let expected = DailyOutcomeCount { day, environment: Environment::Test, done: true, grabs: 3 };
        assert!(by_day().await.contains(&expected));
        assert_eq!(db.store.retention().purge_tallies(NOW, 9).await.unwrap(), 0);
        assert_eq!(db.store.retention().purge_tallies(NOW + DAY * 40, 2).await.unwrap(), 2);
        assert_eq!(db.store.retention().purge_tallies(NOW + DAY * 40, 9).await.unwrap(), 1);
    }

    async fn idempotency_key_is_deleted_with_its_grab(db) {
        let team = db.team(0).await;
        placeholder(db, team, NOW - DAY * 8, Some(record())).await;
        let at = NOW - DAY * 8;
        let repeat = db.store.grabs().find_repeat(team, Environment::Test, &record(), at).await.unwrap();
        assert!(matches!(repeat, Some(Repeat::Replay(_))));
        assert_eq!(db.store.retention().purge_grabs(PurgedGrabs::Test, NOW - DAY * 7, NOW, 9).await.unwrap(), 1);
        assert_eq!(db.store.grabs().find_repeat(team, Environment::Test, &record(), at).await.unwrap(), None);
    }

    async fn purged_live_grab_keeps_its_ledger_entry_and_loses_its_image(db) {
        let team = db.team(3).await;
        let old = db.leased(team).await;
        db.store.grabs().complete(completion(&old)).await.unwrap().unwrap();
        let open = db.pending(team).await;
        let later = NOW + DAY * 40;
        assert_eq!(db.store.retention().purge_grabs(PurgedGrabs::Live, later - DAY * 30, later, 9).await.unwrap(), 1);
        assert!(!exists(db, team, Environment::Live, old.grab).await);
        assert!(exists(db, team, Environment::Live, open).await, "open grabs are not purged");
        assert_eq!(db.store.grabs().due_images(later, 9).await.unwrap(), [old.upload_key]);
        assert_eq!(db.store.credits().ledger(team, None, 9).await.unwrap()[0].grab, Some(old.grab));
        assert_eq!(db.store.credits().verify_ledger().await.unwrap(), []);
    }

    async fn lost_grab_is_still_reported_after_a_purge(db) {
        let team = db.team(3).await;
        let purged = db.leased(team).await;
        db.store.grabs().complete(completion(&purged)).await.unwrap().unwrap();
        let later = NOW + DAY * 40;
        db.store.retention().purge_grabs(PurgedGrabs::Live, later, later, 9).await.unwrap();
        let lost = db.leased(team).await;
        let mut end = completion(&lost);
        end.now = later;
        db.store.grabs().complete(end).await.unwrap().unwrap();
        let id = db.literal(lost.grab.0);
        db.execute_raw(&format!("DELETE FROM grab WHERE id = {id}")).await.unwrap();
        assert_eq!(db.store.credits().verify_ledger().await.unwrap(), [Drift::SpentWithoutImage(lost.grab)]);
        db.execute_raw(&format!("UPDATE purge_mark SET finished_until = {}", later.as_ms())).await.unwrap();
    }

    async fn stored_bytes_are_those_of_images_that_exist(db) {
        let (team, other) = (db.team(9).await, db.team(9).await);
        let size = completion(&db.leased(other).await).size_bytes;
        let mut images = Vec::new();
        for _ in 0..4 {
            let leased = db.leased(team).await;
            db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
            images.push(leased.grab);
        }
        placeholder(db, team, NOW, None).await;
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), 4 * size);
        assert_eq!(db.store.grabs().stored_bytes(other).await.unwrap(), 0);
        for _ in 0..2 {
            db.store.grabs().delete_grab(team, Environment::Live, images[0], NOW).await.unwrap();
        }
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), 3 * size);
        // Deleted before it is done: its image is never stored.
        let deleted = db.leased(team).await;
        db.store.grabs().delete_grab(team, Environment::Live, deleted.grab, NOW).await.unwrap();
        db.store.grabs().complete(completion(&deleted)).await.unwrap().unwrap();
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), 3 * size);
        assert_eq!(db.store.retention().purge_images(NOW + DAY, NOW + DAY, 1).await.unwrap(), 1);
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), 2 * size);
        db.store.retention().purge_grabs(PurgedGrabs::Live, NOW + DAY, NOW + DAY, 9).await.unwrap();
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), 0);
        db.execute_raw("UPDATE team_storage SET bytes = bytes + 1").await.unwrap();
        let found = db.store.credits().verify_ledger().await.unwrap();
        assert_eq!(found, [Drift::StoredBytes { team, recorded: 1, images: 0 }]);
        db.execute_raw("UPDATE team_storage SET bytes = bytes - 1").await.unwrap();
    }

    async fn images_are_deleted_after_their_retention_as_on_request(db) {
        let team = db.team(3).await;
        let [old, recent] = [db.leased(team).await, db.leased(team).await];
        db.store.grabs().complete(completion(&old)).await.unwrap().unwrap();
        let mut end = completion(&recent);
        end.now = NOW + DAY * 9;
        db.store.grabs().complete(end).await.unwrap().unwrap();
        placeholder(db, team, NOW, None).await;
        let now = NOW + DAY * 10;
        assert_eq!(db.store.retention().purge_images(now - DAY * 5, now, 9).await.unwrap(), 1);
        assert_eq!(db.store.retention().purge_images(now - DAY * 5, now, 9).await.unwrap(), 0);
        let grab = db.grab(team, old.grab).await;
        assert_eq!(grab.deleted_at, Some(now));
        assert!(matches!(grab.state, State::Done { image: None, .. }));
        assert_eq!(db.grab(team, recent.grab).await.deleted_at, None);
        assert_eq!(db.store.grabs().due_images(now, 9).await.unwrap(), [old.upload_key]);
    }
}
