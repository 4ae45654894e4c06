//! Grab, GrabList, Usage and Pricing have the members and the types of the contract, for every kind of caller that reads
//! them: live and test keys, and apps with a token of either environment, over REST and MCP.
//!
//! Users who are signed in have no JSON of their own: the web app shows them the same as pages, and the API takes no
//! cookies.

use anyhow::{Context, Result, ensure};
use grabd_tests::agent::{Agent, MODERN};
use grabd_tests::contract::{ApiError, Shape};
use grabd_tests::harness::{PASSWORD, TestApp};
use grabd_tests::visitor::{Visitor, authorization_path, exchange, register};
use reqwest::{Method, Response};
use sea_orm::{ConnectionTrait, Database};
use serde_json::{Value, json};

/// A caller with a credential.
struct ApiCaller<'a> {
    app: &'a TestApp,
    credential: &'a str,
    environment: &'static str,
}

impl ApiCaller<'_> {
    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Result<Response> {
        let request = self.app.client.request(method, format!("{}{path}", self.app.base()));
        let request = request.bearer_auth(self.credential);
        Ok(match body {
            Some(body) => request.json(&body).send().await?,
            None => request.send().await?,
        })
    }

    /// Reads an object, which must have this shape.
    async fn get(&self, path: &str, shape: Shape) -> Result<Value> {
        let response = self.send(Method::GET, path, None).await?;
        ensure!(response.status() == 200, "{path}: {}", response.status());
        let value = response.json().await?;
        shape.check(&value).with_context(|| path.to_owned())?;
        Ok(value)
    }

    /// Creates a grab, which must have this status. Returns its id.
    async fn create(&self, query: &str, body: Value, status: &[&str]) -> Result<String> {
        let response = self.send(Method::POST, &format!("/grabs{query}"), Some(body)).await?;
        let grab: Value = response.error_for_status()?.json().await?;
        Shape::Grab.check(&grab)?;
        ensure!(status.contains(&grab["status"].as_str().unwrap_or_default()), "{grab}");
        Ok(grab["id"].as_str().context("an id")?.to_owned())
    }

    /// Creates a grab that fails. The grab must have the error of the response. Returns its id.
    async fn create_failed(&self, url: &str) -> Result<String> {
        let response = self.send(Method::POST, "/grabs", Some(json!({ "url": url }))).await?;
        let location = response.headers().get("location").context("a location")?.to_str()?.to_owned();
        let ApiError { code, message, cause, .. } = ApiError::read(response).await?;
        let grab = self.get(location.strip_prefix("/v1").context("a path")?, Shape::Grab).await?;
        let (expected, shown) = (json!([code, message, cause]), error_members(&grab));
        ensure!(grab["status"] == "failed" && shown == expected, "{expected}: {grab}");
        Ok(grab["id"].as_str().context("an id")?.to_owned())
    }
}

fn error_members(grab: &Value) -> Value {
    json!([grab["error_code"], grab["error_message"], grab["error_cause"]])
}

/// A token for the team's environment, from the consent page.
async fn token(app: &TestApp, user: &mut Visitor<'_>, environment: &str) -> Result<String> {
    let request = authorization_path(&register(app).await?, &[("scope", "grabs manage")])?;
    let place = format!("{}/{environment}", app.team.team);
    let page = user.get(&request).await?;
    let code = user.decide(&page, "allow", &[("place", &place), ("manage", "yes")]).await?.redirect_param("code")?;
    let tokens = exchange(app, &request, &code).await?;
    Ok(tokens["access_token"].as_str().context("a token")?.to_owned())
}

