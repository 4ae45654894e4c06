//! Creates that an earlier grab answers, and the secrets of links.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment::{self, Live, Test};
use grabd_domain::credentials::{Principal, Scopes};
use grabd_domain::grabs::{Class, Grab, ImageKey, State};
use grabd_domain::idempotency::{IdempotencyKey, LIFE};
use grabd_domain::ids::{GrabId, KeyId, TeamId, UserId};
use grabd_store::accounts::{NewKey, ShownLinkSecret, TeamSecret};
use grabd_store::grabs::{NewGrab, NewPlaceholder, NewRecord, Repeat, ReuseGrab, ReuseOutcome};

use crate::harness::{NOW, TestDb, completion, facts, on_both};

const FINGERPRINT: [u8; 32] = [7; 32];
const SECOND: Duration = Duration::from_secs(1);

/// A done live grab with the fingerprint, which ended two seconds after [`NOW`].
async fn done(db: &TestDb, team: TeamId) -> Grab {
    let new = NewGrab { fingerprint: Some(FINGERPRINT), ..db.new_grab(team, Class::Sync) };
    db.store.grabs().create(new).await.unwrap();
    let leased = db.lease_one().await;
    db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap().grab
}

fn reuse(team: TeamId, environment: Environment) -> ReuseGrab {
    ReuseGrab { team, environment, fingerprint: FINGERPRINT, since: NOW, only_of: None, now: NOW + 5 * SECOND }
}

async fn found(db: &TestDb, reuse: &ReuseGrab) -> Option<GrabId> {
    db.store.grabs().find_reusable(reuse).await.unwrap().map(|grab| grab.id)
}

fn record(key: &str, fingerprint: u8) -> NewRecord {
    NewRecord { key: IdempotencyKey::parse(key).unwrap(), fingerprint: [fingerprint; 32], only_of: None }
}

fn new_key(team: TeamId, id: KeyId, created_by: Option<UserId>) -> NewKey {
    NewKey {
        id,
        team,
        environment: Test,
        name: "A key".into(),
        hash: *id.0.as_bytes().repeat(2).first_chunk().unwrap(),
        last4: "abcd".into(),
        scopes: Scopes::ALL,
        expires_at: None,
        created_by,
        now: NOW,
    }
}

/// A link secret that is shown to an operator.
fn shown(team: TeamId, key: KeyId, sealed: Vec<u8>) -> ShownLinkSecret {
    ShownLinkSecret { team, key, sealed, by: None, now: NOW }
}

