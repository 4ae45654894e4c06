//! The token endpoint and revocation.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use grabd_domain::credentials::Environment;
use grabd_domain::oauth::CODE_LIFE;
use grabd_engine::oauth::{self, Fields, TokenError};
use serde_json::{Value, json};

use crate::house::{API, House, MCP, WEB, Wishes, and, but, exchange, fields, pair, refresh, request, text, value};

fn error<T>(answer: Result<T, TokenError>) -> (u16, &'static str) {
    let error = answer.err().expect("it must be refused");
    assert!(!error.description.is_empty());
    (error.status, error.error)
}

fn revocation(client: &str, token: &str) -> Fields {
    fields(&[("client_id", client), ("token", token)])
}

async fn revoke(house: &House, client: &str, token: &str) -> Result<(), TokenError> {
    oauth::revoke(&house.core, &revocation(client, token), None).await
}

#[tokio::test]
async fn a_code_becomes_tokens_once() {
    let house = House::new().await;
    let client = house.app().await;
    let code = house.code(&client).await;
    let tokens = house.exchange(&client, &code).await.unwrap();
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
    assert_eq!(error(house.exchange(&client, &code).await), (400, "invalid_grant"));
    // The second use has ended what came of the first.
    assert_eq!(error(house.token(&refresh(&client, &pair.refresh)).await), (400, "invalid_grant"));
    house.end().await;
}

#[tokio::test]
async fn a_code_is_bound_to_all_that_was_asked_for() {
    let house = House::new().await;
    let (client, other) = (house.app().await, house.app().await);
    let code = house.code(&client).await;
    let good = || exchange(&client, &code);
    let verifier = "another-verifier-of-43-characters-0123456789";
    for (form, expected) in [
        (but(good(), "client_id", Some(&other)), "invalid_grant"),
        (but(good(), "redirect_uri", Some("https://app.example/cb2")), "invalid_grant"),
        (but(good(), "code_verifier", Some(verifier)), "invalid_grant"),
        (but(good(), "code_verifier", Some("short")), "invalid_grant"),
        (but(good(), "code_verifier", None), "invalid_request"),
        (but(good(), "code", None), "invalid_request"),
        (but(good(), "code", Some("gac_unknown")), "invalid_grant"),
        (and(good(), "code", &code), "invalid_request"),
        (and(good(), "client_id", &client), "invalid_request"),
        (but(good(), "grant_type", None), "invalid_request"),
        (but(good(), "grant_type", Some("password")), "unsupported_grant_type"),
        (but(good(), "grant_type", Some("refresh_token")), "invalid_request"),
        (and(good(), "resource", "https://evil.example"), "invalid_target"),
    ] {
        assert_eq!(error(house.token(&form).await), (400, expected), "{form:?}");
    }
    // None of that has spent it, and OAuth 2.1 need not repeat the address.
    assert!(house.token(&but(good(), "redirect_uri", None)).await.is_ok());

    let old = house.code(&client).await;
    house.advance(CODE_LIFE);
    assert_eq!(error(house.exchange(&client, &old).await), (400, "invalid_grant"));
    house.end().await;
}

#[tokio::test]
async fn tokens_are_for_what_was_asked_for() {
    let house = House::new().await;
    let client = house.app().await;
    let answer = house.allow(&and(request(&client), "resource", &format!("{MCP}/")), Environment::Test).await;
    let form = exchange(&client, value(&answer, "code"));
    for foreign in [API, WEB] {
        assert_eq!(error(house.token(&and(form.clone(), "resource", foreign)).await), (400, "invalid_target"));
    }
    let tokens = house.token(&and(form, "resource", MCP)).await.unwrap();
    let form = refresh(&client, &pair(&tokens).refresh);
    assert_eq!(error(house.token(&and(form.clone(), "resource", API)).await), (400, "invalid_target"));
    assert!(house.token(&and(and(form, "resource", MCP), "resource", &format!("{MCP}/"))).await.is_ok());
    house.end().await;
}

