//! Apps register.

use grabd_engine::oauth::{self, RegistrationError};
use serde_json::{Value, json};

use crate::house::{House, NOW, REDIRECT, body};

async fn refused(house: &House, body: &[u8]) -> RegistrationError {
    oauth::register(&house.core, body).await.unwrap_err()
}

#[tokio::test]
async fn a_public_app_gets_a_name_and_no_secret() {
    let house = House::new().await;
    let answer = house
        .register(json!({
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "logo_uri": "https://app.example/logo.png", "software_id": 7, "scope": "openid grabs",
        }))
        .await;
    let id = answer["client_id"].as_str().unwrap();
    assert!(id.starts_with("gcl_") && id.len() == 47, "{id}");
    assert_eq!(
        answer,
        json!({
            "client_id": id, "client_id_issued_at": NOW.as_ms() / 1000, "client_name": "An app",
            "redirect_uris": [REDIRECT], "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"], "token_endpoint_auth_method": "none", "scope": "grabs",
        })
    );
    assert_ne!(house.app().await, id);
    house.end().await;
}

#[tokio::test]
async fn an_app_that_does_not_say_otherwise_gets_a_secret() {
    let house = House::new().await;
    for (method, answered) in [
        (Value::Null, "client_secret_basic"),
        (json!("client_secret_basic"), "client_secret_basic"),
        (json!("client_secret_post"), "client_secret_post"),
    ] {
        let answer = house.register(json!({ "token_endpoint_auth_method": method })).await;
        assert_eq!(answer["token_endpoint_auth_method"], answered);
        let secret = answer["client_secret"].as_str().unwrap();
        assert!(secret.starts_with("gcs_") && secret.len() == 47);
        assert_eq!(answer["client_secret_expires_at"], 0);
    }
    house.end().await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_its_own_word() {
    let house = House::new().await;
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
        let refused = refused(&house, body(&changes).to_string().as_bytes()).await;
        assert_eq!((refused.status, refused.error), (400, error), "{changes}: {}", refused.description);
        assert!(!refused.description.is_empty());
    }
    for body in [&b""[..], b"[]", b"7", b"{", b"\xff", b"null", br#"{"client_name":"a","client_name":"b"}"#] {
        assert_eq!(refused(&house, body).await.error, "invalid_client_metadata", "{body:?}");
    }
    house.end().await;
}