async fn check_rest(caller: &ApiCaller<'_>) -> Result<()> {
    let (site, is_live) = (&caller.app.site, caller.environment == "live");
    let tiny = json!({ "url": site.url("/tiny") });
    let done = caller.create("", tiny.clone(), &["done"]).await?;
    // A placeholder is done at once.
    let states: &[&str] = if is_live { &["pending", "processing"] } else { &["done"] };
    let queued = caller.create("?async=true", tiny.clone(), states).await?;
    let failing = if is_live { site.url("/status/403") } else { "http://blocked.test/".to_owned() };
    let failed = caller.create_failed(&failing).await?;
    let batch = json!({ "grabs": [tiny, { "url": failing }, { "url": "nonsense" }] });
    let response = caller.send(Method::POST, "/grabs/batch", Some(batch)).await?.error_for_status()?;
    let batch: Value = response.json().await?;
    Shape::Batch.check(&batch)?;
    ensure!(batch["results"][2]["error"]["code"] == "bad_request", "{batch}");

    // Every event of the stream, to the end of the grab.
    for id in [&queued, &failed] {
        let events = caller.send(Method::GET, &format!("/grabs/{id}/events"), None).await?.error_for_status()?;
        let text = events.text().await?;
        let states: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        ensure!(!states.is_empty(), "{text}");
        for state in states {
            Shape::Grab.check(&serde_json::from_str(state)?)?;
        }
    }
    caller.send(Method::DELETE, &format!("/grabs/{done}"), None).await?.error_for_status()?;
    for id in [&done, &queued, &failed] {
        caller.get(&format!("/grabs/{id}"), Shape::Grab).await?;
    }
    let page = caller.get("/grabs?limit=2", Shape::GrabList).await?;
    ensure!(page["has_more"] == json!(true) && page["data"].as_array().map(Vec::len) == Some(2), "{page}");
    for status in ["pending", "processing", "done", "failed"] {
        caller.get(&format!("/grabs?status={status}"), Shape::GrabList).await?;
    }
    let all = caller.get("/grabs?limit=100", Shape::GrabList).await?;
    ensure!(all["has_more"] == json!(false) && all.to_string().contains("\"error_code\":\"render_blocked\""), "{all}");

    let usage = caller.get("/usage", Shape::Usage).await?;
    ensure!(usage["environment"] == caller.environment, "{usage}");
    for query in ["", "?detail=full", "?detail=summary", "?provider=provider_a", "?provider=provider_c&detail=summary"]
    {
        caller.get(&format!("/pricing{query}"), Shape::Pricing).await?;
    }
    Ok(())
}

async fn check_mcp(caller: &ApiCaller<'_>) -> Result<()> {
    let agent = Agent::new(caller.app, caller.credential, MODERN);
    for (tool, arguments, shape) in [
        ("get_usage", json!({}), Shape::Usage),
        ("get_pricing", json!({}), Shape::Pricing),
        ("get_pricing", json!({ "detail": "full" }), Shape::Pricing),
        ("list_grabs", json!({}), Shape::GrabList),
        ("list_grabs", json!({ "status": "failed", "limit": 1 }), Shape::GrabList),
    ] {
        let answer = agent.call(tool, arguments).await?;
        shape.check(answer.structured()?).with_context(|| tool.to_owned())?;
        if tool == "list_grabs" {
            let id = answer.structured()?["data"][0]["id"].clone();
            Shape::Grab.check(agent.call("get_grab", json!({ "id": id })).await?.structured()?)?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_have_the_members_of_the_contract_for_every_credential() -> Result<()> {
    let app = TestApp::start(20, &[]).await?;
    app.create_member("ada@example.com").await?;
    let mut ada = Visitor::new(&app);
    assert_eq!(ada.sign_in("ada@example.com", PASSWORD, "").await?.status, 303);
    let tokens = (token(&app, &mut ada, "live").await?, token(&app, &mut ada, "test").await?);
    for (credential, environment) in
        [(app.live(), "live"), (app.test(), "test"), (&*tokens.0, "live"), (&*tokens.1, "test")]
    {
        let caller = ApiCaller { app: &app, credential, environment };
        check_rest(&caller).await.with_context(|| format!("as {credential:.8}, {environment}"))?;
        check_mcp(&caller).await.with_context(|| format!("as {credential:.8}, {environment}"))?;
    }

    // A session of the web app is no credential of the API. Prices are public.
    for path in ["/v1/usage", "/v1/grabs", "/v1/grabs/01993e1c-7b1a-7000-8000-0123456789ab"] {
        let refused = ada.get(path).await?;
        assert_eq!((refused.status, refused.header("error-cause")), (401, "request"), "{path}");
        Shape::Error.check(&refused.json()?)?;
    }
    Shape::Pricing.check(&ada.get("/v1/pricing").await?.json()?)?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_grabs_of_earlier_versions_have_a_code_and_a_cause() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let caller = ApiCaller { app: &app, credential: app.test(), environment: "test" };
    let ids = [caller.create_failed("http://blocked.test/").await?, caller.create_failed("http://broken.test/").await?];
    // Versions before 0.2.0 stored no cause.
    let database = Database::connect(format!("sqlite://{}", app.data_dir().join("grabd.db").display())).await?;
    database.execute_unprepared("UPDATE grab SET error_cause = NULL").await?;
    database.close().await?;
    for (id, code) in ids.iter().zip(["render_blocked", "render_failed"]) {
        let grab = caller.get(&format!("/grabs/{id}"), Shape::Grab).await?;
        assert_eq!((&grab["error_code"], &grab["error_cause"]), (&json!(code), &json!("target")), "{grab}");
    }
    let list = caller.get("/grabs?status=failed", Shape::GrabList).await?;
    assert_eq!(list["data"].as_array().map(Vec::len), Some(2), "{list}");
    app.finish().await
}
