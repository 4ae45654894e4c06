//! Concurrent exchanges: a code yields one token pair, a refresh token as many as the grace period allows.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::oauth::MAX_REFRESH_RETRIES;
use grabd_store::oauth::{NewConsentRequest, Refresh, TokenOutcome};
use tokio_util::task::TaskTracker;

use super::test_app::{TestApp, hash};
use crate::harness::{NOW, TestDb, on_both};

const CROWD: u16 = 20;

/// Number of issued pairs and of detected reuses.
fn count(outcomes: &[TokenOutcome]) -> (usize, usize) {
    let issued = outcomes.iter().filter(|outcome| matches!(outcome, TokenOutcome::Issued { .. })).count();
    let replayed = outcomes.iter().filter(|outcome| matches!(outcome, TokenOutcome::Replayed(_))).count();
    (issued, replayed)
}

async fn refresh_at_once(db: &TestDb, refreshes: Vec<Refresh>) -> Vec<TokenOutcome> {
    let tasks = TaskTracker::new();
    let each = refreshes.into_iter().map(|refresh| {
        let store = db.store.clone();
        tasks.spawn(async move { store.oauth().refresh(refresh).await.unwrap() })
    });
    join_all(each.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap).collect()
}

on_both! {
    async fn concurrent_code_exchanges_issue_one_pair_and_revoke_the_grant(db) {
        let app = TestApp::new(db).await;
        for round in 0..5 {
            app.consent(round).await;
            let tasks = TaskTracker::new();
            let each = (0..CROWD).map(|number| {
                let (store, exchange) = (db.store.clone(), app.exchange(round, 100 + number));
                tasks.spawn(async move { store.oauth().exchange(exchange).await.unwrap() })
            });
            let outcomes: Vec<_> = join_all(each.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap).collect();
            assert_eq!(count(&outcomes), (1, 1), "{outcomes:?}");
            for number in 0..CROWD {
                assert_eq!(app.authenticate(100 + number, NOW).await, None, "the first pair is revoked");
            }
        }
    }

    async fn concurrent_refreshes_within_grace_get_up_to_three_sibling_pairs(db) {
        let app = TestApp::new(db).await;
        let most = 1 + u16::try_from(MAX_REFRESH_RETRIES).unwrap();
        let grant = app.connect(1).await;
        let refreshes = (0..most).map(|number| app.refresh_request(1, 100 + number, NOW)).collect();
        let outcomes = refresh_at_once(db, refreshes).await;
        assert_eq!(count(&outcomes), (usize::from(most), 0), "{outcomes:?}");
        for number in 0..most {
            assert_eq!(app.authenticate(100 + number, NOW).await, app.caller(grant));
        }

        app.connect(2).await;
        let refreshes = (0..CROWD).map(|number| app.refresh_request(2, 200 + number, NOW)).collect();
        let outcomes = refresh_at_once(db, refreshes).await;
        assert_eq!(count(&outcomes), (usize::from(most), 1), "{outcomes:?}");
        for number in 0..CROWD {
            assert_eq!(app.authenticate(200 + number, NOW).await, None, "the grant is revoked");
        }
        assert_eq!(app.authenticate(100, NOW).await, app.caller(grant));
    }

    async fn concurrent_refreshes_without_grace_revoke_the_grant(db) {
        let app = TestApp::new(db).await;
        app.connect(1).await;
        let strict = |number| Refresh { grace: Duration::ZERO, ..app.refresh_request(1, 100 + number, NOW) };
        let outcomes = refresh_at_once(db, (0..CROWD).map(strict).collect()).await;
        assert_eq!(count(&outcomes), (1, 1), "{outcomes:?}");
        for number in 0..CROWD {
            assert_eq!(app.authenticate(100 + number, NOW).await, None);
        }
    }

    async fn concurrent_consumers_of_a_consent_request_have_one_winner(db) {
        let app = TestApp::new(db).await;
        let expires_at = NOW + Duration::from_secs(1);
        let request = NewConsentRequest { hash: hash(b't', 1), user: app.user, request: "{}".into(), expires_at };
        db.store.oauth().create_consent_request(request).await.unwrap();
        let each = (0..CROWD).map(|_| db.store.oauth().consume_consent_request(hash(b't', 1), app.user, NOW));
        let taken = join_all(each).await.into_iter().filter(|taken| taken.as_ref().unwrap().is_some()).count();
        assert_eq!(taken, 1);
    }

    async fn grant_ended_during_a_refresh_leaves_no_tokens(db) {
        let app = TestApp::new(db).await;
        for round in 0..10 {
            let grant = app.connect(round).await;
            let (refreshed, ended) =
                tokio::join!(app.refresh(round, 100 + round, NOW), db.store.oauth().end_grant(app.user, grant),);
            assert!(ended.unwrap());
            assert!(matches!(refreshed, TokenOutcome::Issued { .. } | TokenOutcome::Invalid(_)), "{refreshed:?}");
            assert_eq!((app.authenticate(round, NOW).await, app.authenticate(100 + round, NOW).await), (None, None));
        }
    }
}