#[tokio::test]
async fn an_app_with_a_secret_shows_it_in_one_of_two_ways() {
    let house = House::new().await;
    for method in ["client_secret_basic", "client_secret_post"] {
        let answer = house.register(json!({ "token_endpoint_auth_method": method })).await;
        let (client, secret) = (text(&answer["client_id"]), text(&answer["client_secret"]));
        let basic = |id: &str, secret: &str| format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
        let wrong = format!("gcs_{}", "x".repeat(43));
        let anonymous = || but(exchange(&client, "gac_x"), "client_id", None);
        let named = || exchange(&client, "gac_x");
        let token = async |form: Fields, authorization: Option<&str>| {
            error(oauth::token(&house.core, &form, authorization).await)
        };
        // The client is known, the code is not.
        let known = (400, "invalid_grant");
        assert_eq!(token(anonymous(), Some(&basic(&client, &secret))).await, known);
        assert_eq!(token(named(), Some(&basic(&client, &secret))).await, known);
        assert_eq!(token(and(named(), "client_secret", &secret), None).await, known);
        let unknown = (401, "invalid_client");
        assert_eq!(token(named(), None).await, unknown);
        assert_eq!(token(and(named(), "client_secret", &wrong), None).await, unknown);
        assert_eq!(token(and(named(), "client_secret", "x"), None).await, unknown);
        assert_eq!(token(anonymous(), Some(&basic(&client, &wrong))).await, unknown);
        assert_eq!(token(anonymous(), Some(&basic(&client, ""))).await, unknown);
        assert_eq!(token(anonymous(), Some(&format!("Bearer {secret}"))).await, unknown);
        assert_eq!(token(anonymous(), None).await, unknown);
        // Both ways at once, or two clients.
        let both = and(named(), "client_secret", &secret);
        assert_eq!(token(both, Some(&basic(&client, &secret))).await, (400, "invalid_request"));
        let other = exchange(&house.app().await, "gac_x");
        assert_eq!(token(other, Some(&basic(&client, &secret))).await, (400, "invalid_request"));
        // Revocation asks the same.
        assert_eq!(error(revoke(&house, &client, "gat_x").await), unknown);
    }
    // A public app has no secret to show, and an unknown one is unknown.
    let public = house.app().await;
    let form = and(exchange(&public, "gac_x"), "client_secret", &format!("gcs_{}", "x".repeat(43)));
    assert_eq!(error(house.token(&form).await), (401, "invalid_client"));
    let unknown = exchange(&format!("gcl_{}", "x".repeat(43)), "gac_x");
    assert_eq!(error(house.token(&unknown).await), (401, "invalid_client"));
    assert_eq!(error(house.token(&exchange("An app", "gac_x")).await), (401, "invalid_client"));
    house.end().await;
}

#[tokio::test]
async fn refresh_tokens_rotate_and_a_late_second_use_ends_everything() {
    let house = House::new().await;
    let client = house.app().await;
    let first = house.connect(&client).await;
    let other = house.connect(&client).await;
    let second = pair(&house.token(&refresh(&client, &first.refresh)).await.unwrap());
    assert!(second.access != first.access && second.refresh != first.refresh);
    house.advance(Duration::from_secs(29));
    let sibling = pair(&house.token(&refresh(&client, &first.refresh)).await.unwrap());
    house.advance(Duration::from_secs(1));
    assert_eq!(error(house.token(&refresh(&client, &first.refresh)).await), (400, "invalid_grant"));
    for token in [&second.refresh, &sibling.refresh] {
        assert_eq!(error(house.token(&refresh(&client, token)).await), (400, "invalid_grant"));
    }
    assert!(house.token(&refresh(&client, &other.refresh)).await.is_ok());
    house.end().await;
}

#[tokio::test]
async fn without_a_grace_the_second_use_ends_everything_at_once() {
    let house = House::with(Wishes { grace_s: 0, ..Wishes::default() }).await;
    let client = house.app().await;
    let first = house.connect(&client).await;
    let second = pair(&house.token(&refresh(&client, &first.refresh)).await.unwrap());
    assert_eq!(error(house.token(&refresh(&client, &first.refresh)).await), (400, "invalid_grant"));
    assert_eq!(error(house.token(&refresh(&client, &second.refresh)).await), (400, "invalid_grant"));
    house.end().await;
}

#[tokio::test]
async fn a_refresh_is_for_its_own_app_and_scope() {
    let house = House::new().await;
    let (client, other) = (house.app().await, house.app().await);
    let tokens = house.connect(&client).await;
    let good = || refresh(&client, &tokens.refresh);
    for (form, expected) in [
        (but(good(), "client_id", Some(&other)), "invalid_grant"),
        (but(good(), "refresh_token", Some(&tokens.access)), "invalid_grant"),
        (but(good(), "refresh_token", None), "invalid_request"),
        (and(good(), "refresh_token", &tokens.refresh), "invalid_request"),
        (and(good(), "scope", "openid"), "invalid_scope"),
    ] {
        assert_eq!(error(house.token(&form).await), (400, expected), "{form:?}");
    }
    let answer: Value = house.token(&and(good(), "scope", "grabs openid")).await.unwrap();
    assert_eq!(answer["scope"], "grabs");
    house.end().await;
}

#[tokio::test]
async fn an_app_gives_back_what_it_has() {
    let house = House::new().await;
    let (client, other) = (house.app().await, house.app().await);
    let tokens = house.connect(&client).await;
    assert_eq!(error(revoke(&house, &other, &tokens.refresh).await), (400, "invalid_grant"));
    for unknown in ["gat_unknown", "hello", "gac_x", &format!("grt_{}", "x".repeat(43))] {
        assert_eq!(revoke(&house, &client, unknown).await, Ok(()), "{unknown}");
    }
    let form = fields(&[("client_id", &client)]);
    assert_eq!(error(oauth::revoke(&house.core, &form, None).await), (400, "invalid_request"));
    let form = and(revocation(&client, &tokens.access), "token", &tokens.access);
    assert_eq!(error(oauth::revoke(&house.core, &form, None).await), (400, "invalid_request"));
    let form = and(revocation(&client, &tokens.access), "token_type_hint", "refresh_token");
    assert_eq!(oauth::revoke(&house.core, &form, None).await, Ok(()));

    let next = pair(&house.token(&refresh(&client, &tokens.refresh)).await.unwrap());
    assert_eq!(revoke(&house, &client, &next.refresh).await, Ok(()));
    assert_eq!(error(house.token(&refresh(&client, &next.refresh)).await), (400, "invalid_grant"));
    assert_eq!(oauth::list_apps(&house.core, house.user).await.unwrap(), []);
    house.end().await;
}
