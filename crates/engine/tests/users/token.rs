//! The token endpoint and revocation.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use grabd_domain::credentials::Environment;
use grabd_domain::oauth::CODE_LIFE;
use grabd_engine::oauth::{self, EndpointError, Fields};
use serde_json::{Value, json};

use crate::test_core::{
    API, MCP, TestCore, TestOptions, WEB, add_field, exchange, fields, pair, refresh, request, set_field, text, value,
};

fn error<T>(result: Result<T, EndpointError>) -> (u16, &'static str) {
    let error = result.err().expect("the request must be refused");
    assert!(!error.description.is_empty());
    (error.status, error.error)
}

fn revocation(client: &str, token: &str) -> Fields {
    fields(&[("client_id", client), ("token", token)])
}

async fn revoke(test: &TestCore, client: &str, token: &str) -> Result<(), EndpointError> {
    oauth::revoke(&test.core, &revocation(client, token), None).await
}

#[tokio::test]
async fn code_reuse_is_refused_and_revokes_the_tokens() {
    let test = TestCore::new().await;
    let client = test.app().await;
    let code = test.code(&client).await;
    let tokens = test.exchange(&client, &code).await.unwrap();
    let pair = pair(&tokens);
    assert!(pair.access.starts_with("gat_") && pair.access.len() == 47);
    assert!(pair.refresh.starts_with("grt_") && pair.refresh.len() == 47);
    assert_eq!(
        tokens,
        json!({
            "access_token": pair.access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": pair.refresh,
            "scope": "grabs",
        })
    );
    assert_eq!(error(test.exchange(&client, &code).await), (400, "invalid_grant"));
    // The reuse has revoked the tokens of the first exchange.
    assert_eq!(error(test.token(&refresh(&client, &pair.refresh)).await), (400, "invalid_grant"));
    test.end().await;
}

#[tokio::test]
async fn code_is_bound_to_client_redirect_uri_and_verifier() {
    let test = TestCore::new().await;
    let (client, other) = (test.app().await, test.app().await);
    let code = test.code(&client).await;
    let good = || exchange(&client, &code);
    let verifier = "another-verifier-of-43-characters-0123456789";
    for (form, expected) in [
        (set_field(good(), "client_id", Some(&other)), "invalid_grant"),
        (set_field(good(), "redirect_uri", Some("https://app.example/cb2")), "invalid_grant"),
        (set_field(good(), "code_verifier", Some(verifier)), "invalid_grant"),
        (set_field(good(), "code_verifier", Some("short")), "invalid_grant"),
        (set_field(good(), "code_verifier", None), "invalid_request"),
        (set_field(good(), "code", None), "invalid_request"),
        (set_field(good(), "code", Some("gac_unknown")), "invalid_grant"),
        (add_field(good(), "code", &code), "invalid_request"),
        (add_field(good(), "client_id", &client), "invalid_request"),
        (set_field(good(), "grant_type", None), "invalid_request"),
        (set_field(good(), "grant_type", Some("password")), "unsupported_grant_type"),
        (set_field(good(), "grant_type", Some("refresh_token")), "invalid_request"),
        (add_field(good(), "resource", "https://evil.example"), "invalid_target"),
    ] {
        assert_eq!(error(test.token(&form).await), (400, expected), "{form:?}");
    }
    // None of these has consumed the code, and `redirect_uri` is optional in OAuth 2.1.
    assert!(test.token(&set_field(good(), "redirect_uri", None)).await.is_ok());

    let old = test.code(&client).await;
    test.advance(CODE_LIFE);
    assert_eq!(error(test.exchange(&client, &old).await), (400, "invalid_grant"));
    test.end().await;
}

#[tokio::test]
async fn tokens_are_bound_to_the_granted_resource() {
    let test = TestCore::new().await;
    let client = test.app().await;
    let redirect = test.allow(&add_field(request(&client), "resource", &format!("{MCP}/")), Environment::Test).await;
    let form = exchange(&client, value(&redirect, "code"));
    for foreign in [API, WEB] {
        assert_eq!(error(test.token(&add_field(form.clone(), "resource", foreign)).await), (400, "invalid_target"));
    }
    let tokens = test.token(&add_field(form, "resource", MCP)).await.unwrap();
    let form = refresh(&client, &pair(&tokens).refresh);
    assert_eq!(error(test.token(&add_field(form.clone(), "resource", API)).await), (400, "invalid_target"));
    assert!(test.token(&add_field(add_field(form, "resource", MCP), "resource", &format!("{MCP}/"))).await.is_ok());
    test.end().await;
}

