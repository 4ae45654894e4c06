//! Purging of expired OAuth rows.

use std::time::Duration;

use grabd_domain::oauth::{ACCESS_LIFE, CODE_LIFE, GRANT_LIFE, REFRESH_LIFE, UNUSED_CLIENT_LIFE, USED_CODE_LIFE};
use grabd_store::oauth::{NewClient, NewConsentRequest, TokenOutcome};

use super::test_app::{TestApp, client_id, hash, new_client};
use crate::harness::{NOW, on_both};

const MOMENT: Duration = Duration::from_millis(1);

on_both! {
    async fn expired_consent_requests_codes_and_tokens_are_purged(db) {
        let app = TestApp::new(db).await;
        let expires_at = NOW + CODE_LIFE;
        for number in 1..=3 {
            let request =
                NewConsentRequest { hash: hash(b't', number), user: app.user, request: "{}".into(), expires_at };
            db.store.oauth().create_consent_request(request).await.unwrap();
        }
        let purge = async |now, limit| db.store.oauth().purge_oauth(now, limit).await.unwrap();
        assert_eq!(purge(expires_at - MOMENT, 9).await, 0);
        assert_eq!(purge(expires_at, 2).await, 2, "limited");
        assert_eq!(purge(expires_at, 2).await, 1);

        app.connect(1).await;
        assert_eq!(purge(NOW + ACCESS_LIFE - MOMENT, 9).await, 0);
        assert_eq!(purge(NOW + ACCESS_LIFE, 9).await, 1, "the access token");
        assert!(matches!(app.refresh(1, 2, NOW + ACCESS_LIFE).await, TokenOutcome::Issued { .. }));
        // Reuse of the code is detected for a day.
        let day = NOW + CODE_LIFE + USED_CODE_LIFE;
        assert_eq!(purge(day - MOMENT, 9).await, 1, "the second access token");
        assert_eq!(purge(day, 9).await, 1, "the code");
        assert_eq!(purge(NOW + REFRESH_LIFE - MOMENT, 9).await, 0, "the rotated refresh token is kept to detect reuse");
        assert_eq!(purge(NOW + REFRESH_LIFE, 9).await, 1, "the rotated refresh token");
    }

    async fn expired_and_never_connected_grants_are_purged(db) {
        let app = TestApp::new(db).await;
        app.consent(1).await;
        app.connect(2).await;
        db.store.oauth().purge_oauth(NOW + USED_CODE_LIFE, 9).await.unwrap();
        let listed = db.store.oauth().list_connections(app.user, NOW).await.unwrap();
        assert_eq!(listed.len(), 1, "the connected grant stays");
        assert!(matches!(app.refresh(2, 3, NOW + USED_CODE_LIFE).await, TokenOutcome::Issued { .. }));
        db.store.oauth().purge_oauth(NOW + GRANT_LIFE, 9).await.unwrap();
        assert_eq!(db.store.oauth().list_connections(app.user, NOW).await.unwrap(), []);
    }

    async fn grant_is_purged_when_its_last_refresh_token_has_expired(db) {
        let app = TestApp::new(db).await;
        let (grant, other) = (app.connect(1).await, app.connect(2).await);
        assert!(matches!(app.refresh(1, 3, NOW + MOMENT).await, TokenOutcome::Issued { .. }));
        let grants = async |now| {
            db.store.oauth().purge_oauth(now, 99).await.unwrap();
            let listed = db.store.oauth().list_connections(app.user, NOW).await.unwrap();
            listed.into_iter().map(|connection| connection.grant).collect::<Vec<_>>()
        };
        assert_eq!(grants(NOW + REFRESH_LIFE - MOMENT).await.len(), 2);
        assert_eq!(grants(NOW + REFRESH_LIFE).await, [grant], "{other} was not used for a month");
        assert_eq!(grants(NOW + REFRESH_LIFE + MOMENT).await, []);
        assert_eq!(db.store.oauth().purge_oauth(NOW + REFRESH_LIFE + MOMENT, 99).await.unwrap(), 0);
    }

    async fn unused_client_is_purged_after_a_day_unless_it_has_a_grant(db) {
        let app = TestApp::new(db).await;
        let used = app.connect(1).await;
        for letter in ['u', 'v', 'w'] {
            db.store.oauth().create_client(new_client(client_id(letter))).await.unwrap();
        }
        let late = NewClient { now: NOW + MOMENT, ..new_client(client_id('l')) };
        db.store.oauth().create_client(late).await.unwrap();
        let known = async |letter| db.store.oauth().find_client(client_id(letter).as_str()).await.unwrap().is_some();
        let day = NOW + UNUSED_CLIENT_LIFE;
        // Keeps the grant alive for a day; the access tokens and the code are purged first.
        assert!(matches!(app.refresh(1, 2, day - MOMENT).await, TokenOutcome::Issued { .. }));
        db.store.oauth().purge_oauth(day - MOMENT, 99).await.unwrap();
        assert!(known('u').await);
        let before = db.store.oauth().purge_oauth(day, 2).await.unwrap();
        assert!(before <= 4, "limited for each kind: {before}");
        assert_eq!([known('u').await, known('v').await, known('w').await].iter().filter(|known| **known).count(), 1);
        db.store.oauth().purge_oauth(day, 99).await.unwrap();
        assert!(!known('u').await && !known('v').await && !known('w').await);
        assert!(known('l').await && known('c').await);

        // A client without grants is kept for a day after its last use.
        assert!(db.store.oauth().end_grant(app.user, used).await.unwrap());
        db.store.oauth().purge_oauth(day + MOMENT, 99).await.unwrap();
        assert!(known('c').await && !known('l').await);
        db.store.oauth().purge_oauth(day + UNUSED_CLIENT_LIFE, 99).await.unwrap();
        assert!(!known('c').await);
    }

    async fn oldest_client_without_a_grant_makes_room_for_a_new_one(db) {
        let app = TestApp::new(db).await;
        let used = app.connect(1).await;
        assert!(matches!(app.refresh(1, 2, NOW + MOMENT).await, TokenOutcome::Issued { .. }));
        let limited = |letter, seconds| {
            let now = NOW + MOMENT * seconds;
            NewClient { max_unused: 2, now, ..new_client(client_id(letter)) }
        };
        let known = async |letter| db.store.oauth().find_client(client_id(letter).as_str()).await.unwrap().is_some();
        for (letter, seconds, forgotten) in [('u', 1, 0), ('v', 2, 0), ('w', 3, 1), ('x', 4, 1)] {
            assert_eq!(db.store.oauth().create_client(limited(letter, seconds)).await.unwrap(), forgotten, "{letter}");
        }
        assert_eq!([known('u').await, known('v').await, known('w').await, known('x').await], [false, false, true, true]);
        assert!(known('c').await, "a client with a grant is neither counted nor forgotten");
        // One that had a grant goes last.
        assert!(db.store.oauth().end_grant(app.user, used).await.unwrap());
        assert_eq!(db.store.oauth().create_client(limited('y', 5)).await.unwrap(), 2);
        assert_eq!([known('w').await, known('x').await, known('y').await, known('c').await], [false, false, true, true]);
    }
}
