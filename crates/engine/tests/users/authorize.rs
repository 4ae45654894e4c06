//! Authorization requests, consent and redirects.

use std::time::Duration;

use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use grabd_domain::oauth::CONSENT_LIFE;
use grabd_engine::oauth::{
    self, AuthorizationError, Fields, Resource, allow, check_request, create_consent_request, deny,
    take_consent_request,
};
use grabd_store::oauth::NewConsentRequest;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::test_core::{API, ISSUER, MCP, REDIRECT, TestCore, WEB, add_field, query, request, set_field, user, value};

/// The error code of a redirect, after checking its `iss` and `state`.
async fn error(test: &TestCore, request: &Fields) -> String {
    match check_request(&test.core, request).await {
        Err(AuthorizationError::Redirect(location)) => {
            let fields = query(&location);
            assert_eq!(value(&fields, "iss"), ISSUER);
            assert_eq!(value(&fields, "state"), "a state & more");
            assert!(!fields.iter().any(|(name, _)| name == "code"), "{location}");
            value(&fields, "error").to_owned()
        }
        other => panic!("{request:?}: {other:?}"),
    }
}

#[tokio::test]
async fn valid_request_has_app_name_and_redirect() {
    let test = TestCore::new().await;
    let client = test.app().await;
    let checked = check_request(&test.core, &request(&client)).await.unwrap();
    assert_eq!((checked.client_name.as_str(), checked.client_host.as_deref()), ("An app", None));
    assert_eq!((checked.redirect.as_str(), checked.is_loopback), (REDIRECT, false));
    assert_eq!(checked.redirect_origin_or_scheme(), "https://app.example");
    // `redirect_uri` may be omitted when only one is registered.
    let checked = check_request(&test.core, &set_field(request(&client), "redirect_uri", None)).await.unwrap();
    assert_eq!(checked.redirect.as_str(), REDIRECT);
    test.end().await;
}

#[tokio::test]
async fn unknown_client_or_redirect_uri_is_never_redirected() {
    let test = TestCore::new().await;
    let client = test.app().await;
    let two = test.register(json!({ "redirect_uris": [REDIRECT, "http://127.0.0.1/cb"] })).await;
    let two = two["client_id"].as_str().unwrap();
    let good = || request(&client);
    let unknown = format!("gcl_{}", "x".repeat(43));
    for request in [
        Fields::new(),
        set_field(good(), "client_id", None),
        set_field(good(), "client_id", Some("")),
        set_field(good(), "client_id", Some(&unknown)),
        set_field(good(), "client_id", Some("An app")),
        add_field(good(), "client_id", &client),
        set_field(good(), "redirect_uri", Some("https://app.example/cb/")),
        set_field(good(), "redirect_uri", Some("https://app.example/cb?x=1")),
        set_field(good(), "redirect_uri", Some("https://app.example:8443/cb")),
        set_field(good(), "redirect_uri", Some("https://app.example@evil.example/cb")),
        set_field(good(), "redirect_uri", Some("javascript:alert(1)")),
        set_field(good(), "redirect_uri", Some("/cb")),
        add_field(good(), "redirect_uri", REDIRECT),
        // Two registered, none named.
        set_field(request(two), "redirect_uri", None),
        set_field(request(two), "redirect_uri", Some("http://localhost/cb")),
        // With another error.
        set_field(set_field(good(), "redirect_uri", Some("https://evil.example/")), "response_type", Some("token")),
        add_field(good(), "x", &"x".repeat(16 << 10)),
    ] {
        let refused = check_request(&test.core, &request).await;
        assert!(
            matches!(&refused, Err(AuthorizationError::Page(text)) if !text.is_empty()),
            "{request:?}: {refused:?}"
        );
    }
    let loopback = set_field(request(two), "redirect_uri", Some("http://127.0.0.1:54321/cb"));
    let checked = check_request(&test.core, &loopback).await.unwrap();
    assert_eq!((checked.redirect.as_str(), checked.is_loopback), ("http://127.0.0.1:54321/cb", true));
    test.end().await;
}

