//! What an app may do with the scopes that a user has granted, and that its webhooks end with its grant.

use anyhow::{Context, Result, ensure};
use grabd_domain::ids::TeamId;
use grabd_tests::harness::{ALLOWED, TestApp};
use grabd_tests::receiver::Receiver;
use reqwest::Method;
use reqwest::header::HeaderMap;
use sea_orm::{ConnectionTrait, Database};
use serde_json::{Value, json};

use super::team::{capture, team_of};
use super::visitor::{PageResponse, Visitor, authorization_path, exchange, register, start_app, start_capturing_app};
use super::webhooks::{create_webhook, submit};

/// An app that a user has connected.
struct ConnectedApp<'a> {
    app: &'a TestApp,
    client: String,
    tokens: Value,
}

/// A response of the API.
struct ApiResponse {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl<'a> ConnectedApp<'a> {
    /// Connects an app that asks for these scopes, to the test environment. `changes` replace fields of the consent page.
    async fn connect(app: &'a TestApp, user: &mut Visitor<'_>, scope: &str, changes: &[(&str, &str)]) -> Result<Self> {
        let client = register(app).await?;
        let request = authorization_path(&client, &[("scope", scope)])?;
        let page = user.get(&request).await?;
        let place = page.body.split("name=\"place\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        let test = place.context("a place")?.replace("/live", "/test");
        let changes = [changes, &[("place", &*test)]].concat();
        let code = user.decide(&page, "allow", &changes).await?.redirect_param("code")?;
        Ok(Self { app, client, tokens: exchange(app, &request, &code).await? })
    }

    fn scope(&self) -> &str {
        self.tokens["scope"].as_str().unwrap_or_default()
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<ApiResponse> {
        let token = self.tokens["access_token"].as_str().context("an access token")?;
        let mut request = self.app.client.request(method, format!("{}{path}", self.app.base())).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text)? };
        Ok(ApiResponse { status, headers, body })
    }

    /// Refreshes the tokens, if the service issues new ones. `scope` is left out if it is empty.
    async fn refresh(&mut self, scope: &str) -> Result<PageResponse> {
        let refresh = self.tokens["refresh_token"].as_str().context("a refresh token")?;
        let mut form = vec![("grant_type", "refresh_token"), ("refresh_token", refresh), ("client_id", &self.client)];
        form.extend((!scope.is_empty()).then_some(("scope", scope)));
        let answer = Visitor::new(self.app).post("/v1/oauth/token", &form).await?;
        if answer.status == 200 {
            self.tokens = answer.json()?;
        }
        Ok(answer)
    }

    /// Captures a placeholder and returns its id.
    async fn capture(&self) -> Result<String> {
        let created = self.call(Method::POST, "/grabs", Some(json!({ "url": "https://example.com/" }))).await?;
        ensure!(created.status == 200, "{} {}", created.status, created.body);
        Ok(created.body["id"].as_str().context("an id")?.to_owned())
    }