on_both! {
    async fn find_reusable_returns_the_latest_done_grab_that_is_not_too_old(db) {
        let team = db.team(5).await;
        assert_eq!(found(db, &reuse(team, Live)).await, None);
        let first = done(db, team).await;
        let ended = NOW + 2 * SECOND;
        let millisecond = Duration::from_millis(1);
        for (since, now, is_found) in [
            (NOW, NOW + 5 * SECOND, true),
            (ended, ended, true),
            (ended + millisecond, NOW + 5 * SECOND, false),
            // It has not ended yet.
            (NOW, ended - millisecond, false),
        ] {
            let asked = ReuseGrab { since, now, ..reuse(team, Live) };
            assert_eq!(found(db, &asked).await, is_found.then_some(first.id), "{since} {now}");
        }
        db.store.grabs().create(NewGrab { fingerprint: Some(FINGERPRINT), ..db.new_grab(team, Class::Sync) }).await.unwrap();
        let leased = db.lease_one().await;
        assert_eq!(found(db, &reuse(team, Live)).await, Some(first.id), "an open grab answers nothing");
        let later = grabd_store::grabs::Completion { now: NOW + 3 * SECOND, ..completion(&leased) };
        db.store.grabs().complete(later).await.unwrap().unwrap();
        assert_eq!(found(db, &reuse(team, Live)).await, Some(leased.grab));
    }

    async fn find_reusable_keeps_teams_environments_and_options_apart(db) {
        let (team, other) = (db.team(5).await, db.team(5).await);
        done(db, team).await;
        assert!(found(db, &reuse(team, Live)).await.is_some());
        assert_eq!(found(db, &reuse(other, Live)).await, None);
        assert_eq!(found(db, &reuse(team, Test)).await, None);
        assert_eq!(found(db, &ReuseGrab { fingerprint: [8; 32], ..reuse(team, Live) }).await, None);
    }

    async fn find_reusable_ignores_grabs_without_fingerprint_and_deleted_images(db) {
        let team = db.team(5).await;
        let leased = db.leased(team).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        assert_eq!(found(db, &reuse(team, Live)).await, None);
        let grab = done(db, team).await;
        assert_eq!(found(db, &reuse(team, Live)).await, Some(grab.id));
        assert!(db.store.grabs().delete_grab(team, Live, grab.id, NOW).await.unwrap());
        assert_eq!(found(db, &reuse(team, Live)).await, None);
    }

    async fn find_reusable_ignores_placeholders_that_end_in_the_future(db) {
        let team = db.team(0).await;
        let id = GrabId(db.id());
        let finished_at: Timestamp = NOW + 3 * SECOND;
        let image = Some(ImageKey::new(1, "png"));
        let outcome = State::Done { finished_at, image, size_bytes: 1, execution_ms: 1, metadata: facts() };
        let fingerprint = Some(FINGERPRINT);
        let new = NewPlaceholder { fingerprint, ..crate::placeholder::placeholder(id, team, outcome) };
        db.store.grabs().create_placeholder(new).await.unwrap();
        assert_eq!(found(db, &ReuseGrab { now: NOW + 2 * SECOND, ..reuse(team, Test) }).await, None);
        assert_eq!(found(db, &ReuseGrab { now: finished_at, ..reuse(team, Test) }).await, Some(id));
    }

    async fn keys_of_answers_are_stored_and_repeat_the_answer(db) {
        let team = db.team(5).await;
        let nothing = db.store.grabs().reuse(reuse(team, Live), record("a", 1), None).await.unwrap();
        assert_eq!(nothing, None, "nothing was found");
        assert_eq!(db.store.grabs().find_repeat(team, Live, &record("a", 1), NOW).await.unwrap(), None);
        let grab = Box::new(done(db, team).await);
        // Several keys may have the same answer.
        for key in ["a", "b"] {
            let first = db.store.grabs().reuse(reuse(team, Live), record(key, 1), None).await.unwrap();
            assert_eq!(first, Some(ReuseOutcome::Found(grab.clone())));
            let again = db.store.grabs().reuse(reuse(team, Live), record(key, 1), None).await.unwrap();
            assert_eq!(again, Some(ReuseOutcome::Repeated(Repeat::Cached(grab.clone()))));
            let repeat = db.store.grabs().find_repeat(team, Live, &record(key, 1), NOW).await.unwrap();
            assert_eq!(repeat, Some(Repeat::Cached(grab.clone())));
            let other = db.store.grabs().find_repeat(team, Live, &record(key, 2), NOW).await.unwrap();
            assert_eq!(other, Some(Repeat::Mismatch));
        }
        assert_eq!(db.credits(team).await, (4, 0));
        let later = NOW + 5 * SECOND + LIFE;
        assert_eq!(db.store.grabs().find_repeat(team, Live, &record("a", 1), later).await.unwrap(), None);
        assert_eq!(db.store.grabs().purge_keys(later, 10).await.unwrap(), 2);
        // A key that is used again for a new grab answers as usual.
        let new = NewGrab { idempotency: Some(record("a", 3)), ..db.new_grab(team, Class::Sync) };
        db.store.grabs().create(new).await.unwrap();
        assert_eq!(db.store.grabs().find_repeat(team, Live, &record("a", 3), NOW).await.unwrap(), Some(Repeat::InFlight));
    }

    async fn grabs_of_other_keys_answer_nothing_for_a_key_that_may_not_read(db) {
        let team = db.team(5).await;
        let [own, other] = [(); 2].map(|()| KeyId(db.id()));
        for (number, key) in [own, other].into_iter().enumerate() {
            db.store.accounts().create_key(new_key(team, key, None)).await.unwrap();
            let once = Some(record(&format!("key-{number}"), 1));
            let base = db.new_grab(team, Class::Sync);
            let new = NewGrab { fingerprint: Some(FINGERPRINT), creator: Some(Principal::Key(key)), idempotency: once, ..base };
            db.store.grabs().create(new).await.unwrap();
            let leased = db.lease_one().await;
            db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        }
        let of = |only_of| ReuseGrab { only_of, ..reuse(team, Live) };
        let newest = found(db, &of(None)).await.unwrap();
        let (of_own, of_other) = (found(db, &of(Some(own))).await.unwrap(), found(db, &of(Some(other))).await.unwrap());
        assert!(of_own != of_other && (newest == of_own || newest == of_other));
        assert!(db.store.grabs().is_grab_of_key(of_own, own).await.unwrap());
        assert!(!db.store.grabs().is_grab_of_key(of_other, own).await.unwrap());
        assert_eq!(found(db, &of(Some(KeyId(db.id())))).await, None);
        // Idempotency keys likewise.
        let repeat = async |once, only_of| {
            let record = NewRecord { only_of, ..record(once, 1) };
            db.store.grabs().find_repeat(team, Live, &record, NOW).await.unwrap()
        };
        assert!(matches!(repeat("key-0", Some(own)).await, Some(Repeat::Replay(_))));
        assert!(matches!(repeat("key-1", Some(own)).await, Some(Repeat::Mismatch)));
        assert!(matches!(repeat("key-1", None).await, Some(Repeat::Replay(_))));
    }

    async fn replaced_link_secret_is_known_to_whom_it_was_shown_only(db) {
        let (team, id, other) = (db.team(0).await, KeyId(db.id()), db.team(0).await);
        let (ada, bob) = (UserId(db.id()), UserId(db.id()));
        db.store.accounts().create_key(new_key(team, id, Some(ada))).await.unwrap();
        let known = async || {
            let known = db.store.accounts().list_known_secrets(team, NOW).await.unwrap();
            known.into_iter().map(|known| (known.secret, known.user)).collect::<Vec<_>>()
        };
        let (key, link) = (TeamSecret::Key(id), TeamSecret::Link(id));
        assert_eq!(known().await, [(key, Some(ada))]);
        for by in [Some(ada), Some(bob), None, Some(bob)] {
            let shown = ShownLinkSecret { by, ..shown(team, id, vec![1]) };
            assert_eq!(db.store.accounts().set_link_secret(shown).await.unwrap(), Some(vec![1]));
        }
        let mut of_link = known().await;
        of_link.sort();
        let mut expected = vec![(key, Some(ada)), (link, Some(ada)), (link, Some(bob))];
        expected.sort();
        assert_eq!(of_link, expected);
        assert!(!db.store.accounts().replace_link_secret(shown(other, id, vec![9])).await.unwrap(), "another team's");
        let replaced = ShownLinkSecret { by: Some(bob), ..shown(team, id, vec![2]) };
        assert!(db.store.accounts().replace_link_secret(replaced).await.unwrap());
        assert_eq!(known().await, [(key, Some(ada)), (link, Some(bob))]);
        assert_eq!(db.store.accounts().find_link_signer(id).await.unwrap().unwrap().sealed_secret, Some(vec![2]));
        assert!(db.store.accounts().revoke_key(id, NOW).await.unwrap());
        assert_eq!(known().await, []);
        assert!(!db.store.accounts().replace_link_secret(shown(team, id, vec![3])).await.unwrap());
    }

    async fn link_secret_is_set_once_for_keys_in_use_of_the_team(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        let id = KeyId(db.id());
        db.store.accounts().create_key(new_key(team, id, None)).await.unwrap();
        let signer = || async { db.store.accounts().find_link_signer(id).await.unwrap() };
        let before = signer().await.unwrap();
        assert_eq!((before.caller.team, before.caller.environment), (team, Test));
        assert_eq!((before.sealed_secret, before.is_suspended), (None, false));
        assert_eq!(db.store.accounts().set_link_secret(shown(other, id, vec![9])).await.unwrap(), None);
        assert_eq!(db.store.accounts().set_link_secret(shown(team, id, vec![1])).await.unwrap(), Some(vec![1]));
        assert_eq!(db.store.accounts().set_link_secret(shown(team, id, vec![2])).await.unwrap(), Some(vec![1]));
        assert_eq!(signer().await.unwrap().sealed_secret, Some(vec![1]));
        db.store.accounts().suspend_team(team, "a reason", NOW).await.unwrap();
        assert!(signer().await.unwrap().is_suspended);
        assert!(db.store.accounts().revoke_key(id, NOW).await.unwrap());
        assert_eq!(signer().await, None);
        assert_eq!(db.store.accounts().set_link_secret(shown(team, id, vec![3])).await.unwrap(), None);
    }
}