#[tokio::test]
async fn other_errors_are_redirected_to_the_app() {
    let test = TestCore::new().await;
    let client = test.app().await;
    let good = || request(&client);
    for (request, expected) in [
        (set_field(good(), "response_type", None), "invalid_request"),
        (set_field(good(), "response_type", Some("token")), "unsupported_response_type"),
        (set_field(good(), "response_type", Some("code token")), "unsupported_response_type"),
        (add_field(good(), "response_type", "code"), "invalid_request"),
        (add_field(good(), "response_mode", "fragment"), "invalid_request"),
        (set_field(good(), "code_challenge", None), "invalid_request"),
        (set_field(good(), "code_challenge", Some("short")), "invalid_request"),
        (set_field(good(), "code_challenge_method", None), "invalid_request"),
        (set_field(good(), "code_challenge_method", Some("plain")), "invalid_request"),
        (add_field(good(), "scope", "openid email"), "invalid_scope"),
        (add_field(good(), "resource", "https://evil.example/"), "invalid_target"),
        (add_field(add_field(good(), "resource", MCP), "resource", "https://evil.example/"), "invalid_target"),
    ] {
        assert_eq!(error(&test, &request).await, expected, "{request:?}");
    }
    for request in [
        add_field(good(), "response_mode", "query"),
        add_field(good(), "scope", "grabs"),
        add_field(good(), "scope", "grabs offline_access"),
        add_field(good(), "scope", "manage"),
        // An empty value counts as omitted.
        add_field(good(), "scope", ""),
        add_field(add_field(add_field(good(), "resource", MCP), "resource", &format!("{API}/")), "resource", WEB),
        add_field(good(), "prompt", "consent"),
        add_field(add_field(good(), "nonsense", "1"), "nonsense", "2"),
    ] {
        assert!(check_request(&test.core, &request).await.is_ok(), "{request:?}");
    }
    // A repeated `state` is ambiguous, so none is sent back.
    let twice = check_request(&test.core, &add_field(good(), "state", "another")).await;
    let Err(AuthorizationError::Redirect(location)) = twice else { panic!("{twice:?}") };
    assert!(!location.contains("state="), "{location}");
    test.end().await;
}

#[tokio::test]
async fn request_asks_to_manage_only_with_that_scope_and_keeps_it_until_it_is_answered() {
    let test = TestCore::new().await;
    let client = test.app().await;
    for (scope, asks) in [(None, false), (Some("grabs"), false), (Some("grabs manage"), true), (Some("manage"), true)] {
        let checked = check_request(&test.core, &set_field(request(&client), "scope", scope)).await.unwrap();
        assert_eq!(checked.asks_to_manage(), asks, "{scope:?}");
        let ticket = create_consent_request(&test.core, test.user, &checked).await.unwrap();
        let taken = take_consent_request(&test.core, test.user, ticket.expose()).await.unwrap().unwrap();
        assert_eq!(taken, checked);
        assert!(!taken.without_manage().asks_to_manage(), "{scope:?}");
    }
    // A request that an earlier version has stored, which did not know this scope.
    let checked = check_request(&test.core, &request(&client)).await.unwrap();
    let ticket = create_consent_request(&test.core, test.user, &checked).await.unwrap();
    let hash = Sha256::digest(ticket.expose()).into();
    let stored = test.store.oauth().consume_consent_request(hash, test.user, test.clock.now()).await.unwrap().unwrap();
    let mut former: Value = serde_json::from_str(&stored).unwrap();
    assert!(former.as_object_mut().unwrap().remove("scopes").is_some(), "{stored}");
    let expires_at = test.clock.now() + CONSENT_LIFE;
    let former = NewConsentRequest { hash, user: test.user, request: former.to_string(), expires_at };
    test.store.oauth().create_consent_request(former).await.unwrap();
    assert_eq!(take_consent_request(&test.core, test.user, ticket.expose()).await.unwrap(), Some(checked));
    test.end().await;
}

#[tokio::test]
async fn every_redirect_has_iss_and_state() {
    let test = TestCore::new().await;
    let client = test.app().await;
    let allowed = test.allow(&request(&client), Environment::Test).await;
    assert!(value(&allowed, "code").starts_with("gac_"));
    assert_eq!((value(&allowed, "state"), value(&allowed, "iss")), ("a state & more", ISSUER));
    let checked = check_request(&test.core, &request(&client)).await.unwrap();
    let denied = query(&deny(&test.core, &checked).await.unwrap());
    assert_eq!(value(&denied, "error"), "access_denied");
    assert_eq!((value(&denied, "state"), value(&denied, "iss")), ("a state & more", ISSUER));
    let stateless = test.allow(&set_field(request(&client), "state", None), Environment::Test).await;
    assert!(!stateless.iter().any(|(name, _)| name == "state"));
    test.end().await;
}

