//! The recorded API requests of a team: what is listed, what never is, and for whom.

use anyhow::{Context, Result, ensure};
use grabd_engine::clock::Clock;
use grabd_proto::v1::CreateGrabRequest;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_tests::agent::{Agent, MODERN};
use grabd_tests::harness::{PASSWORD, TestApp};
use serde_json::{Value, json};
use tonic::Request;
use tonic::transport::Endpoint;

use super::visitor::Visitor;
use crate::links::{sign, signer};

const ADA: &str = "ada@example.com";

/// A service without a browser, whose team has a member.
async fn start() -> Result<TestApp> {
    let app = TestApp::start_without_browser(5, &[("accounts.sign_up", "true")]).await?;
    app.create_member(ADA).await?;
    Ok(app)
}

async fn ada(app: &TestApp) -> Result<Visitor<'_>> {
    let mut ada = Visitor::new(app);
    let answer = ada.sign_in(ADA, PASSWORD, "/grabs").await?;
    ensure!(answer.status == 303, "{} {}", answer.status, answer.body);
    Ok(ada)
}

/// The path of the list.
fn list(app: &TestApp) -> String {
    format!("/teams/{}/requests", app.team.team)
}

/// Sends a create with the test key. Returns its status.
async fn create(app: &TestApp, request_id: &str, body: Value) -> Result<u16> {
    let request = app.client.post(format!("{}/grabs?note=in-the-query", app.base())).bearer_auth(app.test());
    let answer = request.header("X-Request-Id", request_id).header("grabd-called-as", "GET /forged").json(&body);
    Ok(answer.send().await?.status().as_u16())
}

/// The paths of the requests of a page, newest first.
fn paths(page: &str) -> Vec<&str> {
    let links = page.split("<th scope=\"row\"><a href=\"").skip(1);
    links.filter_map(|rest| rest.split('"').next()).collect()
}