#[tokio::test]
async fn confidential_client_authenticates_by_basic_or_form() {
    let test = TestCore::new().await;
    for method in ["client_secret_basic", "client_secret_post"] {
        let registered = test.register(json!({ "token_endpoint_auth_method": method })).await;
        let (client, secret) = (text(&registered["client_id"]), text(&registered["client_secret"]));
        let basic = |id: &str, secret: &str| format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
        let wrong = format!("gcs_{}", "x".repeat(43));
        let anonymous = || set_field(exchange(&client, "gac_x"), "client_id", None);
        let named = || exchange(&client, "gac_x");
        let token = async |form: Fields, authorization: Option<&str>| {
            error(oauth::token(&test.core, &form, authorization).await)
        };
        // The client is authenticated, the code is unknown.
        let authenticated = (400, "invalid_grant");
        assert_eq!(token(anonymous(), Some(&basic(&client, &secret))).await, authenticated);
        assert_eq!(token(named(), Some(&basic(&client, &secret))).await, authenticated);
        assert_eq!(token(add_field(named(), "client_secret", &secret), None).await, authenticated);
        let unknown = (401, "invalid_client");
        assert_eq!(token(named(), None).await, unknown);
        assert_eq!(token(add_field(named(), "client_secret", &wrong), None).await, unknown);
        assert_eq!(token(add_field(named(), "client_secret", "x"), None).await, unknown);
        assert_eq!(token(anonymous(), Some(&basic(&client, &wrong))).await, unknown);
        assert_eq!(token(anonymous(), Some(&basic(&client, ""))).await, unknown);
        assert_eq!(token(anonymous(), Some(&format!("Bearer {secret}"))).await, unknown);
        assert_eq!(token(anonymous(), None).await, unknown);
        // Both methods at once, or two different clients.
        let both = add_field(named(), "client_secret", &secret);
        assert_eq!(token(both, Some(&basic(&client, &secret))).await, (400, "invalid_request"));
        let other = exchange(&test.app().await, "gac_x");
        assert_eq!(token(other, Some(&basic(&client, &secret))).await, (400, "invalid_request"));
        // Revocation authenticates in the same way.
        assert_eq!(error(revoke(&test, &client, "gat_x").await), unknown);
    }
    // A public client must not send a secret; unknown clients are refused.
    let public = test.app().await;
    let form = add_field(exchange(&public, "gac_x"), "client_secret", &format!("gcs_{}", "x".repeat(43)));
    assert_eq!(error(test.token(&form).await), (401, "invalid_client"));
    let unknown = exchange(&format!("gcl_{}", "x".repeat(43)), "gac_x");
    assert_eq!(error(test.token(&unknown).await), (401, "invalid_client"));
    assert_eq!(error(test.token(&exchange("An app", "gac_x")).await), (401, "invalid_client"));
    test.end().await;
}

#[tokio::test]
async fn refresh_token_reuse_after_the_grace_period_revokes_the_grant() {
    let test = TestCore::new().await;
    let client = test.app().await;
    let first = test.connect(&client).await;
    let other = test.connect(&client).await;
    let second = pair(&test.token(&refresh(&client, &first.refresh)).await.unwrap());
    assert!(second.access != first.access && second.refresh != first.refresh);
    test.advance(Duration::from_secs(29));
    let sibling = pair(&test.token(&refresh(&client, &first.refresh)).await.unwrap());
    test.advance(Duration::from_secs(1));
    assert_eq!(error(test.token(&refresh(&client, &first.refresh)).await), (400, "invalid_grant"));
    for token in [&second.refresh, &sibling.refresh] {
        assert_eq!(error(test.token(&refresh(&client, token)).await), (400, "invalid_grant"));
    }
    assert!(test.token(&refresh(&client, &other.refresh)).await.is_ok());
    test.end().await;
}

#[tokio::test]
async fn refresh_token_reuse_without_grace_period_revokes_the_grant() {
    let test = TestCore::with(TestOptions { grace_s: 0, ..TestOptions::default() }).await;
    let client = test.app().await;
    let first = test.connect(&client).await;
    let second = pair(&test.token(&refresh(&client, &first.refresh)).await.unwrap());
    assert_eq!(error(test.token(&refresh(&client, &first.refresh)).await), (400, "invalid_grant"));
    assert_eq!(error(test.token(&refresh(&client, &second.refresh)).await), (400, "invalid_grant"));
    test.end().await;
}

#[tokio::test]
async fn refresh_token_is_bound_to_client_and_scope() {
    let test = TestCore::new().await;
    let (client, other) = (test.app().await, test.app().await);
    let tokens = test.connect(&client).await;
    let good = || refresh(&client, &tokens.refresh);
    for (form, expected) in [
        (set_field(good(), "client_id", Some(&other)), "invalid_grant"),
        (set_field(good(), "refresh_token", Some(&tokens.access)), "invalid_grant"),
        (set_field(good(), "refresh_token", None), "invalid_request"),
        (add_field(good(), "refresh_token", &tokens.refresh), "invalid_request"),
        (add_field(good(), "scope", "openid"), "invalid_scope"),
        (add_field(good(), "scope", "grabs openid"), "invalid_scope"),
    ] {
        assert_eq!(error(test.token(&form).await), (400, expected), "{form:?}");
    }
    let tokens: Value = test.token(&add_field(good(), "scope", "grabs")).await.unwrap();
    assert_eq!(tokens["scope"], "grabs");
    test.end().await;
}

#[tokio::test]
async fn revoke_ends_own_tokens_and_ignores_unknown_ones() {
    let test = TestCore::new().await;
    let (client, other) = (test.app().await, test.app().await);
    let tokens = test.connect(&client).await;
    assert_eq!(error(revoke(&test, &other, &tokens.refresh).await), (400, "invalid_grant"));
    for unknown in ["gat_unknown", "hello", "gac_x", &format!("grt_{}", "x".repeat(43))] {
        assert_eq!(revoke(&test, &client, unknown).await, Ok(()), "{unknown}");
    }
    let form = fields(&[("client_id", &client)]);
    assert_eq!(error(oauth::revoke(&test.core, &form, None).await), (400, "invalid_request"));
    let form = add_field(revocation(&client, &tokens.access), "token", &tokens.access);
    assert_eq!(error(oauth::revoke(&test.core, &form, None).await), (400, "invalid_request"));
    let form = add_field(revocation(&client, &tokens.access), "token_type_hint", "refresh_token");
    assert_eq!(oauth::revoke(&test.core, &form, None).await, Ok(()));

    let next = pair(&test.token(&refresh(&client, &tokens.refresh)).await.unwrap());
    assert_eq!(revoke(&test, &client, &next.refresh).await, Ok(()));
    assert_eq!(error(test.token(&refresh(&client, &next.refresh)).await), (400, "invalid_grant"));
    assert_eq!(oauth::list_apps(&test.core, test.user).await.unwrap(), []);
    test.end().await;
}
