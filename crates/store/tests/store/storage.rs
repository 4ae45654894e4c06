//! What teams and payers store, and creates that are refused because of it.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, ImageKey};
use grabd_domain::idempotency::IdempotencyKey;
use grabd_domain::ids::{GrabId, PayerId, TeamId};
use grabd_domain::storage::{Counted, StorageCeiling, StoredBytes};
use grabd_domain::teams::TeamName;
use grabd_store::grabs::{
    Created, FailureSource, NewGrab, NewPlaceholder, NewRecord, PayerStorage, PlaceholderOutcome, Repeat, ReuseGrab,
    ReuseOutcome,
};
use grabd_store::retention::PurgedGrabs;
use uuid::Uuid;

use crate::harness::{NOW, TestDb, completion, failing, on_both};
use crate::placeholder::{done, placeholder};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// What a row counts at least, and more than a row without long options does.
const ROW: i64 = 2000;
const SHORT: i64 = 3000;

fn spec_with_script(bytes: usize) -> CaptureSpec {
    let script = Some("x".repeat(bytes));
    let request = CaptureRequest { url: Some("https://example.com/".into()), script, ..CaptureRequest::default() };
    CaptureSpec::parse(&request).unwrap()
}

/// An id of a grab that is created at this time.
fn id_at(at: Timestamp, n: u128) -> GrabId {
    GrabId(Uuid::from_u128((u128::try_from(at.as_ms()).unwrap() << 80) | n))
}

fn test_grab(db: &TestDb, team: TeamId, ceiling: Option<i64>) -> NewPlaceholder {
    let image = ImageKey::new(db.id().as_u128(), "png");
    NewPlaceholder { ceiling, ..placeholder(GrabId(db.id()), team, done(Some(image))) }
}

fn with_key(key: &str) -> Option<NewRecord> {
    Some(NewRecord { key: IdempotencyKey::parse(key).unwrap(), fingerprint: [1; 32], only_of: None })
}

async fn stored(db: &TestDb, team: TeamId) -> StoredBytes {
    db.store.grabs().storage_of_team(team).await.unwrap()
}

async fn done_live(db: &TestDb, team: TeamId, spec: CaptureSpec) -> GrabId {
    let new = NewGrab { spec, ..db.new_grab(team, Class::Sync) };
    let id = new.id;
    db.store.grabs().create(new).await.unwrap();
    db.store.grabs().complete(completion(&db.lease_one().await)).await.unwrap().unwrap();
    id
}

async fn failed_live(db: &TestDb, new: NewGrab) -> GrabId {
    let id = new.id;
    assert_eq!(db.store.grabs().create(new).await.unwrap(), Created::Pending);
    db.store.grabs().fail(failing(id, FailureSource::Cancel, NOW)).await.unwrap().unwrap();
    id
}