/// What the page of a request has recorded.
async fn record(visitor: &mut Visitor<'_>, path: &str) -> Result<Value> {
    let page = visitor.get(path).await?;
    ensure!(page.status == 200, "{path}: {} {}", page.status, page.body);
    let json = page.body.split("readonly autocomplete=\"off\" autocapitalize=\"off\" spellcheck=\"false\">").nth(1);
    let json = json.and_then(|rest| rest.split("</textarea>").next()).context("JSON")?;
    let text = json.replace("&#34;", "\"").replace("&#60;", "<").replace("&#62;", ">").replace("&#38;", "&");
    Ok(serde_json::from_str(&text.replace("&#39;", "'"))?)
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_requests_are_listed_with_their_reason_and_without_secrets() -> Result<()> {
    let app = start().await?;
    let mut ada = ada(&app).await?;
    let empty = ada.get(&list(&app)).await?;
    assert!(empty.status == 200 && empty.body.contains("No requests yet"), "{} {}", empty.status, empty.body);

    let with_password = json!({ "url": "https://user:pass-1@shop.example/" });
    assert_eq!(create(&app, "with-password", with_password).await?, 400);
    let secret = json!({
        "url": "https://shop.example/hidden-path?token=hidden-token",
        "headers": { "X-Token": "hidden-header" },
        "width": 1,
    });
    assert_eq!(create(&app, "first-request", secret).await?, 400);
    assert_eq!(
        create(&app, "second-request", json!({ "url": "https://done.example/", "full_page": true })).await?,
        200
    );
    assert_eq!(app.get("/grabs/01993e1c-7b1a-7000-8000-0123456789ab?x=1", app.test()).await?.0, 404);
    // These are not recorded.
    assert_eq!(app.get("/usage", app.test()).await?.0, 200);
    let unknown = format!("sk_test_{}", "x".repeat(43));
    assert_eq!(app.get("/usage", &unknown).await?.0, 401);

    let page = ada.get(&list(&app)).await?.body;
    assert_eq!(paths(&page).len(), 4, "{page}");
    for expected in ["POST /v1/grabs", "invalid_viewport", "`width` must be", "shop.example", "done.example", "404"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let (mut pages, mut records) = (page.clone(), Vec::new());
    for path in paths(&page) {
        records.push(record(&mut ada, path).await?);
        pages += &ada.get(path).await?.body;
    }
    for hidden in ["pass-1", "hidden-", "in-the-query", "forged", app.test()] {
        assert!(!pages.contains(hidden), "{hidden}: {pages}");
    }
    let [missing, done, refused, _] = &*records else { anyhow::bail!("{records:?}") };
    assert_eq!((&missing["status"], &missing["error"]["code"]), (&json!(404), &json!("not_found")));
    assert_eq!(missing["path"], "/v1/grabs/01993e1c-7b1a-7000-8000-0123456789ab");
    assert_eq!((&done["status"], &done["error"], &done["options"]), (&json!(200), &json!(null), &json!(["full_page"])));
    assert_eq!(refused["options"], json!(["headers", "width"]));
    assert_eq!((&refused["request_id"], &refused["environment"]), (&json!("first-request"), &json!("test")));
    assert_eq!((&refused["host"], &refused["grab_id"]), (&json!("shop.example"), &json!(null)));
    let capture = done["grab_id"].as_str().context("a grab")?;
    assert_eq!(ada.get(&format!("/teams/{}/grabs/{capture}", app.team.team)).await?.status, 200);

    // Filters, and the way from a request id.
    let all = list(&app);
    for (query, expected) in [
        ("status=2xx", &[1][..]),
        ("status=4xx", &[0, 2, 3]),
        ("status=5xx", &[]),
        ("code=invalid_viewport", &[2]),
        ("request_id=second-request", &[1]),
        ("day=2001-01-01", &[]),
        (&format!("key={}", app.team.test_id), &[0, 1, 2, 3]),
        (&format!("key={}", app.team.live_id), &[]),
    ] {
        let filtered = ada.get(&format!("{all}?{query}")).await?.body;
        let expected: Vec<_> = expected.iter().map(|at| paths(&page)[*at]).collect();
        assert_eq!(paths(&filtered), expected, "{query}");
    }
    assert_eq!(ada.get(&format!("{all}?status=teapot")).await?.status, 400);
    let found = ada.get("/requests?request_id=first-request").await?;
    assert_eq!((found.status, found.location()), (303, paths(&page)[2]));
    let unknown = ada.get("/requests?request_id=unknown").await?;
    assert_eq!((unknown.status, unknown.location()), (303, &*format!("{all}?request_id=unknown")));

    // They survive a restart.
    drop(ada);
    let app = app.restart().await?;
    let mut again = self::ada(&app).await?;
    assert_eq!(paths(&again.get(&list(&app)).await?.body), paths(&page));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_recorded_over_every_interface() -> Result<()> {
    let app = start().await?;
    let agent = Agent::new(&app, app.test(), MODERN);
    agent.call("create_grab", json!({ "url": "https://mcp.example/", "width": 1 })).await?;
    agent.call("create_grab", json!({ "url": "https://mcp.example/", "no_such_option": 1 })).await?;
    let mut grabs =
        GrabServiceClient::new(Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?);
    let mut call = Request::new(CreateGrabRequest { url: Some("ftp://grpc.example/".into()), ..Default::default() });
    call.metadata_mut().insert("authorization", format!("Bearer {}", app.test()).parse()?);
    assert!(grabs.create_grab(call).await.is_err());
    let body = json!({ "grabs": [{ "url": "https://batch.example/" }, { "url": "nothing" }] });
    let batch = app.client.post(format!("{}/grabs/batch", app.base())).bearer_auth(app.test()).json(&body);
    assert_eq!(batch.send().await?.status(), 200);
    let signer = signer(&app, app.team.test_id).await?;
    let expires = (Clock::system().now().as_ms() / 1000 + 3600).to_string();
    let link = sign(&signer, &[("url", "https://link.example/"), ("width", "1"), ("expires", &expires)]);
    let opened = app.client.get(format!("{}/shot?{link}", app.base())).send().await?;
    assert_eq!(opened.status(), 400);

    let mut ada = ada(&app).await?;
    let page = ada.get(&list(&app)).await?.body;
    let mut seen = Vec::new();
    for path in paths(&page) {
        let record = record(&mut ada, path).await?;
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        let code = record["error"]["code"].as_str().unwrap_or_default().to_owned();
        seen.push((text("method"), text("path"), code));
    }
    seen.reverse();
    let expected = [
        ("MCP", "create_grab", "invalid_viewport"),
        ("MCP", "create_grab", "bad_request"),
        ("gRPC", "/grabd.v1.GrabService/CreateGrab", "bad_request"),
        ("POST", "/v1/grabs/batch", "bad_request"),
        ("GET", "/v1/shot", "invalid_viewport"),
    ];
    let expected = expected.map(|(method, path, code)| (method.to_owned(), path.to_owned(), code.to_owned()));
    assert_eq!(seen, expected, "{page}");
    assert!(page.contains("1 of 2 captures were refused") && !page.contains("sig="), "{page}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_team_are_visible_to_its_members_only() -> Result<()> {
    let app = start().await?;
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let eves = super::team::team_of(&app, "eve@example.com", 0).await?;
    assert_eq!(create(&app, "hers", json!({ "url": "https://secret.example/", "width": 1 })).await?, 400);
    let mut ada = ada(&app).await?;
    let page = ada.get(&list(&app)).await?.body;
    let [request] = &*paths(&page) else { anyhow::bail!("{page}") };
    let id = request.rsplit('/').next().context("an id")?;

    for path in [list(&app), (*request).to_owned(), format!("/teams/{eves}/requests/{id}")] {
        let answer = eve.get(&path).await?;
        assert!(answer.status == 404 && !answer.body.contains("secret.example"), "{path} {}", answer.status);
    }
    for path in [format!("/teams/{eves}/requests"), format!("/teams/{eves}/requests?request_id=hers")] {
        let answer = eve.get(&path).await?;
        assert!(answer.status == 200 && paths(&answer.body).is_empty(), "{path} {}", answer.body);
    }
    let redirect = eve.get("/requests?request_id=hers").await?;
    assert_eq!(redirect.location(), format!("/teams/{eves}/requests?request_id=hers"));

    // Neither a key nor an app can read them: no path of the API has them, and pages need a session.
    for path in ["/requests", &format!("/requests/{id}"), "/usage/requests"] {
        assert_eq!(app.get(path, app.live()).await?.0, 404, "{path}");
    }
    let pages = format!("http://{}{}", app.service.http(), list(&app));
    let with_key = app.client.get(pages).bearer_auth(app.live()).send().await?;
    assert_eq!(with_key.status(), 303);
    app.finish().await
}
