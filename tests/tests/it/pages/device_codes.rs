//! The device authorization grant (RFC 8628): a program without a browser, and the page on which its code is typed.

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use grabd_tests::visitor::{PageResponse, Visitor, register, start_app};
use serde_json::{Value, json};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

pub(super) async fn begin(app: &TestApp, client: &str, scope: &str) -> Result<Value> {
    let mut program = Visitor::new(app);
    let begun = program.post("/v1/oauth/device_authorization", &[("client_id", client), ("scope", scope)]).await?;
    anyhow::ensure!(begun.status == 200, "{} {}", begun.status, begun.body);
    begun.json()
}

pub(super) async fn poll(app: &TestApp, client: &str, begun: &Value) -> Result<Value> {
    let code = begun["device_code"].as_str().context("device_code")?;
    let form = [("grant_type", GRANT), ("device_code", code), ("client_id", client)];
    Visitor::new(app).post("/v1/oauth/token", &form).await?.json()
}

/// Types a code as a signed-in user.
pub(super) async fn enter(user: &mut Visitor<'_>, code: &str) -> Result<PageResponse> {
    let page = user.get("/device").await?;
    let token = page.hidden_field("form_token")?;
    user.post("/device", &[("form_token", &token), ("user_code", code)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn program_gets_tokens_after_its_code_was_typed_and_allowed() -> Result<()> {
    let app = start_app(&[]).await?;
    let client = register(&app).await?;
    let server = Visitor::new(&app).get("/.well-known/oauth-authorization-server").await?.json()?;
    let issuer = app.service.public_url().to_owned();
    assert_eq!(server["device_authorization_endpoint"], format!("{issuer}/v1/oauth/device_authorization"));
    assert!(server["grant_types_supported"].as_array().is_some_and(|types| types.contains(&json!(GRANT))));

    let begun = begin(&app, &client, "grabs").await?;
    let code = begun["user_code"].as_str().context("user_code")?.to_owned();
    assert_eq!((&begun["interval"], &begun["expires_in"]), (&json!(5), &json!(600)));
    assert_eq!(begun["verification_uri"], format!("{issuer}/device"));
    assert_eq!(begun["verification_uri_complete"], format!("{issuer}/device?user_code={code}"));
    assert_eq!(poll(&app, &client, &begun).await?["error"], "authorization_pending");
    assert_eq!(poll(&app, &client, &begun).await?["error"], "slow_down", "within the interval");

    // The URL with the code leads through the sign-in to the form, which is filled in and not sent.
    let mut visitor = Visitor::new(&app);
    let answer = visitor.get(&format!("/device?user_code={code}")).await?;
    assert_eq!(
        (answer.status, answer.location()),
        (303, format!("/sign-in?next=%2Fdevice%3Fuser_code%3D{code}").as_str())
    );
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let page = ada.get(&format!("/device?user_code={}", code.to_lowercase())).await?;
    assert!(page.body.contains(&format!("value=\"{code}\"")), "{}", page.body);
    for (wrong, message) in [("BCDF", "eight letters"), ("BBBB-BBBB", "No program waits with this code")] {
        let page = enter(&mut ada, wrong).await?;
        assert_eq!(page.status, 422, "{wrong}");
        assert!(page.body.contains(message), "{}", page.body);
    }
    let consent = enter(&mut ada, &code.replace('-', " ").to_lowercase()).await?;
    assert!(consent.body.contains(&code) && consent.body.contains("another device"), "{}", consent.body);
    let answer = ada.decide(&consent, "allow", &[]).await?;
    assert_eq!((answer.status, answer.location()), (303, format!("{issuer}/device?answer=allowed").as_str()));
    assert!(ada.get("/device?answer=allowed").await?.body.contains("<h1>Connected</h1>"));

    // Another client cannot use the code, and the right one only once.
    let other = register(&app).await?;
    assert_eq!(poll(&app, &other, &begun).await?["error"], "invalid_grant");
    let tokens = poll(&app, &client, &begun).await?;
    let access = tokens["access_token"].as_str().context("access_token")?.to_owned();
    assert_eq!(tokens["scope"], "grabs");
    assert_eq!(app.get("/usage", &access).await?.0, 200);
    assert_eq!(poll(&app, &client, &begun).await?["error"], "invalid_grant", "a second use ends the grant");
    assert_eq!(app.get("/usage", &access).await?.0, 401);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_and_malformed_device_requests_get_no_tokens() -> Result<()> {
    let app = start_app(&[]).await?;
    let client = register(&app).await?;
    let mut program = Visitor::new(&app);
    for (form, error) in [
        (&[("client_id", "gcl_unknown")][..], "invalid_client"),
        (&[("scope", "grabs")], "invalid_client"),
        (&[("client_id", &client), ("scope", "everything")], "invalid_scope"),
        (&[("client_id", &client), ("resource", "https://elsewhere.example/")], "invalid_target"),
    ] {
        let answer = program.post("/v1/oauth/device_authorization", form).await?;
        assert_eq!(answer.json()?["error"], error, "{form:?}");
    }
    let begun = begin(&app, &client, "grabs manage").await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let code = begun["user_code"].as_str().context("user_code")?;
    let consent = enter(&mut ada, code).await?;
    let answer = ada.decide(&consent, "deny", &[]).await?;
    assert!(answer.location().ends_with("/device?answer=denied"), "{}", answer.location());
    assert!(ada.get("/device?answer=denied").await?.body.contains("<h1>Not connected</h1>"));
    assert_eq!(poll(&app, &client, &begun).await?["error"], "access_denied");
    assert_eq!(enter(&mut ada, code).await?.status, 422, "it is answered");
    for form in [
        &[("grant_type", GRANT), ("client_id", &client)][..],
        &[("grant_type", GRANT), ("client_id", &client), ("device_code", "gdc_unknown")],
    ] {
        let error = program.post("/v1/oauth/token", form).await?.json()?["error"].clone();
        assert!(error == "invalid_request" || error == "invalid_grant", "{error}");
    }
    app.finish().await
}
