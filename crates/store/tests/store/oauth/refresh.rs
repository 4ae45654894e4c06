//! Refresh token rotation and reuse detection.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::oauth::{
    ACCESS_LIFE, ACCESS_TOKENS, GRANT_LIFE, MAX_REFRESH_RETRIES, OauthScopes, REFRESH_LIFE, USED_REFRESH_TOKENS,
};
use grabd_store::oauth::{Refresh, TokenOutcome};

use super::test_app::{GRACE, TestApp, client_id, new_client};
use crate::harness::{NOW, TestDb, on_both};

const MOMENT: Duration = Duration::from_millis(1);

fn is_issued(exchanged: &TokenOutcome) -> bool {
    matches!(exchanged, TokenOutcome::Issued { .. })
}

async fn assert_revoked(app: &TestApp<'_>, numbers: &[u16], now: Timestamp) {
    for number in numbers {
        assert_eq!(app.authenticate(*number, now).await, None, "{number}");
        let refreshed = app.refresh(*number, 99, now).await;
        assert!(matches!(refreshed, TokenOutcome::Invalid(_)), "{number}: {refreshed:?}");
    }
}

async fn refresh_succeeds(db: &TestDb, app: &TestApp<'_>, token: u16, pair: u16, now: Timestamp) -> bool {
    is_issued(&db.store.oauth().refresh(app.refresh_request(token, pair, now)).await.unwrap())
}

