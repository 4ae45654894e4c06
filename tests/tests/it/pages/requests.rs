//! What apps ask, and how they are answered.

use anyhow::{Result, ensure};
use grabd_tests::harness::Harness;
use reqwest::Method;
use serde_json::{Value, json};

use super::visitor::{REDIRECT, VERIFIER, Visitor, open_house, register, request_of};

/// Exchanges the code that the answer to this request brought.
pub(super) async fn exchange(house: &Harness, request: &str, code: &str) -> Result<Value> {
    let request = reqwest::Url::parse(&format!("http://request.invalid{request}"))?;
    let client = request.query_pairs().find(|(name, _)| name == "client_id").map(|(_, value)| value.into_owned());
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("client_id", &client.unwrap_or_default()),
        ("code_verifier", VERIFIER),
    ];
    let answer = Visitor::new(house).post("/v1/oauth/token", &form).await?;
    ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
    assert_eq!(answer.header("cache-control"), "no-store");
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_sent_to_where_an_app_has_not_registered() -> Result<()> {
    let house = open_house(&[]).await?;
    let issuer = house.service.public_url().to_owned();
    let client = register(&house).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let mut stranger = Visitor::new(&house);
    for changes in [
        &[("client_id", "")][..],
        &[("client_id", "gcl_unknown")],
        &[("client_id", "https://127.0.0.1/client.json")],
        &[("redirect_uri", "https://evil.example/callback")],
        &[("redirect_uri", "https://app.example/callback?more")],
        &[("redirect_uri", "https://app.example.evil.example/callback")],
        &[("redirect_uri", "no address"), ("response_type", "token")],
    ] {
        for visitor in [&mut ada, &mut stranger] {
            let answer = visitor.get(&request_of(&client, changes)?).await?;
            assert_eq!((answer.status, answer.location()), (400, ""), "{changes:?}: {}", answer.body);
            assert!(answer.body.contains("<h1>This app cannot be connected</h1>"), "{}", answer.body);
        }
    }
    for (changes, error) in [
        (&[("response_type", "token")][..], "unsupported_response_type"),
        (&[("code_challenge", "")], "invalid_request"),
        (&[("code_challenge_method", "plain")], "invalid_request"),
        (&[("code_challenge_method", "")], "invalid_request"),
    ] {
        let answer = stranger.get(&request_of(&client, changes)?).await?;
        assert_eq!(answer.status, 303, "{changes:?}: {}", answer.body);
        assert!(answer.location().starts_with(REDIRECT), "{}", answer.location());
        let told = (answer.told("error")?, answer.told("state")?, answer.told("iss")?);
        assert_eq!(told, (error.to_owned(), "a state & more".to_owned(), issuer.clone()), "{changes:?}");
    }
    // A request that comes as a form is the same request.
    let request = request_of(&client, &[])?;
    let fields = reqwest::Url::parse(&format!("{issuer}{request}"))?;
    let fields: Vec<(String, String)> = fields.query_pairs().into_owned().collect();
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    let answer = stranger.post("/oauth/authorize", &fields).await?;
    assert_eq!((answer.status, answer.location()), (303, &*request));
    // Who is not signed in keeps the way.
    let answer = stranger.get(&request).await?;
    assert_eq!(answer.status, 303);
    let sign_in = answer.location().to_owned();
    assert_eq!(stranger.get(&sign_in).await?.hidden("next")?, request);
    // The page leads to the app's address and to no other, and a decision tells who decided.
    let page = ada.get(&request).await?;
    assert!(page.header("content-security-policy").contains("form-action 'self' https://app.example;"));
    assert_eq!(page.header("x-frame-options"), "DENY");
    let answer = ada.decide(&page, "deny", &[]).await?;
    let told = (answer.told("error")?, answer.told("state")?, answer.told("iss")?);
    assert_eq!(told, ("access_denied".to_owned(), "a state & more".to_owned(), issuer.clone()));
    let page = ada.get(&request).await?;
    let answer = ada.decide(&page, "allow", &[]).await?;
    assert_eq!((answer.status, answer.told("iss")?, answer.header("referrer-policy")), (303, issuer, "no-referrer"));
    exchange(&house, &request, &answer.told("code")?).await?;
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_are_answered_as_the_standards_say() -> Result<()> {
    let house = open_house(&[]).await?;
    let issuer = house.service.public_url();
    let client = register(&house).await?;
    let mut app = Visitor::new(&house);
    app.headers.push(("origin", "https://app.example".to_owned()));

    let server = app.get("/.well-known/oauth-authorization-server").await?;
    assert_eq!((server.status, server.header("access-control-allow-origin")), (200, "*"));
    let server = server.json()?;
    assert_eq!(server["issuer"], issuer);
    assert_eq!(server["authorization_endpoint"], format!("{issuer}/oauth/authorize"));
    for (path, resource) in [
        ("/.well-known/oauth-protected-resource/mcp", format!("{issuer}/mcp")),
        ("/.well-known/oauth-protected-resource", format!("{issuer}/mcp")),
        ("/.well-known/oauth-protected-resource/v1", format!("{issuer}/v1")),
    ] {
        let document = app.get(path).await?.json()?;
        assert_eq!((&document["resource"], &document["authorization_servers"]), (&json!(resource), &json!([issuer])));
    }

    let form = [("grant_type", "authorization_code"), ("code", "gac_unknown"), ("client_id", &*client)];
    let twice = [&form[..], &[("code", "gac_other")]].concat();
    let unknown = [("grant_type", "password"), ("client_id", &*client)];
    for (fields, status, error) in [
        (&form[..], 400, &["invalid_grant", "invalid_request"][..]),
        (&twice, 400, &["invalid_request"]),
        (&unknown, 400, &["unsupported_grant_type"]),
        (&[("grant_type", "authorization_code")], 400, &["invalid_request", "invalid_client"]),
        (&[("grant_type", "refresh_token"), ("client_id", "gcl_unknown")], 401, &["invalid_client"]),
    ] {
        let answer = app.post("/v1/oauth/token", fields).await?;
        let body = answer.json()?;
        assert!(error.contains(&body["error"].as_str().unwrap_or_default()), "{fields:?}: {body}");
        assert_eq!(answer.status == 401, body["error"] == "invalid_client", "{body}");
        assert!(status == answer.status || error.len() > 1, "{fields:?}: {}", answer.status);
        assert!(body["error_description"].is_string());
        assert_eq!((answer.header("cache-control"), answer.header("pragma")), ("no-store", "no-cache"));
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        assert_eq!(answer.headers.contains_key("www-authenticate"), answer.status == 401);
    }
    let long = "x".repeat(17_000);
    assert_eq!(app.post("/v1/oauth/token", &[("code", &long)]).await?.json()?["error"], "invalid_request");
    let url = format!("{issuer}/v1/oauth/token");
    let body = json!({ "grant_type": "authorization_code" });
    let answer = house.client.post(&url).json(&body).send().await?;
    assert_eq!(
        (answer.status().as_u16(), answer.json::<Value>().await?["error"].as_str()),
        (400, Some("invalid_request"))
    );

    for path in ["/v1/oauth/token", "/v1/oauth/register", "/v1/oauth/revoke"] {
        let preflight = house.client.request(Method::OPTIONS, format!("{issuer}{path}")).send().await?;
        assert_eq!(preflight.status(), 204);
        assert_eq!(preflight.headers()["access-control-allow-methods"], "POST, OPTIONS");
        assert_eq!(preflight.headers()["access-control-allow-headers"], "*, Authorization");
        let answer = app.get(path).await?;
        assert_eq!((answer.status, answer.header("allow")), (405, "POST, OPTIONS"));
    }
    let bad = json!({ "redirect_uris": ["http://evil.example/"] });
    let answer = house.client.post(format!("{issuer}/v1/oauth/register")).json(&bad).send().await?;
    assert_eq!(
        (answer.status().as_u16(), answer.json::<Value>().await?["error"].as_str()),
        (400, Some("invalid_redirect_uri"))
    );
    let revoked = app.post("/v1/oauth/revoke", &[("token", "grt_unknown"), ("client_id", &client)]).await?;
    assert_eq!((revoked.status, revoked.body.as_str()), (200, ""));
    house.finish().await
}
