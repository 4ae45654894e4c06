//! Consent requests and the exchange of authorization codes.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::Role;
use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::ids::{GrantId, TeamId, UserId};
use grabd_domain::oauth::{
    ACCESS_LIFE, AuthMethod, CODE_LIFE, Challenge, ClientMetadata, OauthScopes, RedirectUri, Resources,
};
use grabd_store::Error;
use grabd_store::oauth::{
    Client, ConsentOutcome, Exchange, NewClient, NewConsent, NewConsentRequest, Refresh, TokenOutcome,
};

use super::test_app::{TestApp, client_id, hash, new_client, redirect};
use crate::harness::{NOW, on_both};

const SOON: Duration = Duration::from_secs(1);

fn issued(grant: GrantId, expires_at: Timestamp) -> TokenOutcome {
    TokenOutcome::Issued { grant, scopes: OauthScopes::GRABS, expires_at }
}

on_both! {
    async fn client_is_found_as_registered(db) {
        let redirect_uris =
            ["https://a.example/cb", "cursor://x/y"].map(|uri| RedirectUri::parse(uri).unwrap()).to_vec();
        let metadata = ClientMetadata { name: "É & Co".into(), redirect_uris, auth_method: AuthMethod::Post };
        let id = client_id('p');
        let secret_hash = Some([7; 32]);
        let new = NewClient { id: id.clone(), secret_hash, metadata: metadata.clone(), now: NOW, max_unused: 100 };
        db.store.oauth().create_client(new.clone()).await.unwrap();
        let found = db.store.oauth().find_client(id.as_str()).await.unwrap();
        assert_eq!(found, Some(Client { metadata, secret_hash: Some([7; 32]) }));
        assert_eq!(db.store.oauth().find_client(client_id('q').as_str()).await.unwrap(), None);
        for bad in [new.clone(), NewClient { id: client_id('q'), secret_hash: None, ..new }] {
            let refused = db.store.oauth().create_client(bad).await;
            assert!(matches!(refused, Err(Error::Constraint(_))), "{refused:?}");
        }
    }

    async fn consent_request_can_be_consumed_once_by_its_user_before_expiry(db) {
        let (app, other) = (TestApp::new(db).await, TestApp::new(db).await);
        let create = async |number| {
            let expires_at = NOW + SOON;
            let request =
                NewConsentRequest { hash: hash(b't', number), user: app.user, request: "{}".into(), expires_at };
            db.store.oauth().create_consent_request(request).await.unwrap();
        };
        let consume =
            async |number, user, now| db.store.oauth().consume_consent_request(hash(b't', number), user, now).await.unwrap();
        create(1).await;
        assert_eq!(consume(1, other.user, NOW).await, None, "another person's request");
        assert_eq!(consume(1, app.user, NOW).await, Some("{}".to_owned()));
        assert_eq!(consume(1, app.user, NOW).await, None, "already consumed");
        create(2).await;
        assert_eq!(consume(2, app.user, NOW + SOON).await, None, "expired");
    }

    async fn user_has_a_limited_number_of_open_consent_requests(db) {
        let (app, other) = (TestApp::new(db).await, TestApp::new(db).await);
        let create = async |number: u16, user| {
            let expires_at = NOW + SOON * u32::from(number + 1);
            let request = NewConsentRequest { hash: hash(b't', number), user, request: "{}".into(), expires_at };
            db.store.oauth().create_consent_request(request).await.unwrap();
        };
        create(99, other.user).await;
        for number in 0..22 {
            create(number, app.user).await;
        }
        let consume = async |number, user| db.store.oauth().consume_consent_request(hash(b't', number), user, NOW).await.unwrap();
        for (number, is_open) in [(0, false), (1, false), (2, true), (21, true)] {
            assert_eq!(consume(number, app.user).await.is_some(), is_open, "{number}");
        }
        assert!(consume(99, other.user).await.is_some());
    }

    async fn consent_requires_membership_of_an_active_team(db) {
        let (app, other) = (TestApp::new(db).await, TestApp::new(db).await);
        for team in [other.team, TeamId(db.id())] {
            let consent = NewConsent { team, ..app.new_consent(1) };
            assert_eq!(db.store.oauth().consent(consent).await.unwrap(), ConsentOutcome::NotMember);
        }
        let consent = NewConsent { user: UserId(db.id()), ..app.new_consent(1) };
        assert_eq!(db.store.oauth().consent(consent).await.unwrap(), ConsentOutcome::NotMember);
        db.execute_raw("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(db.store.oauth().consent(app.new_consent(1)).await.unwrap(), ConsentOutcome::NotMember);
    }

    async fn role_without_apps_ends_grants_and_allows_no_new_ones(db) {
        for role in [Role::Viewer, Role::Billing] {
            let (app, other) = (TestApp::new(db).await, TestApp::new(db).await);
            db.store.accounts().add_member(app.team, other.user, NOW).await.unwrap();
            db.store.accounts().set_role(app.team, other.user, Role::Owner, app.user).await.unwrap().unwrap();
            let number = if role == Role::Viewer { 10 } else { 20 };
            app.consent(number).await;
            db.store.oauth().exchange(app.exchange(number, number)).await.unwrap();
            app.consent(number + 1).await;
            assert!(app.authenticate(number, NOW).await.is_some());
            // A role with apps keeps them.
            db.store.accounts().set_role(app.team, app.user, Role::Member, other.user).await.unwrap().unwrap();
            assert!(app.authenticate(number, NOW).await.is_some());

            db.store.accounts().set_role(app.team, app.user, role, other.user).await.unwrap().unwrap();
            assert_eq!(app.authenticate(number, NOW).await, None, "{role:?}");
            assert_eq!(db.store.oauth().list_connections(app.user, NOW).await.unwrap(), [], "{role:?}");
            let exchanged = db.store.oauth().exchange(app.exchange(number + 1, number + 1)).await.unwrap();
            assert!(matches!(exchanged, TokenOutcome::Invalid(_)), "{role:?} {exchanged:?}");
            let refused = db.store.oauth().consent(app.new_consent(number + 2)).await.unwrap();
            assert_eq!(refused, ConsentOutcome::NotAllowed, "{role:?}");
            // They do not come back with the former role.
            db.store.accounts().set_role(app.team, app.user, Role::Member, other.user).await.unwrap().unwrap();
            assert_eq!(app.authenticate(number, NOW).await, None, "{role:?}");
        }
    }

    async fn code_exchange_issues_tokens_for_the_team_and_environment(db) {
        let (app, other) = (TestApp::new(db).await, TestApp::new(db).await);
        let grant = app.consent(1).await;
        assert_eq!(db.store.oauth().list_connections(app.user, NOW).await.unwrap(), [], "not connected yet");
        let exchanged = db.store.oauth().exchange(app.exchange(1, 1)).await.unwrap();
        assert_eq!(exchanged, issued(grant, NOW + ACCESS_LIFE));
        let expected = Caller { team: app.team, environment: Environment::Test, principal: Principal::Grant(grant) };
        assert_eq!(app.authenticate(1, NOW).await, Some(expected));
        let last = NOW + ACCESS_LIFE - Duration::from_millis(1);
        assert_eq!(app.authenticate(1, last).await, Some(expected));
        assert_eq!(app.authenticate(1, NOW + ACCESS_LIFE).await, None);
        assert_eq!(
            db.store.oauth().authenticate_token(&hash(b'r', 1), NOW).await.unwrap(),
            None,
            "a refresh token does not authenticate"
        );
        assert_eq!(db.store.accounts().authenticate(&hash(b'a', 1)).await.unwrap(), None, "an access token is not an API key");

        db.store.oauth().touch_grants(vec![grant], NOW + SOON).await.unwrap();
        db.store.oauth().touch_grants(vec![grant], NOW).await.unwrap();
        let connected = db.store.oauth().list_connections(app.user, NOW).await.unwrap();
        assert_eq!(connected.len(), 1);
        assert_eq!((connected[0].grant, connected[0].last_used_at), (grant, Some(NOW + SOON)));
        assert_eq!((connected[0].environment, connected[0].team_name.as_str()), (Environment::Test, "A team"));
        assert_eq!(db.store.oauth().list_connections(other.user, NOW).await.unwrap(), []);
    }

    async fn live_and_test_grants_are_separate(db) {
        let app = TestApp::new(db).await;
        app.connect(1).await;
        let live = NewConsent { environment: Environment::Live, ..app.new_consent(2) };
        assert_eq!(db.store.oauth().consent(live).await.unwrap(), ConsentOutcome::Granted);
        db.store.oauth().exchange(app.exchange(2, 2)).await.unwrap();
        assert_eq!(app.authenticate(1, NOW).await.unwrap().environment, Environment::Test);
        assert_eq!(app.authenticate(2, NOW).await.unwrap().environment, Environment::Live);
    }

    async fn mismatched_code_exchange_is_rejected_and_keeps_the_code(db) {
        let app = TestApp::new(db).await;
        db.store.oauth().create_client(new_client(client_id('x'))).await.unwrap();
        let grant = app.consent(1).await;
        let good = || app.exchange(1, 1);
        let other = Challenge::parse(&"x".repeat(43), Some("S256")).unwrap();
        let wrong = [
            Exchange { code: hash(b'c', 9), ..good() },
            Exchange { client: client_id('x'), ..good() },
            Exchange { redirect: Some(format!("{}/", redirect())), ..good() },
            Exchange { redirect: Some(String::new()), ..good() },
            Exchange { challenge: other, ..good() },
            Exchange { now: NOW + CODE_LIFE, ..good() },
        ];
        for exchange in wrong {
            let refused = db.store.oauth().exchange(exchange.clone()).await.unwrap();
            assert!(matches!(refused, TokenOutcome::Invalid(_)), "{exchange:?}: {refused:?}");
            assert_eq!(app.authenticate(1, NOW).await, None);
        }
        let last = NOW + CODE_LIFE - Duration::from_millis(1);
        let exchanged = db.store.oauth().exchange(Exchange { redirect: None, now: last, ..good() }).await.unwrap();
        assert_eq!(exchanged, issued(grant, last + ACCESS_LIFE));
    }

    async fn exchange_rejects_resources_that_were_not_granted(db) {
        let app = TestApp::new(db).await;
        let (mcp, api) = (Resources::from_text("https://a.example/mcp"), Resources::from_text("https://a.example/v1"));
        let consent = NewConsent { resources: mcp.clone(), ..app.new_consent(1) };
        db.store.oauth().consent(consent).await.unwrap();
        let foreign = Exchange { resources: api.clone(), ..app.exchange(1, 1) };
        assert_eq!(db.store.oauth().exchange(foreign).await.unwrap(), TokenOutcome::InvalidTarget);
        let own = Exchange { resources: mcp, ..app.exchange(1, 1) };
        assert!(matches!(db.store.oauth().exchange(own).await.unwrap(), TokenOutcome::Issued { .. }));
        let mut foreign = app.refresh_request(1, 2, NOW);
        foreign.resources = api;
        assert_eq!(db.store.oauth().refresh(foreign).await.unwrap(), TokenOutcome::InvalidTarget);
        assert!(matches!(app.refresh(1, 2, NOW).await, TokenOutcome::Issued { .. }), "the token was not used up");
    }

    async fn tokens_have_the_scopes_that_were_granted_and_a_refresh_may_ask_for_fewer(db) {
        let app = TestApp::new(db).await;
        let manage = OauthScopes::from_bits(2).unwrap();
        let consent = NewConsent { scopes: OauthScopes::ALL, ..app.new_consent(1) };
        db.store.oauth().consent(consent).await.unwrap();
        db.store.oauth().exchange(app.exchange(1, 1)).await.unwrap();
        app.connect(2).await;
        assert_eq!((app.scopes(1).await, app.scopes(2).await), ("grabs manage".to_owned(), "grabs".to_owned()));
        assert_eq!(db.store.oauth().list_connections(app.user, NOW).await.unwrap()[1].scopes, OauthScopes::ALL);
        // Each refresh may ask for any of them again, because the refresh token keeps them all.
        for (token, scopes, expected) in [
            (1, Some(OauthScopes::GRABS), "grabs"),
            (3, Some(manage), "manage"),
            (4, Some(OauthScopes::ALL), "grabs manage"),
            (5, Some(OauthScopes::GRABS), "grabs"),
            (6, None, "grabs manage"),
        ] {
            let next = if token == 1 { 3 } else { token + 1 };
            let refresh = Refresh { scopes, ..app.refresh_request(token, next, NOW) };
            let refreshed = db.store.oauth().refresh(refresh).await.unwrap();
            assert!(matches!(&refreshed, TokenOutcome::Issued { scopes, .. } if scopes.to_string() == expected), "{refreshed:?}");
            assert_eq!(app.scopes(next).await, expected, "{token}");
        }
        // What was not granted is refused, and the refresh token is not used up.
        for scopes in [manage, OauthScopes::ALL] {
            let refresh = Refresh { scopes: Some(scopes), ..app.refresh_request(2, 20, NOW) };
            assert_eq!(db.store.oauth().refresh(refresh).await.unwrap(), TokenOutcome::InvalidScope);
        }
        assert!(matches!(app.refresh(2, 21, NOW).await, TokenOutcome::Issued { .. }));
        // A token never has more than its grant.
        db.execute_raw("UPDATE oauth_grant SET scopes = 1").await.unwrap();
        assert_eq!(app.scopes(7).await, "grabs");
        db.execute_raw("UPDATE oauth_grant SET scopes = 2").await.unwrap();
        assert_eq!((app.scopes(7).await, app.scopes(6).await), ("manage".to_owned(), String::new()));
        assert_eq!(app.authenticate(6, NOW).await, None);
    }

    async fn grants_and_tokens_of_earlier_versions_have_the_scope_grabs(db) {
        let app = TestApp::new(db).await;
        let consent = NewConsent { scopes: OauthScopes::ALL, ..app.new_consent(1) };
        db.store.oauth().consent(consent).await.unwrap();
        db.store.oauth().exchange(app.exchange(1, 1)).await.unwrap();
        assert_eq!(app.scopes(1).await, "grabs manage");
        // The same rows as an earlier version writes them, which does not know the column.
        let tables = [
            ("oauth_grant", "id, team_id, user_id, env, client_id, client_name, resources, created_at, expires_at"),
            ("oauth_token", "hash, grant_id, kind, created_at, expires_at, siblings"),
        ];
        for (table, columns) in tables {
            db.execute_raw(&format!("CREATE TABLE former_{table} AS SELECT {columns} FROM {table}")).await.unwrap();
        }
        db.execute_raw("DELETE FROM oauth_grant").await.unwrap();
        assert_eq!(app.scopes(1).await, "");
        for (table, columns) in tables {
            let insert = format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM former_{table}");
            db.execute_raw(&insert).await.unwrap();
        }
        assert_eq!(app.scopes(1).await, "grabs");
        let wider = Refresh { scopes: Some(OauthScopes::ALL), ..app.refresh_request(1, 2, NOW) };
        assert_eq!(db.store.oauth().refresh(wider).await.unwrap(), TokenOutcome::InvalidScope);
        assert!(matches!(app.refresh(1, 2, NOW).await, TokenOutcome::Issued { scopes: OauthScopes::GRABS, .. }));
    }

    async fn code_reuse_revokes_the_grant(db) {
        let app = TestApp::new(db).await;
        let (grant, other) = (app.connect(1).await, app.connect(2).await);
        assert!(matches!(app.refresh(1, 3, NOW).await, TokenOutcome::Issued { .. }));
        // Even when the second request has only the code and comes late.
        let mut second = app.exchange(1, 9);
        second.challenge = Challenge::parse(&"x".repeat(43), Some("S256")).unwrap();
        second.now = NOW + CODE_LIFE * 9;
        assert_eq!(db.store.oauth().exchange(second.clone()).await.unwrap(), TokenOutcome::Replayed(grant));
        for number in [1, 3, 9] {
            assert_eq!(app.authenticate(number, NOW).await, None, "{number}");
        }
        assert!(matches!(app.refresh(3, 4, NOW).await, TokenOutcome::Invalid(_)));
        assert!(matches!(db.store.oauth().exchange(second).await.unwrap(), TokenOutcome::Invalid(_)));
        assert_eq!(app.authenticate(2, NOW).await, app.caller(other), "other grants stay valid");
    }

    async fn grants_of_an_inactive_team_are_unusable(db) {
        let app = TestApp::new(db).await;
        app.connect(1).await;
        app.consent(2).await;
        db.execute_raw("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(app.authenticate(1, NOW).await, None);
        assert!(matches!(app.refresh(1, 3, NOW).await, TokenOutcome::Invalid(_)));
        assert!(matches!(db.store.oauth().exchange(app.exchange(2, 2)).await.unwrap(), TokenOutcome::Invalid(_)));
    }
}
