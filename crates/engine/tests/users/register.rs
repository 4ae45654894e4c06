//! Dynamic client registration.

use std::time::Duration;

use grabd_engine::oauth::{self, EndpointError};
use serde_json::{Value, json};

use crate::test_core::{NOW, REDIRECT, TestCore, TestOptions, body, request};

async fn register_error(test: &TestCore, body: &[u8]) -> EndpointError {
    oauth::register(&test.core, body).await.unwrap_err()
}

#[tokio::test]
async fn public_client_gets_an_id_and_no_secret() {
    let test = TestCore::new().await;
    let response = test
        .register(json!({
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "logo_uri": "https://app.example/logo.png", "software_id": 7, "scope": "openid grabs",
        }))
        .await;
    let id = response["client_id"].as_str().unwrap();
    assert!(id.starts_with("gcl_") && id.len() == 47, "{id}");
    assert_eq!(
        response,
        json!({
            "client_id": id, "client_id_issued_at": NOW.as_ms() / 1000, "client_name": "An app",
            "redirect_uris": [REDIRECT],
            "grant_types": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
            "response_types": ["code"], "token_endpoint_auth_method": "none", "scope": "grabs manage",
        })
    );
    assert_ne!(test.app().await, id);
    test.end().await;
}

#[tokio::test]
async fn confidential_client_gets_a_secret_by_default() {
    let test = TestCore::new().await;
    for (method, expected) in [
        (Value::Null, "client_secret_basic"),
        (json!("client_secret_basic"), "client_secret_basic"),
        (json!("client_secret_post"), "client_secret_post"),
    ] {
        let response = test.register(json!({ "token_endpoint_auth_method": method })).await;
        assert_eq!(response["token_endpoint_auth_method"], expected);
        let secret = response["client_secret"].as_str().unwrap();
        assert!(secret.starts_with("gcs_") && secret.len() == 47);
        assert_eq!(response["client_secret_expires_at"], 0);
    }
    test.end().await;
}

#[tokio::test]
async fn invalid_metadata_is_refused_with_its_error_code() {
    let test = TestCore::new().await;
    for (changes, error) in [
        (json!({ "redirect_uris": ["http://app.example/cb"] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": [] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": null }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": vec![REDIRECT; 11] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": REDIRECT }), "invalid_client_metadata"),
        (json!({ "redirect_uris": [7] }), "invalid_client_metadata"),
        (json!({ "client_name": "x".repeat(101) }), "invalid_client_metadata"),
        (json!({ "client_name": 7 }), "invalid_client_metadata"),
        (json!({ "token_endpoint_auth_method": "private_key_jwt" }), "invalid_client_metadata"),
        (json!({ "grant_types": ["implicit"] }), "invalid_client_metadata"),
        (json!({ "response_types": ["token"] }), "invalid_client_metadata"),
    ] {
        let refused = register_error(&test, body(&changes).to_string().as_bytes()).await;
        assert_eq!((refused.status, refused.error), (400, error), "{changes}: {}", refused.description);
        assert!(!refused.description.is_empty());
    }
    for body in [&b""[..], b"[]", b"7", b"{", b"\xff", b"null", br#"{"client_name":"a","client_name":"b"}"#] {
        assert_eq!(register_error(&test, body).await.error, "invalid_client_metadata", "{body:?}");
    }
    test.end().await;
}

#[tokio::test]
async fn oldest_unused_client_makes_room_for_a_new_one() {
    let test = TestCore::with(TestOptions { unused_clients: 2, ..TestOptions::default() }).await;
    let used = test.app().await;
    test.connect(&used).await;
    let mut apps = Vec::new();
    for _ in 0..5 {
        apps.push(test.app().await);
        test.advance(Duration::from_secs(1));
    }
    let mut known = Vec::new();
    for app in [&used].into_iter().chain(&apps) {
        known.push(oauth::check_request(&test.core, &request(app)).await.is_ok());
    }
    assert_eq!(known, [true, false, false, false, true, true], "one with a grant is kept");
    test.end().await;
}