/// The lookup uses its index on PostgreSQL, also for a team with many grabs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn find_reusable_uses_its_index() {
    let db = TestDb::postgres().await;
    let team = db.team(0).await;
    let history = format!(
        "INSERT INTO grab (id, team_id, env, class, status, request, attempts, created_at, finished_at, image_key, \
         bytes, execution_ms, fingerprint) \
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, {team}, 1, 0, 2, '{{}}', 1, {now} + n, \
         {now} + n, lpad(n::text, 22, '0') || '.png', 1, 1, sha256(n::text::bytea) FROM generate_series(1, 5000) n",
        team = db.literal(team.0),
        now = NOW.as_ms(),
    );
    db.execute_raw(&history).await.unwrap();
    db.execute_raw("VACUUM ANALYZE").await.unwrap();
    let explain = "DO $$ BEGIN \
        EXECUTE format('ALTER DATABASE %I SET session_preload_libraries = auto_explain', current_database()); \
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_min_duration = 0', current_database()); \
        EXECUTE format('ALTER DATABASE %I SET plan_cache_mode = force_generic_plan', current_database()); END $$";
    db.execute_raw(explain).await.unwrap();
    // The settings apply only to new connections.
    let store = grabd_store::Store::open(&db.url).await.unwrap();
    assert_eq!(store.grabs().find_reusable(&reuse(team, Test)).await.unwrap(), None);
    store.close().await;
    let log = db.server_log();
    let plan = log.split("plan:\n").skip(1).find(|plan| plan.contains("\"fingerprint\" =")).unwrap_or_default();
    assert!(plan.contains("grab_fingerprint on grab") && !plan.contains("Sort"), "{log}");
    db.finish().await;
}