#[tokio::test]
async fn consent_request_is_valid_once_in_time_and_for_its_user() {
    let test = TestCore::new().await;
    let (other, _) = user(&test.store, "bob@example.com").await;
    let client = test.app().await;
    let request = add_field(request(&client), "resource", MCP);
    let checked = check_request(&test.core, &request).await.unwrap();
    let ticket = create_consent_request(&test.core, test.user, &checked).await.unwrap();
    let take = async |user, ticket: &str| take_consent_request(&test.core, user, ticket).await.unwrap();
    assert_eq!(take(other, ticket.expose()).await, None, "it belongs to another person");
    assert_eq!(take(test.user, "gct_forged").await, None);
    assert_eq!(take(test.user, &format!("gct_{}", "x".repeat(43))).await, None);
    assert_eq!(take(test.user, ticket.expose()).await, Some(checked.clone()), "the request is stored completely");
    assert_eq!(take(test.user, ticket.expose()).await, None, "it is already used");
    let late = create_consent_request(&test.core, test.user, &checked).await.unwrap();
    test.advance(CONSENT_LIFE);
    assert_eq!(take(test.user, late.expose()).await, None, "it has expired");
    test.end().await;
}

#[tokio::test]
async fn access_can_be_granted_only_to_own_teams() {
    let test = TestCore::new().await;
    let (_, foreign) = user(&test.store, "bob@example.com").await;
    let client = test.app().await;
    for team in [foreign, TeamId(test.user.0)] {
        let checked = check_request(&test.core, &request(&client)).await.unwrap();
        let refused = allow(&test.core, test.user, checked, team, Environment::Live).await;
        assert!(matches!(refused, Err(AuthorizationError::Page(_))), "{refused:?}");
    }
    test.end().await;
}

#[tokio::test]
async fn apps_are_listed_and_disconnected_only_by_their_user() {
    let test = TestCore::new().await;
    let (other, _) = user(&test.store, "bob@example.com").await;
    let client = test.app().await;
    test.connect(&client).await;
    test.advance(Duration::from_secs(1));
    let apps = oauth::list_apps(&test.core, test.user).await.unwrap();
    let [app] = apps.as_slice() else { panic!("{apps:?}") };
    assert_eq!((app.client_name.as_str(), app.team_name.as_str()), ("An app", "ada"));
    assert_eq!((app.environment, app.last_used_at), (Environment::Test, None));
    assert_eq!(oauth::list_apps(&test.core, other).await.unwrap(), []);
    assert!(!oauth::disconnect(&test.core, other, app.grant).await.unwrap());
    assert!(oauth::disconnect(&test.core, test.user, app.grant).await.unwrap());
    assert_eq!(oauth::list_apps(&test.core, test.user).await.unwrap(), []);
    test.end().await;
}

#[tokio::test]
async fn metadata_lists_endpoints_and_resources() {
    let test = TestCore::new().await;
    assert_eq!(
        oauth::metadata(&test.core),
        json!({
            "issuer": "https://auth.grabd.example",
            "authorization_endpoint": "https://auth.grabd.example/oauth/authorize",
            "token_endpoint": "https://grabd.example/v1/oauth/token",
            "registration_endpoint": "https://grabd.example/v1/oauth/register",
            "revocation_endpoint": "https://grabd.example/v1/oauth/revoke",
            "device_authorization_endpoint": "https://grabd.example/v1/oauth/device_authorization",
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported":
                ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "revocation_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "scopes_supported": ["grabs", "manage"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
        })
    );
    let all = json!(["grabs", "manage"]);
    for (resource, name, scopes) in [
        // No tool needs more, and many clients ask for all scopes that they find here.
        (Resource::Mcp, MCP, &json!(["grabs"])),
        (Resource::Api, API, &all),
        (Resource::Service, "https://grabd.example", &all),
    ] {
        assert_eq!(
            oauth::resource_metadata(&test.core, resource),
            json!({
                "resource": name, "authorization_servers": [ISSUER], "scopes_supported": scopes,
                "bearer_methods_supported": ["header"], "resource_name": "grabd",
            })
        );
    }
    test.end().await;
}
