//! OAuth requests of apps, and the responses.

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};

use super::visitor::{REDIRECT, Visitor, authorization_path, exchange, register, start_app};

#[tokio::test(flavor = "multi_thread")]
async fn authorization_redirects_only_to_registered_uris() -> Result<()> {
    let app = start_app(&[]).await?;
    let issuer = app.service.public_url().to_owned();
    let client = register(&app).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut signed_out = Visitor::new(&app);
    for changes in [
        &[("client_id", "")][..],
        &[("client_id", "gcl_unknown")],
        &[("client_id", "https://127.0.0.1/client.json")],
        &[("redirect_uri", "https://evil.example/callback")],
        &[("redirect_uri", "https://app.example/callback?more")],
        &[("redirect_uri", "https://app.example.evil.example/callback")],
        &[("redirect_uri", "no address"), ("response_type", "token")],
    ] {
        for visitor in [&mut ada, &mut signed_out] {
            let answer = visitor.get(&authorization_path(&client, changes)?).await?;
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
        let answer = signed_out.get(&authorization_path(&client, changes)?).await?;
        assert_eq!(answer.status, 303, "{changes:?}: {}", answer.body);
        assert!(answer.location().starts_with(REDIRECT), "{}", answer.location());
        let parameters =
            (answer.redirect_param("error")?, answer.redirect_param("state")?, answer.redirect_param("iss")?);
        assert_eq!(parameters, (error.to_owned(), "a state & more".to_owned(), issuer.clone()), "{changes:?}");
    }
    // A request that is posted as a form is equivalent.
    let request = authorization_path(&client, &[])?;
    let fields = reqwest::Url::parse(&format!("{issuer}{request}"))?;
    let fields: Vec<(String, String)> = fields.query_pairs().into_owned().collect();
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    let answer = signed_out.post("/oauth/authorize", &fields).await?;
    assert_eq!((answer.status, answer.location()), (303, &*request));
    // The sign-in page keeps the authorization request.
    let answer = signed_out.get(&request).await?;
    assert_eq!(answer.status, 303);
    let sign_in = answer.location().to_owned();
    assert_eq!(signed_out.get(&sign_in).await?.hidden_field("next")?, request);
    // The page may lead only to the app's redirect URI, and the response names the issuer.
    let page = ada.get(&request).await?;
    assert!(page.header("content-security-policy").contains("form-action 'self' https://app.example;"));
    assert_eq!(page.header("x-frame-options"), "DENY");
    let answer = ada.decide(&page, "deny", &[]).await?;
    let parameters = (answer.redirect_param("error")?, answer.redirect_param("state")?, answer.redirect_param("iss")?);
    assert_eq!(parameters, ("access_denied".to_owned(), "a state & more".to_owned(), issuer.clone()));
    let page = ada.get(&request).await?;
    let answer = ada.decide(&page, "allow", &[]).await?;
    assert_eq!(
        (answer.status, answer.redirect_param("iss")?, answer.header("referrer-policy")),
        (303, issuer, "no-referrer")
    );
    exchange(&app, &request, &answer.redirect_param("code")?).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn oauth_endpoints_conform_to_the_standards() -> Result<()> {
    let app = start_app(&[]).await?;
    let issuer = app.service.public_url();
    let client = register(&app).await?;
    let mut oauth_app = Visitor::new(&app);
    oauth_app.headers.push(("origin", "https://app.example".to_owned()));

    let server = oauth_app.get("/.well-known/oauth-authorization-server").await?;
    assert_eq!((server.status, server.header("access-control-allow-origin")), (200, "*"));
    let server = server.json()?;
    assert_eq!(server["issuer"], issuer);
    assert_eq!(server["authorization_endpoint"], format!("{issuer}/oauth/authorize"));
    for (path, resource) in [
        ("/.well-known/oauth-protected-resource/mcp", format!("{issuer}/mcp")),
        ("/.well-known/oauth-protected-resource", issuer.to_owned()),
        ("/.well-known/oauth-protected-resource/v1", format!("{issuer}/v1")),
    ] {
        let document = oauth_app.get(path).await?.json()?;
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
        let answer = oauth_app.post("/v1/oauth/token", fields).await?;
        let body = answer.json()?;
        assert!(error.contains(&body["error"].as_str().unwrap_or_default()), "{fields:?}: {body}");
        assert_eq!(answer.status == 401, body["error"] == "invalid_client", "{body}");
        assert!(status == answer.status || error.len() > 1, "{fields:?}: {}", answer.status);
        assert!(body["error_description"].is_string());
        assert_eq!((answer.header("cache-control"), answer.header("pragma")), ("no-store", "no-cache"));
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        assert_eq!(answer.headers.contains_key("www-authenticate"), answer.status == 401);
    }
    let long = "x".repeat(66_000);
    assert_eq!(oauth_app.post("/v1/oauth/token", &[("code", &long)]).await?.json()?["error"], "invalid_request");
    let url = format!("{issuer}/v1/oauth/token");
    let body = json!({ "grant_type": "authorization_code" });
    let answer = app.client.post(&url).json(&body).send().await?;
    assert_eq!(
        (answer.status().as_u16(), answer.json::<Value>().await?["error"].as_str()),
        (400, Some("invalid_request"))
    );

    for path in ["/v1/oauth/token", "/v1/oauth/register", "/v1/oauth/revoke"] {
        let preflight = app.client.request(Method::OPTIONS, format!("{issuer}{path}")).send().await?;
        assert_eq!(preflight.status(), 204);
        assert_eq!(preflight.headers()["access-control-allow-methods"], "POST, OPTIONS");
        assert_eq!(preflight.headers()["access-control-allow-headers"], "*, Authorization");
        let answer = oauth_app.get(path).await?;
        assert_eq!((answer.status, answer.header("allow")), (405, "POST, OPTIONS"));
    }
    let bad = json!({ "redirect_uris": ["http://evil.example/"] });
    let answer = app.client.post(format!("{issuer}/v1/oauth/register")).json(&bad).send().await?;
    assert_eq!(
        (answer.status().as_u16(), answer.json::<Value>().await?["error"].as_str()),
        (400, Some("invalid_redirect_uri"))
    );
    let revoked = oauth_app.post("/v1/oauth/revoke", &[("token", "grt_unknown"), ("client_id", &client)]).await?;
    assert_eq!((revoked.status, revoked.body.as_str()), (200, ""));
    app.finish().await
}
