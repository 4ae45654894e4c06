//! Revocation of grants and tokens.

use std::time::Duration;

use grabd_domain::ids::GrantId;
use grabd_domain::oauth::GRANTS;
use grabd_store::oauth::{RevokeOutcome, TokenOutcome};

use super::test_app::{TestApp, client_id, hash, new_client};
use crate::harness::{NOW, on_both};

on_both! {
    async fn revoking_a_refresh_token_ends_the_grant_and_an_access_token_only_itself(db) {
        let app = TestApp::new(db).await;
        let (first, second) = (app.connect(1).await, app.connect(2).await);
        let revoke = async |hash, client| db.store.oauth().revoke_token(hash, client).await.unwrap();
        let client = || app.client.clone();
        db.store.oauth().create_client(new_client(client_id('x'))).await.unwrap();

        assert_eq!(revoke(hash(b'r', 1), client_id('x')).await, RevokeOutcome::Foreign);
        assert_eq!(revoke(hash(b'a', 1), client_id('x')).await, RevokeOutcome::Foreign);
        assert_eq!(app.authenticate(1, NOW).await, app.caller(first));

        assert_eq!(revoke(hash(b'a', 1), client()).await, RevokeOutcome::Token);
        assert_eq!(app.authenticate(1, NOW).await, None);
        assert!(matches!(app.refresh(1, 3, NOW).await, TokenOutcome::Issued { .. }), "the grant is still valid");

        // A rotated refresh token revokes the same grant.
        assert_eq!(revoke(hash(b'r', 1), client()).await, RevokeOutcome::Grant(first));
        assert_eq!(app.authenticate(3, NOW).await, None);
        assert!(matches!(app.refresh(3, 4, NOW).await, TokenOutcome::Invalid(_)));
        assert_eq!(revoke(hash(b'r', 1), client()).await, RevokeOutcome::Unknown);
        assert_eq!(revoke(hash(b'r', 9), client()).await, RevokeOutcome::Unknown);
        assert_eq!(app.authenticate(2, NOW).await, app.caller(second));
    }

    async fn new_grant_ends_the_one_that_was_used_the_longest_time_ago_beyond_the_limit(db) {
        let (app, other) = (TestApp::new(db).await, TestApp::new(db).await);
        other.connect(9000).await;
        let all = u16::try_from(GRANTS).unwrap();
        let mut grants = Vec::new();
        for number in 1..=all {
            grants.push(app.connect(number).await);
        }
        // All are as old; the first one is used later.
        let later = NOW + Duration::from_secs(1);
        db.store.oauth().touch_grants(vec![grants[0]], later).await.unwrap();
        app.connect(all + 1).await;
        for (number, is_left) in [(1, true), (2, false), (3, true), (all + 1, true), (9000, true)] {
            assert_eq!(app.authenticate(number, later).await.is_some(), is_left, "{number}");
        }
    }

    async fn user_can_end_only_their_own_grants(db) {
        let (app, other) = (TestApp::new(db).await, TestApp::new(db).await);
        let grant = app.connect(1).await;
        assert!(!db.store.oauth().end_grant(other.user, grant).await.unwrap());
        assert!(!db.store.oauth().end_grant(app.user, GrantId(db.id())).await.unwrap());
        assert_eq!(app.authenticate(1, NOW).await, app.caller(grant));
        assert!(db.store.oauth().end_grant(app.user, grant).await.unwrap());
        assert_eq!(app.authenticate(1, NOW).await, None);
        assert!(matches!(app.refresh(1, 2, NOW).await, TokenOutcome::Invalid(_)));
        assert_eq!(db.store.oauth().list_connections(app.user, NOW).await.unwrap(), []);
        assert!(!db.store.oauth().end_grant(app.user, grant).await.unwrap());
    }

    async fn removing_a_member_ends_their_grants(db) {
        let (app, other) = (TestApp::new(db).await, TestApp::new(db).await);
        app.connect(1).await;
        app.consent(2).await;
        let theirs = other.connect(3).await;
        assert!(!db.store.accounts().remove_member(other.team, app.user).await.unwrap());
        assert!(db.store.accounts().remove_member(app.team, app.user).await.unwrap());
        assert_eq!(app.authenticate(1, NOW).await, None);
        assert!(matches!(app.refresh(1, 4, NOW).await, TokenOutcome::Invalid(_)));
        let exchanged = db.store.oauth().exchange(app.exchange(2, 5)).await.unwrap();
        assert!(matches!(exchanged, TokenOutcome::Invalid(_)), "a pending code is invalid: {exchanged:?}");
        assert_eq!(other.authenticate(3, NOW).await, other.caller(theirs));
    }

    async fn deleting_a_user_or_team_ends_its_grants(db) {
        let (app, other) = (TestApp::new(db).await, TestApp::new(db).await);
        app.connect(1).await;
        other.connect(2).await;
        assert!(db.store.accounts().remove_user(app.user).await.unwrap());
        assert_eq!(app.authenticate(1, NOW).await, None);
        db.execute_raw(&format!("DELETE FROM team WHERE id = {}", db.literal(other.team.0))).await.unwrap();
        assert_eq!(other.authenticate(2, NOW).await, None);
        assert!(matches!(other.refresh(2, 3, NOW).await, TokenOutcome::Invalid(_)));
    }
}