on_both! {
    async fn refresh_issues_the_next_pair(db) {
        let app = TestApp::new(db).await;
        let grant = app.connect(1).await;
        let later = NOW + ACCESS_LIFE;
        let expected = TokenOutcome::Issued { grant, scopes: OauthScopes::GRABS, expires_at: later + ACCESS_LIFE };
        assert_eq!(app.refresh(1, 2, later).await, expected);
        assert_eq!(app.authenticate(2, later).await, app.caller(grant));
        assert!(refresh_succeeds(db, &app, 2, 3, later).await);
    }

    async fn refresh_token_reuse_after_grace_revokes_the_grant(db) {
        let app = TestApp::new(db).await;
        let (grant, other) = (app.connect(1).await, app.connect(5).await);
        assert!(refresh_succeeds(db, &app, 1, 2, NOW).await);
        assert!(refresh_succeeds(db, &app, 1, 3, NOW + GRACE - MOMENT).await, "retry after a lost response");
        assert_eq!(app.refresh(1, 4, NOW + GRACE).await, TokenOutcome::Replayed(grant));
        assert_revoked(&app, &[1, 2, 3, 4], NOW + GRACE).await;
        assert_eq!(app.authenticate(5, NOW).await, app.caller(other));
    }

    async fn refresh_token_reuse_after_its_successor_was_used_revokes_the_grant(db) {
        let app = TestApp::new(db).await;
        let grant = app.connect(1).await;
        assert!(refresh_succeeds(db, &app, 1, 2, NOW).await);
        assert!(refresh_succeeds(db, &app, 2, 3, NOW).await, "the successor was used");
        assert_eq!(app.refresh(1, 4, NOW + MOMENT).await, TokenOutcome::Replayed(grant));
        assert_revoked(&app, &[1, 2, 3, 4], NOW).await;
    }

    async fn refresh_token_reuse_after_a_sibling_was_used_revokes_the_grant(db) {
        let app = TestApp::new(db).await;
        let grant = app.connect(1).await;
        assert!(refresh_succeeds(db, &app, 1, 2, NOW).await);
        assert!(refresh_succeeds(db, &app, 1, 3, NOW).await);
        assert!(refresh_succeeds(db, &app, 3, 4, NOW).await);
        assert!(refresh_succeeds(db, &app, 2, 5, NOW).await, "the other process keeps its own pair");
        assert_eq!(app.refresh(1, 6, NOW).await, TokenOutcome::Replayed(grant));
    }

    async fn refresh_token_reuse_within_grace_is_accepted_three_times(db) {
        let app = TestApp::new(db).await;
        let grant = app.connect(1).await;
        for number in 0..=u16::try_from(MAX_REFRESH_RETRIES).unwrap() {
            assert!(refresh_succeeds(db, &app, 1, 2 + number, NOW).await, "{number}");
        }
        assert_eq!(app.refresh(1, 9, NOW).await, TokenOutcome::Replayed(grant));
        assert_revoked(&app, &[1, 2, 3, 4, 5, 9], NOW).await;
    }

    async fn refresh_token_reuse_without_grace_revokes_the_grant(db) {
        let app = TestApp::new(db).await;
        let grant = app.connect(1).await;
        let strict = |pair| Refresh { grace: Duration::ZERO, ..app.refresh_request(1, pair, NOW) };
        assert!(is_issued(&db.store.oauth().refresh(strict(2)).await.unwrap()));
        assert_eq!(db.store.oauth().refresh(strict(3)).await.unwrap(), TokenOutcome::Replayed(grant));
        assert_revoked(&app, &[1, 2, 3], NOW).await;
    }

    async fn refresh_by_another_client_is_rejected_and_keeps_the_grant(db) {
        let app = TestApp::new(db).await;
        db.store.oauth().create_client(new_client(client_id('x'))).await.unwrap();
        let grant = app.connect(1).await;
        let foreign = |pair, now| Refresh { client: client_id('x'), ..app.refresh_request(1, pair, now) };
        assert!(matches!(db.store.oauth().refresh(foreign(2, NOW)).await.unwrap(), TokenOutcome::Invalid(_)));
        assert!(refresh_succeeds(db, &app, 1, 3, NOW).await);
        let late = db.store.oauth().refresh(foreign(4, NOW + GRACE)).await.unwrap();
        assert!(matches!(late, TokenOutcome::Invalid(_)), "{late:?}");
        assert_eq!(app.authenticate(3, NOW).await, app.caller(grant));
    }

    async fn refresh_extends_the_token_but_not_the_grant(db) {
        let app = TestApp::new(db).await;
        let grant = app.connect(1).await;
        assert!(
            matches!(app.refresh(1, 2, NOW + REFRESH_LIFE).await, TokenOutcome::Invalid(_)),
            "expired after a month"
        );
        let (mut now, mut token) = (NOW, 1);
        loop {
            now = now + REFRESH_LIFE - MOMENT;
            if now >= NOW + GRANT_LIFE {
                break;
            }
            assert!(refresh_succeeds(db, &app, token, token + 1, now).await, "{token}");
            token += 1;
        }
        assert_eq!(token, 7, "about half a year");
        let end = NOW + GRANT_LIFE;
        let expected = TokenOutcome::Issued { grant, scopes: OauthScopes::GRABS, expires_at: end };
        assert_eq!(app.refresh(token, 50, end - MOMENT).await, expected, "tokens expire with the grant");
        assert_eq!(app.authenticate(50, end).await, None);
        assert!(matches!(app.refresh(50, 51, end).await, TokenOutcome::Invalid(_)));
        assert_eq!(db.store.oauth().list_connections(app.user, end).await.unwrap(), []);
    }

    async fn refresh_rejects_an_access_token(db) {
        let app = TestApp::new(db).await;
        app.connect(1).await;
        let refresh = Refresh { token: super::test_app::hash(b'a', 1), ..app.refresh_request(1, 2, NOW) };
        assert!(matches!(db.store.oauth().refresh(refresh).await.unwrap(), TokenOutcome::Invalid(_)));
    }

    async fn only_the_latest_access_tokens_are_kept(db) {
        let app = TestApp::new(db).await;
        let grant = app.connect(0).await;
        let last = u16::try_from(ACCESS_TOKENS).unwrap() + 1;
        let time = |number: u16| NOW + GRACE * u32::from(number);
        for number in 0..last {
            assert!(refresh_succeeds(db, &app, number, number + 1, time(number)).await, "{number}");
        }
        for (number, expected) in [(0, None), (1, None), (2, app.caller(grant)), (last, app.caller(grant))] {
            assert_eq!(app.authenticate(number, time(last)).await, expected, "{number}");
        }
    }

    async fn only_the_latest_used_refresh_tokens_are_kept(db) {
        let app = TestApp::new(db).await;
        let grant = app.connect(0).await;
        let last = u16::try_from(USED_REFRESH_TOKENS).unwrap() + 1;
        for number in 0..last {
            let now = NOW + MOMENT * u32::from(number);
            assert!(refresh_succeeds(db, &app, number, number + 1, now).await, "{number}");
        }
        let later = NOW + GRACE * 2;
        // The oldest one is forgotten, so its reuse is refused and ends nothing. That of the next one does.
        assert_eq!(app.refresh(0, 9999, later).await, TokenOutcome::Invalid("unknown refresh token"));
        assert_eq!(app.authenticate(last, later).await, app.caller(grant));
        assert_eq!(app.refresh(1, 9999, later).await, TokenOutcome::Replayed(grant));
    }
}