on_both! {
    async fn rows_count_for_their_team_by_what_they_are(db) {
        let (team, other) = (db.team(9).await, db.team(9).await);
        assert_eq!(stored(db, team).await, StoredBytes::default());
        done_live(db, team, spec_with_script(5000)).await;
        let StoredBytes { images, test, uncharged, charged } = stored(db, team).await;
        assert_eq!((images, test, uncharged), (48_213, 0, 0));
        assert!((5000 + ROW..5000 + SHORT).contains(&charged), "{charged}");
        failed_live(db, NewGrab { spec: spec_with_script(700), ..db.new_grab(team, Class::Sync) }).await;
        let StoredBytes { uncharged, .. } = stored(db, team).await;
        assert!((700 + ROW..700 + SHORT).contains(&uncharged), "{uncharged}");
        let new = NewPlaceholder { spec: spec_with_script(900), ..test_grab(db, team, None) };
        db.store.grabs().create_placeholder(new).await.unwrap();
        let StoredBytes { test, .. } = stored(db, team).await;
        assert!((900 + ROW..900 + SHORT).contains(&test), "{test}");
        // Open grabs are few. They count at their end, unless they are long.
        db.pending(other).await;
        assert_eq!(stored(db, other).await, StoredBytes::default());
        let long = NewGrab { secrets: Some(vec![0; 20_000]), ..db.new_grab(other, Class::Sync) };
        let id = long.id;
        db.store.grabs().create(long).await.unwrap();
        assert!((20_000..21_000).contains(&stored(db, other).await.uncharged));
        db.store.grabs().fail(failing(id, FailureSource::Cancel, NOW)).await.unwrap().unwrap();
        assert!((ROW..SHORT).contains(&stored(db, other).await.uncharged));
        assert_eq!(db.store.grabs().largest_payers(1).await.unwrap(), (
            vec![PayerStorage { payer: PayerId(team.0), bytes: u64::try_from(stored(db, team).await.total()).unwrap() }],
            u64::try_from(stored(db, team).await.total() + stored(db, other).await.total()).unwrap(),
        ));
        // What is deleted counts no more.
        let later = NOW + DAY * 60;
        for (grabs, count) in [(PurgedGrabs::LiveFailed, 2), (PurgedGrabs::Test, 1), (PurgedGrabs::Live, 1)] {
            assert_eq!(db.store.retention().purge_grabs(grabs, later, later, 9).await.unwrap(), count, "{grabs:?}");
        }
        assert_eq!((stored(db, team).await, stored(db, other).await), (StoredBytes::default(), StoredBytes::default()));
    }

    async fn failed_grabs_count_their_webhook_messages(db) {
        let team = db.team(9).await;
        let alone = failed_live(db, db.new_grab(team, Class::Async)).await;
        let StoredBytes { uncharged: without, .. } = stored(db, team).await;
        db.store.retention().purge_these_grabs(PurgedGrabs::Live, NOW + DAY, NOW, vec![alone]).await.unwrap();
        for _ in 0..3 {
            crate::webhooks::endpoint(db, team, &[]).await;
        }
        failed_live(db, db.new_grab(team, Class::Async)).await;
        let StoredBytes { uncharged: with, .. } = stored(db, team).await;
        assert!((3000..6000).contains(&(with - without)), "{without} {with}");
    }

    async fn live_create_is_refused_when_the_team_has_reached_its_ceiling(db) {
        let (team, other) = (db.team(9).await, db.team(9).await);
        failed_live(db, db.new_grab(team, Class::Sync)).await;
        done_live(db, team, spec_with_script(1)).await;
        let own = stored(db, team).await;
        for counted in [Counted::Live, Counted::Uncharged] {
            for (more, is_refused) in [(1, false), (0, true), (-1, true)] {
                for class in [Class::Sync, Class::Async] {
                    let ceiling = Some(StorageCeiling { counted, bytes: own.counted(counted) + more });
                    let new = |team| NewGrab { ceiling, ..db.new_grab(team, class) };
                    let created = db.store.grabs().create(new(team)).await.unwrap();
                    assert_eq!(created == Created::StorageFull, is_refused, "{counted:?} {more}");
                    assert!(matches!(db.store.grabs().create(new(other)).await.unwrap(), Created::Pending | Created::CreditsExhausted));
                }
            }
        }
        // Nothing is held for what was refused.
        assert_eq!(db.credits(team).await.1, 4);
    }

    async fn test_create_is_refused_when_the_team_has_reached_its_ceiling(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        let first = test_grab(db, team, Some(1));
        assert_eq!(db.store.grabs().create_placeholder(first).await.unwrap(), PlaceholderOutcome::Stored);
        let own = stored(db, team).await.test;
        for (ceiling, is_refused) in [(Some(own), true), (Some(1), true), (Some(own + 1), false), (None, false)] {
            let expected = if is_refused { PlaceholderOutcome::StorageFull } else { PlaceholderOutcome::Stored };
            let new = test_grab(db, team, ceiling);
            let id = new.id;
            assert_eq!(db.store.grabs().create_placeholder(new).await.unwrap(), expected, "{ceiling:?}");
            let found = db.store.grabs().find_grab(team, Environment::Test, id).await.unwrap();
            assert_eq!(found.is_none(), is_refused);
            // Also with a key, for which several rows are stored.
            let new = NewPlaceholder { idempotency: with_key(&format!("k{ceiling:?}")), ..test_grab(db, team, ceiling) };
            let created = db.store.grabs().create_placeholder(new).await.unwrap();
            assert!(created == PlaceholderOutcome::StorageFull || !is_refused, "{ceiling:?} {created:?}");
        }
        // In one statement with those of other teams.
        let own = stored(db, team).await.test;
        let news = (0..40).map(|n| test_grab(db, if n % 2 == 0 { team } else { other }, Some(own)));
        let created = join_all(news.map(|new| db.store.grabs().create_placeholder(new))).await;
        for (n, created) in created.into_iter().enumerate() {
            let expected = if n % 2 == 0 { PlaceholderOutcome::StorageFull } else { PlaceholderOutcome::Stored };
            // Those of the other team add up, too.
            let created = created.unwrap();
            assert!(created == expected || n % 2 == 1, "{n} {created:?}");
        }
        assert_eq!(stored(db, team).await.test, own);
        assert!(stored(db, other).await.test >= own);
    }

    async fn repeated_create_is_answered_by_a_team_that_stores_too_much(db) {
        let team = db.team(0).await;
        let first = NewPlaceholder { idempotency: with_key("a"), ..test_grab(db, team, Some(1)) };
        db.store.grabs().create_placeholder(first.clone()).await.unwrap();
        let again = NewPlaceholder { id: GrabId(db.id()), ..first };
        let repeated = db.store.grabs().create_placeholder(again).await.unwrap();
        assert!(matches!(repeated, PlaceholderOutcome::Repeated(Repeat::Replay(_))), "{repeated:?}");
    }

    async fn keys_of_cached_answers_count_and_are_refused(db) {
        let team = db.team(0).await;
        let fingerprint = [7; 32];
        let new = NewPlaceholder { fingerprint: Some(fingerprint), ..test_grab(db, team, None) };
        db.store.grabs().create_placeholder(new).await.unwrap();
        let before = stored(db, team).await.test;
        let reuse = ReuseGrab { team, environment: Environment::Test, fingerprint, since: NOW, only_of: None, now: NOW };
        for n in 0..3 {
            let answer = db.store.grabs().reuse(reuse.clone(), with_key(&format!("k{n}")).unwrap(), None).await.unwrap();
            assert!(matches!(answer, Some(ReuseOutcome::Found(_))));
        }
        assert_eq!(stored(db, team).await.test - before, 3 * 600);
        let ceiling = Some(StorageCeiling { counted: Counted::Test, bytes: before });
        let refused = db.store.grabs().reuse(reuse.clone(), with_key("k4").unwrap(), ceiling).await.unwrap();
        assert_eq!(refused, Some(ReuseOutcome::StorageFull));
        let again = db.store.grabs().reuse(reuse, with_key("k0").unwrap(), ceiling).await.unwrap();
        assert!(matches!(again, Some(ReuseOutcome::Repeated(Repeat::Cached(_)))));
        assert_eq!(db.store.grabs().purge_keys(NOW + DAY, 9).await.unwrap(), 3);
        assert_eq!(stored(db, team).await.test, before);
    }

    async fn other_teams_of_a_payer_are_those_with_the_same_first_owner(db) {
        let (ada, first) = db.owned_team("ada@example.com").await;
        let second = TeamId(db.id());
        let name = TeamName::parse("A second team").unwrap();
        db.store.accounts().create_owned_team(second, name, ada, NOW).await.unwrap().unwrap();
        let (_, other) = db.owned_team("bob@example.com").await;
        let unowned = db.team(0).await;
        let fill = async |team, count| {
            for _ in 0..count {
                db.store.grabs().create_placeholder(test_grab(db, team, None)).await.unwrap();
            }
            stored(db, team).await.test
        };
        let (of_first, of_second) = (fill(first, 1).await, fill(second, 2).await);
        fill(other, 3).await;
        fill(unowned, 4).await;
        let others = async |team| db.store.grabs().storage_of_others(team).await.unwrap().test;
        assert_eq!((others(first).await, others(second).await), (of_second, of_first));
        assert_eq!((others(other).await, others(unowned).await), (0, 0));
        let (largest, _) = db.store.grabs().largest_payers(9).await.unwrap();
        let of_ada = PayerStorage { payer: PayerId(ada.0), bytes: u64::try_from(of_first + of_second).unwrap() };
        assert!(largest.contains(&of_ada), "{largest:?}");
        assert_eq!((largest.len(), largest[0].payer), (3, PayerId(unowned.0)));
    }

    async fn long_options_are_replaced_by_digests_and_everything_else_stays(db) {
        let team = db.team(9).await;
        let (long, short) = (spec_with_script(9000), spec_with_script(9));
        let mut ids = Vec::new();
        for (n, spec) in [&long, &short, &long].into_iter().enumerate() {
            let (id, idempotency) = (id_at(NOW, n as u128), with_key(&format!("k{n}")));
            let new = NewGrab { id, spec: spec.clone(), idempotency, ..db.new_grab(team, Class::Async) };
            assert_eq!(db.store.grabs().create(new).await.unwrap(), Created::Pending);
            // A cancelled grab has no idempotency key any more.
            let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, NOW)).await.unwrap().pop().unwrap();
            db.store.grabs().fail(failing(id, FailureSource::Lease(leased.token), NOW)).await.unwrap().unwrap();
            ids.push(id);
        }
        let image = ImageKey::new(1, "png");
        let test = NewPlaceholder {
            id: id_at(NOW, 9),
            spec: long.clone(),
            idempotency: with_key("t"),
            ..placeholder(GrabId(db.id()), team, done(Some(image.clone())))
        };
        db.store.grabs().create_placeholder(test.clone()).await.unwrap();
        let before = stored(db, team).await;

        let start = db.store.retention().request_progress(NOW).await.unwrap();
        let visited = db.store.retention().shorten_requests(start, NOW, NOW, 9).await.unwrap();
        assert_eq!((visited.grabs, visited.shortened), (0, 0), "not old enough");
        let old = NOW + Duration::from_secs(1);
        let visited = db.store.retention().shorten_requests(start, old, NOW, 2).await.unwrap();
        assert_eq!((visited.grabs, visited.shortened), (2, 1));
        db.store.retention().store_request_progress(visited.progress).await.unwrap();
        // After a restart it continues.
        let progress = db.store.retention().request_progress(NOW).await.unwrap();
        let visited = db.store.retention().shorten_requests(progress, old, NOW, 9).await.unwrap();
        assert_eq!((visited.grabs, visited.shortened), (2, 2));
        let visited = db.store.retention().shorten_requests(visited.progress, old, NOW, 9).await.unwrap();
        assert_eq!((visited.grabs, visited.shortened), (0, 0));
        // And begins again some day.
        let again = db.store.retention().request_progress(NOW + 8 * DAY).await.unwrap();
        assert_eq!(db.store.retention().shorten_requests(again, old, NOW, 9).await.unwrap().shortened, 0);

        for (id, is_long) in ids.iter().zip([true, false, true]) {
            let spec = db.grab(team, *id).await.spec;
            assert_eq!((spec.changes.script.is_none(), spec.omitted.len()), (is_long, usize::from(is_long)));
        }
        let after = stored(db, team).await;
        assert!(before.uncharged - after.uncharged > 17_000 && before.test - after.test > 8_500, "{before:?} {after:?}");
        // Repeated creates are still recognized, and answered with the same grab.
        let record = with_key("k0").unwrap();
        let repeat = db.store.grabs().find_repeat(team, Environment::Live, &record, NOW).await.unwrap();
        assert!(matches!(&repeat, Some(Repeat::Replay(grab)) if grab.id == ids[0]), "{repeat:?}");
        let repeat = db.store.grabs().create_placeholder(NewPlaceholder { id: GrabId(db.id()), ..test }).await.unwrap();
        assert!(matches!(repeat, PlaceholderOutcome::Repeated(Repeat::Replay(_))));
        assert!(db.store.grabs().find_image(&image).await.unwrap().is_some());
    }

    async fn rows_of_earlier_versions_are_counted_on_the_way(db) {
        let team = db.team(9).await;
        let id = id_at(NOW, 1);
        failed_live(db, NewGrab { id, spec: spec_with_script(4000), ..db.new_grab(team, Class::Sync) }).await;
        let open = id_at(NOW, 2);
        db.store.grabs().create(NewGrab { id: open, ..db.new_grab(team, Class::Sync) }).await.unwrap();
        let counted = stored(db, team).await;
        db.execute_raw("UPDATE grab SET stored_bytes = NULL").await.unwrap();
        assert_eq!(stored(db, team).await, StoredBytes::default());
        let start = db.store.retention().request_progress(NOW).await.unwrap();
        db.store.retention().shorten_requests(start, NOW + DAY, NOW, 9).await.unwrap();
        let after = stored(db, team).await;
        // Without the script, and at most the name and digest of it.
        assert!(counted.uncharged - after.uncharged > 3800 && after.uncharged > ROW, "{counted:?} {after:?}");
        // The next end counts as usual.
        db.store.grabs().fail(failing(open, FailureSource::Cancel, NOW)).await.unwrap().unwrap();
        assert!(stored(db, team).await.uncharged > after.uncharged + ROW);
    }

    async fn row_that_cannot_be_read_does_not_stop_the_visit(db) {
        let team = db.team(9).await;
        for n in 0..3 {
            failed_live(db, NewGrab { id: id_at(NOW, n), spec: spec_with_script(999), ..db.new_grab(team, Class::Sync) }).await;
        }
        let bad = db.literal(id_at(NOW, 1).0);
        let request = format!("{{{}", "x".repeat(999));
        db.execute_raw(&format!("UPDATE grab SET request = '{request}' WHERE id = {bad}")).await.unwrap();
        let start = db.store.retention().request_progress(NOW).await.unwrap();
        let visited = db.store.retention().shorten_requests(start, NOW + DAY, NOW, 9).await.unwrap();
        assert_eq!((visited.grabs, visited.shortened), (3, 2));
        assert_eq!(db.store.rows_set_aside().get("requests"), Some(&1));
    }

    async fn failed_live_grabs_are_purged_alone(db) {
        let team = db.team(9).await;
        let kept = done_live(db, team, spec_with_script(1)).await;
        let failed = failed_live(db, db.new_grab(team, Class::Sync)).await;
        db.store.grabs().create_placeholder(test_grab(db, team, None)).await.unwrap();
        let later = NOW + DAY;
        assert_eq!(db.store.retention().purge_grabs(PurgedGrabs::LiveFailed, NOW, later, 9).await.unwrap(), 0, "too young");
        assert_eq!(db.store.retention().purge_grabs(PurgedGrabs::LiveFailed, later, later, 9).await.unwrap(), 1);
        assert_eq!(db.store.grabs().find_grab(team, Environment::Live, failed).await.unwrap(), None);
        assert!(db.store.grabs().find_grab(team, Environment::Live, kept).await.unwrap().is_some());
        // A done grab that is missing is still noticed.
        let id = db.literal(kept.0);
        db.execute_raw(&format!("DELETE FROM grab WHERE id = {id}")).await.unwrap();
        assert!(!db.store.credits().verify_ledger().await.unwrap().is_empty());
        let raw = "INSERT INTO purge_mark (env, finished_until) VALUES (0, 1900000000000)";
        db.execute_raw(raw).await.unwrap();
    }

    async fn images_deleted_on_request_do_not_wait_for_a_retention(db) {
        let team = db.team(9).await;
        let later = NOW + DAY;
        let old = done_live(db, team, spec_with_script(1)).await;
        assert_eq!(db.store.retention().purge_images(later, NOW, 9).await.unwrap(), 1);
        let new = done_live(db, team, spec_with_script(1)).await;
        let key = db.store.grabs().find_grab(team, Environment::Live, new).await.unwrap().unwrap();
        assert!(db.store.grabs().delete_grab(team, Environment::Live, new, later).await.unwrap());
        let first = db.store.grabs().due_images(later, 1).await.unwrap().pop().unwrap();
        let grabd_domain::grabs::State::Done { image: Some(image), .. } = key.state else { panic!("not done") };
        assert_eq!(first, image);
        assert_eq!(db.store.grabs().due_images(later, 9).await.unwrap().len(), 2);
        assert_ne!(old, new);
    }
}