    /// Creates a webhook and returns its path.
    async fn create_webhook(&self, url: &str) -> Result<String> {
        let created = self.call(Method::POST, "/webhooks", Some(json!({ "url": url }))).await?;
        ensure!(created.status == 201, "{} {}", created.status, created.body);
        Ok(format!("/webhooks/{}", created.body["id"].as_str().context("an id")?))
    }
}

/// Every request that needs the scope `manage`. `{grab}` and `{webhook}` are ids.
const MANAGING: [(Method, &str); 10] = [
    (Method::DELETE, "/grabs/{grab}"),
    (Method::POST, "/webhooks"),
    (Method::GET, "/webhooks"),
    (Method::GET, "/webhooks/{webhook}"),
    (Method::PATCH, "/webhooks/{webhook}"),
    (Method::POST, "/webhooks/{webhook}/rotate_secret"),
    (Method::POST, "/webhooks/{webhook}/test"),
    (Method::GET, "/webhooks/{webhook}/deliveries"),
    (Method::POST, "/webhooks/{webhook}/deliveries/{webhook}/redeliver"),
    (Method::DELETE, "/webhooks/{webhook}"),
];

#[tokio::test(flavor = "multi_thread")]
async fn app_without_the_scope_manage_captures_and_reads_and_nothing_else() -> Result<()> {
    let app = start_app(&[("webhooks.allow_http", "true")]).await?;
    let receiver = Receiver::start(ALLOWED).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let fields = [("url", &*receiver.url()), ("events", "*"), ("environment", "test")];
    let (page, _) = create_webhook(&mut ada, team, &fields).await?;
    let webhook = page.rsplit('/').next().context("an id")?.to_owned();
    let origin = app.service.public_url();
    let challenge = format!(
        "Bearer error=\"insufficient_scope\", scope=\"manage\", \
         resource_metadata=\"{origin}/.well-known/oauth-protected-resource\""
    );
    for scope in ["", "grabs", "grabs offline_access"] {
        let connected = ConnectedApp::connect(&app, &mut ada, scope, &[]).await?;
        assert_eq!(connected.scope(), "grabs", "{scope:?}");
        let grab = connected.capture().await?;
        for path in ["/usage".to_owned(), "/grabs".to_owned(), format!("/grabs/{grab}")] {
            assert_eq!(connected.call(Method::GET, &path, None).await?.status, 200, "{path}");
        }
        for (method, path) in &MANAGING {
            let path = path.replace("{grab}", &grab).replace("{webhook}", &webhook);
            let body = (*method != Method::GET).then(|| json!({ "url": receiver.url() }));
            let refused = connected.call(method.clone(), &path, body).await?;
            assert_eq!((refused.status, &refused.body["error"]["code"]), (403, &json!("forbidden")), "{method} {path}");
            let message = refused.body["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("app") && message.contains("`manage`") && !message.contains("key"), "{message}");
            assert_eq!(refused.headers["www-authenticate"], challenge, "{method} {path}");
        }
        let kept = connected.call(Method::GET, &format!("/grabs/{grab}"), None).await?;
        assert!(kept.body["image_url"].is_string(), "{}", kept.body);
        let shown = ada.get(&format!("/teams/{team}/grabs/{grab}")).await?.body;
        assert!(shown.contains("By app <bdi>An app</bdi>"), "{shown}");
    }
    assert_eq!(ada.get(&page).await?.status, 200, "the webhook is still there");
    assert_eq!(receiver.received().len(), 0);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn manage_is_granted_only_if_the_app_asks_for_it_and_the_box_is_ticked() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    for (scope, changes, granted) in [
        // Only what the app has asked for can be granted, whatever the form says.
        ("", &[("manage", "yes")][..], "grabs"),
        ("grabs", &[("manage", "yes")], "grabs"),
        ("grabs manage", &[("manage", "yes")], "grabs manage"),
        ("manage", &[("manage", "yes")], "grabs manage"),
        ("openid manage grabs manage", &[("manage", "yes")], "grabs manage"),
        // As the page is shown first.
        ("grabs manage", &[], "grabs"),
        ("manage", &[], "grabs"),
    ] {
        let page = ada.get(&authorization_path(&register(&app).await?, &[("scope", scope)])?).await?;
        let asks = scope.contains("manage");
        assert_eq!(page.body.contains("name=\"manage\""), asks, "{scope:?}: {}", page.body);
        let connected = ConnectedApp::connect(&app, &mut ada, scope, changes).await?;
        assert_eq!(connected.scope(), granted, "{scope:?} {changes:?}");
        let deletes = connected.call(Method::DELETE, &format!("/grabs/{}", connected.capture().await?), None).await?;
        assert_eq!(deletes.status, if granted.contains("manage") { 204 } else { 403 }, "{scope:?} {changes:?}");
    }
    // Without a choice of the team, the page is shown again with the box as it was.
    for ticked in ["yes", ""] {
        let page = ada.get(&authorization_path(&register(&app).await?, &[("scope", "grabs manage")])?).await?;
        let again = ada.decide(&page, "allow", &[("place", ""), ("manage", ticked)]).await?;
        assert_eq!(again.status, 422);
        assert!(again.body.contains("name=\"manage\""), "{}", again.body);
        assert_eq!(again.body.contains("name=\"manage\" value=\"yes\" checked"), !ticked.is_empty(), "{}", again.body);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn refresh_narrows_the_scope_of_the_access_token_only() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut connected = ConnectedApp::connect(&app, &mut ada, "grabs manage", &[("manage", "yes")]).await?;
    let grab = format!("/grabs/{}", connected.capture().await?);
    // A code of another scope is not used up by a refresh that is refused.
    let refused = connected.refresh("grabs admin").await?;
    assert_eq!((refused.status, &refused.json()?["error"]), (400, &json!("invalid_scope")));
    for (scope, granted, status) in [("grabs", "grabs", 403), ("manage", "manage", 204), ("", "grabs manage", 204)] {
        assert_eq!(connected.refresh(scope).await?.status, 200, "{scope:?}");
        assert_eq!(connected.scope(), granted, "{scope:?}");
        assert_eq!(connected.call(Method::DELETE, &grab, None).await?.status, status, "{scope:?}");
        let reads = connected.call(Method::GET, "/usage", None).await?;
        let read_status = if granted.contains("grabs") { 200 } else { 403 };
        assert_eq!(reads.status, read_status, "{scope:?}");
        if read_status == 403 {
            let challenge = reads.headers["www-authenticate"].to_str()?.to_owned();
            assert!(challenge.contains("scope=\"grabs\""), "{challenge}");
        }
    }
    let mut narrow = ConnectedApp::connect(&app, &mut ada, "grabs", &[]).await?;
    for scope in ["manage", "grabs manage"] {
        let refused = narrow.refresh(scope).await?;
        assert_eq!((refused.status, &refused.json()?["error"]), (400, &json!("invalid_scope")), "{scope}");
    }
    assert_eq!(narrow.refresh("").await?.status, 200, "the refused requests have not used up the token");
    app.finish().await
}

/// Captures a page of the test's site asynchronously.
async fn capture_live(app: &TestApp, user: &mut Visitor<'_>, team: TeamId) -> Result<()> {
    let site = app.site.url("/tiny");
    let answer = capture(user, team, &[("url", &site), ("environment", "live")]).await?;
    ensure!(answer.status == 303, "{} {}", answer.status, answer.body);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_of_an_app_ends_with_disconnect() -> Result<()> {
    let app = start_capturing_app(&[("webhooks.allow_http", "true")]).await?;
    let (of_app, own) = (Receiver::start(ALLOWED).await?, Receiver::start(ALLOWED).await?);
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 5).await?;
    let live = format!("{team}/live");
    let changes = [("place", &*live), ("manage", "yes")];
    let connected = ConnectedApp::connect(&app, &mut ada, "grabs manage", &changes).await?;
    connected.create_webhook(&of_app.url()).await?;
    let fields = [("url", &*own.url()), ("events", "*"), ("environment", "live")];
    create_webhook(&mut ada, team, &fields).await?;
    capture_live(&app, &mut ada, team).await?;
    assert_eq!(of_app.wait_for(0).await?.json()?["type"], "grab.done");
    own.wait_for(0).await?;

    // A message to the app waits for its second attempt when the app is disconnected.
    of_app.respond_with(&[500]);
    capture_live(&app, &mut ada, team).await?;
    of_app.wait_for(1).await?;
    own.wait_for(1).await?;
    let apps = ada.get("/apps").await?;
    assert!(apps.body.contains("1 webhook"), "{}", apps.body);
    let grant = apps.body.split("action=\"/apps/").nth(1).and_then(|rest| rest.get(..36)).context("a grant")?;
    assert_eq!(submit(&mut ada, &format!("/apps/{grant}/disconnect")).await?.status, 303);
    assert_eq!(connected.call(Method::GET, "/webhooks", None).await?.status, 401);

    // A later message of the team is repeated after as long a wait, and nothing else was sent to the app by then.
    own.respond_with(&[500]);
    capture_live(&app, &mut ada, team).await?;
    own.wait_for(3).await?;
    assert_eq!(of_app.received().len(), 2);
    let listed = ada.get(&format!("/teams/{team}/webhooks")).await?;
    assert_eq!(listed.body.matches("<h2><a href=\"/teams/").count(), 1, "{}", listed.body);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn app_sees_and_changes_only_the_webhooks_that_it_created() -> Result<()> {
    let app = start_app(&[("webhooks.allow_http", "true")]).await?;
    let receiver = Receiver::start(ALLOWED).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let fields = [("url", &*receiver.url()), ("events", "*"), ("environment", "test")];
    let (page, _) = create_webhook(&mut ada, team, &fields).await?;
    let ticked = [("manage", "yes")];
    let one = ConnectedApp::connect(&app, &mut ada, "grabs manage", &ticked).await?;
    let other = ConnectedApp::connect(&app, &mut ada, "grabs manage", &ticked).await?;
    let (mine, theirs) = (one.create_webhook(&receiver.url()).await?, other.create_webhook(&receiver.url()).await?);
    let listed = one.call(Method::GET, "/webhooks", None).await?.body;
    let ids: Vec<_> = listed["data"].as_array().into_iter().flatten().map(|webhook| &webhook["id"]).collect();
    assert_eq!(ids, [&json!(mine.trim_start_matches("/webhooks/"))], "{listed}");
    assert_eq!(one.call(Method::GET, &mine, None).await?.status, 200);
    let of_team = format!("/webhooks/{}", page.rsplit('/').next().context("an id")?);
    for foreign in [&theirs, &of_team] {
        for (method, path) in MANAGING.iter().filter(|(_, path)| path.contains("{webhook}")) {
            let path = path.replace("/webhooks/{webhook}", foreign).replace("{webhook}", &"0".repeat(32));
            let body = (*method == Method::PATCH).then(|| json!({ "status": "disabled" }));
            let refused = one.call(method.clone(), &path, body).await?;
            assert_eq!((refused.status, &refused.body["error"]["code"]), (404, &json!("not_found")), "{method} {path}");
        }
    }
    // The team sees and changes all of them.
    let listed = ada.get(&format!("/teams/{team}/webhooks")).await?;
    assert_eq!(listed.body.matches("<h2><a href=\"/teams/").count(), 3, "{}", listed.body);
    assert_eq!(listed.body.matches("Created by the app").count(), 2, "{}", listed.body);
    let theirs = format!("/teams/{team}{theirs}");
    assert_eq!(submit(&mut ada, &format!("{theirs}/delete")).await?.status, 303);
    assert_eq!(ada.get(&page).await?.status, 200);
    assert_eq!(receiver.received().len(), 0);
    app.finish().await
}

/// Makes all webhooks look as if an earlier version had created them, which did not record by whom.
pub(super) async fn forget_creators(app: &TestApp) -> Result<()> {
    let database = Database::connect(format!("sqlite://{}", app.data_dir().join("grabd.db").display())).await?;
    database.execute_unprepared("UPDATE webhook_endpoint SET creator = NULL WHERE grant_id IS NULL").await?;
    Ok(database.close().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_of_an_earlier_version_is_shown_until_a_member_keeps_it() -> Result<()> {
    let app = start_app(&[("webhooks.allow_http", "true")]).await?;
    let receiver = Receiver::start(ALLOWED).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let fields = [("url", &*receiver.url()), ("events", "*"), ("environment", "test")];
    let (page, _) = create_webhook(&mut ada, team, &fields).await?;
    let list = format!("/teams/{team}/webhooks");
    for path in [&page, &list] {
        let shown = ada.get(path).await?;
        assert!(shown.body.contains("Created in the web app") && !shown.body.contains("Do you know"), "{}", shown.body);
    }
    forget_creators(&app).await?;
    let apps = ada.get("/apps").await?;
    assert!(apps.body.contains(&format!("<a href=\"{list}\">webhooks of")), "{}", apps.body);
    for path in [&page, &list] {
        let shown = ada.get(path).await?;
        assert!(shown.body.contains("Creator unknown") && shown.body.contains("Do you know"), "{}", shown.body);
    }
    let kept = submit(&mut ada, &format!("{page}/keep")).await?;
    assert_eq!((kept.status, kept.location()), (303, &*format!("{page}?kept")));
    for path in [kept.location(), &list, "/apps"] {
        let shown = ada.get(path).await?;
        assert!(!shown.body.contains("Do you know") && !shown.body.contains("webhooks of <bdi>"), "{}", shown.body);
    }
    assert_eq!(submit(&mut ada, &format!("{page}/keep")).await?.status, 404, "there is nothing to keep any more");
    app.finish().await
}
