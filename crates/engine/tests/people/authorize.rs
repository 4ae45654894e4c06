//! From an app's request to its answer.

use std::time::Duration;

use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use grabd_domain::oauth::TICKET_LIFE;
use grabd_engine::oauth::{self, Fields, Refusal, Resource, allow, ask, check_request, deny, redeem};
use serde_json::json;

use crate::house::{API, House, ISSUER, MCP, REDIRECT, WEB, and, but, person, query, request, value};

/// The refusal's error, after checking that whoever gets it can tell whose it is.
async fn error(house: &House, request: &Fields) -> String {
    match check_request(&house.core, request).await {
        Err(Refusal::Redirect(location)) => {
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
async fn a_good_request_is_shown_as_the_app_and_where_it_leads() {
    let house = House::new().await;
    let client = house.app().await;
    let asked = check_request(&house.core, &request(&client)).await.unwrap();
    assert_eq!((asked.client_name.as_str(), asked.client_host.as_deref()), ("An app", None));
    assert_eq!((asked.redirect.as_str(), asked.is_loopback), (REDIRECT, false));
    assert_eq!(asked.redirect_origin_or_scheme(), "https://app.example");
    // The only address there is need not be named.
    let asked = check_request(&house.core, &but(request(&client), "redirect_uri", None)).await.unwrap();
    assert_eq!(asked.redirect.as_str(), REDIRECT);
    house.end().await;
}

#[tokio::test]
async fn without_a_known_app_and_address_nobody_is_sent_anywhere() {
    let house = House::new().await;
    let client = house.app().await;
    let two = house.register(json!({ "redirect_uris": [REDIRECT, "http://127.0.0.1/cb"] })).await;
    let two = two["client_id"].as_str().unwrap();
    let good = || request(&client);
    let unknown = format!("gcl_{}", "x".repeat(43));
    for request in [
        Fields::new(),
        but(good(), "client_id", None),
        but(good(), "client_id", Some("")),
        but(good(), "client_id", Some(&unknown)),
        but(good(), "client_id", Some("An app")),
        and(good(), "client_id", &client),
        but(good(), "redirect_uri", Some("https://app.example/cb/")),
        but(good(), "redirect_uri", Some("https://app.example/cb?x=1")),
        but(good(), "redirect_uri", Some("https://app.example:8443/cb")),
        but(good(), "redirect_uri", Some("https://app.example@evil.example/cb")),
        but(good(), "redirect_uri", Some("javascript:alert(1)")),
        but(good(), "redirect_uri", Some("/cb")),
        and(good(), "redirect_uri", REDIRECT),
        // Which of two?
        but(request(two), "redirect_uri", None),
        but(request(two), "redirect_uri", Some("http://localhost/cb")),
        // Whatever else is wrong.
        but(but(good(), "redirect_uri", Some("https://evil.example/")), "response_type", Some("token")),
        and(good(), "x", &"x".repeat(16 << 10)),
    ] {
        let refused = check_request(&house.core, &request).await;
        assert!(matches!(&refused, Err(Refusal::Page(text)) if !text.is_empty()), "{request:?}: {refused:?}");
    }
    let loopback = but(request(two), "redirect_uri", Some("http://127.0.0.1:54321/cb"));
    let asked = check_request(&house.core, &loopback).await.unwrap();
    assert_eq!((asked.redirect.as_str(), asked.is_loopback), ("http://127.0.0.1:54321/cb", true));
    house.end().await;
}

#[tokio::test]
async fn every_other_error_goes_to_the_app() {
    let house = House::new().await;
    let client = house.app().await;
    let good = || request(&client);
    for (request, expected) in [
        (but(good(), "response_type", None), "invalid_request"),
        (but(good(), "response_type", Some("token")), "unsupported_response_type"),
        (but(good(), "response_type", Some("code token")), "unsupported_response_type"),
        (and(good(), "response_type", "code"), "invalid_request"),
        (and(good(), "response_mode", "fragment"), "invalid_request"),
        (but(good(), "code_challenge", None), "invalid_request"),
        (but(good(), "code_challenge", Some("short")), "invalid_request"),
        (but(good(), "code_challenge_method", None), "invalid_request"),
        (but(good(), "code_challenge_method", Some("plain")), "invalid_request"),
        (and(good(), "scope", "openid email"), "invalid_scope"),
        (and(good(), "resource", "https://evil.example/"), "invalid_target"),
        (and(and(good(), "resource", MCP), "resource", "https://evil.example/"), "invalid_target"),
    ] {
        assert_eq!(error(&house, &request).await, expected, "{request:?}");
    }
    for request in [
        and(good(), "response_mode", "query"),
        and(good(), "scope", "grabs"),
        and(good(), "scope", "grabs offline_access"),
        // Without a value it counts as left out.
        and(good(), "scope", ""),
        and(and(and(good(), "resource", MCP), "resource", &format!("{API}/")), "resource", WEB),
        and(good(), "prompt", "consent"),
        and(and(good(), "nonsense", "1"), "nonsense", "2"),
    ] {
        assert!(check_request(&house.core, &request).await.is_ok(), "{request:?}");
    }
    // Nobody can say which of two states the app would recognise.
    let twice = check_request(&house.core, &and(good(), "state", "another")).await;
    let Err(Refusal::Redirect(location)) = twice else { panic!("{twice:?}") };
    assert!(!location.contains("state="), "{location}");
    house.end().await;
}

#[tokio::test]
async fn the_answer_says_who_answers_whatever_it_is() {
    let house = House::new().await;
    let client = house.app().await;
    let allowed = house.allow(&request(&client), Environment::Test).await;
    assert!(value(&allowed, "code").starts_with("gac_"));
    assert_eq!((value(&allowed, "state"), value(&allowed, "iss")), ("a state & more", ISSUER));
    let asked = check_request(&house.core, &request(&client)).await.unwrap();
    let denied = query(&deny(&house.core, &asked));
    assert_eq!(value(&denied, "error"), "access_denied");
    assert_eq!((value(&denied, "state"), value(&denied, "iss")), ("a state & more", ISSUER));
    let stateless = house.allow(&but(request(&client), "state", None), Environment::Test).await;
    assert!(!stateless.iter().any(|(name, _)| name == "state"));
    house.end().await;
}

#[tokio::test]
async fn a_ticket_is_answered_once_in_time_and_by_whom_it_was_given_to() {
    let house = House::new().await;
    let (other, _) = person(&house.store, "bob@example.com").await;
    let client = house.app().await;
    let request = and(request(&client), "resource", MCP);
    let asked = check_request(&house.core, &request).await.unwrap();
    let ticket = ask(&house.core, house.user, &asked).await.unwrap();
    let redeem = async |user, ticket: &str| redeem(&house.core, user, ticket).await.unwrap();
    assert_eq!(redeem(other, ticket.expose()).await, None, "it is somebody else's");
    assert_eq!(redeem(house.user, "gct_forged").await, None);
    assert_eq!(redeem(house.user, &format!("gct_{}", "x".repeat(43))).await, None);
    assert_eq!(redeem(house.user, ticket.expose()).await, Some(asked.clone()), "nothing is lost on the way");
    assert_eq!(redeem(house.user, ticket.expose()).await, None, "it was used");
    let late = ask(&house.core, house.user, &asked).await.unwrap();
    house.advance(TICKET_LIFE);
    assert_eq!(redeem(house.user, late.expose()).await, None, "it is too old");
    house.end().await;
}

#[tokio::test]
async fn only_ones_own_team_can_be_given_away() {
    let house = House::new().await;
    let (_, foreign) = person(&house.store, "bob@example.com").await;
    let client = house.app().await;
    for team in [foreign, TeamId(house.user.0)] {
        let asked = check_request(&house.core, &request(&client)).await.unwrap();
        let refused = allow(&house.core, house.user, asked, team, Environment::Live).await;
        assert!(matches!(refused, Err(Refusal::Page(_))), "{refused:?}");
    }
    house.end().await;
}

#[tokio::test]
async fn people_see_their_apps_and_end_them() {
    let house = House::new().await;
    let (other, _) = person(&house.store, "bob@example.com").await;
    let client = house.app().await;
    house.connect(&client).await;
    house.advance(Duration::from_secs(1));
    let apps = oauth::list_apps(&house.core, house.user).await.unwrap();
    let [app] = apps.as_slice() else { panic!("{apps:?}") };
    assert_eq!((app.client_name.as_str(), app.team_name.as_str()), ("An app", "ada"));
    assert_eq!((app.environment, app.last_used_at), (Environment::Test, None));
    assert_eq!(oauth::list_apps(&house.core, other).await.unwrap(), []);
    assert!(!oauth::disconnect(&house.core, other, app.grant).await.unwrap());
    assert!(oauth::disconnect(&house.core, house.user, app.grant).await.unwrap());
    assert_eq!(oauth::list_apps(&house.core, house.user).await.unwrap(), []);
    house.end().await;
}

#[tokio::test]
async fn metadata_tells_programs_where_everything_is() {
    let house = House::new().await;
    assert_eq!(
        oauth::metadata(&house.core),
        json!({
            "issuer": "https://auth.grabd.example",
            "authorization_endpoint": "https://auth.grabd.example/oauth/authorize",
            "token_endpoint": "https://grabd.example/v1/oauth/token",
            "registration_endpoint": "https://grabd.example/v1/oauth/register",
            "revocation_endpoint": "https://grabd.example/v1/oauth/revoke",
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "revocation_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "scopes_supported": ["grabs"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
        })
    );
    for (resource, name) in [(Resource::Mcp, MCP), (Resource::Api, API)] {
        assert_eq!(
            oauth::resource_metadata(&house.core, resource),
            json!({
                "resource": name, "authorization_servers": [ISSUER], "scopes_supported": ["grabs"],
                "bearer_methods_supported": ["header"], "resource_name": "grabd",
            })
        );
    }
    house.end().await;
}
