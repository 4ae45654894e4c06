//! A minimal browser: it keeps cookies and reads forms, and does not follow redirects.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use grabd_domain::accounts::Email;
use grabd_engine::accounts;
use grabd_store::accounts::InitialTeam;
use reqwest::header::{COOKIE, HeaderMap, LOCATION, SET_COOKIE};
use serde_json::{Value, json};

pub use crate::harness::PASSWORD;
use crate::harness::TestApp;

/// The redirect URI of the OAuth client.
pub const REDIRECT: &str = "https://app.example/callback";
/// The challenge of [`VERIFIER`] (RFC 7636 appendix B).
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// The PKCE code verifier.
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// Starts a service with open sign-up.
pub async fn start_app(settings: &[(&'static str, &str)]) -> Result<TestApp> {
    TestApp::start_without_browser(0, &[&[("accounts.sign_up", "true")], settings].concat()).await
}

/// Starts a service with open sign-up that also captures pages.
pub async fn start_capturing_app(settings: &[(&'static str, &str)]) -> Result<TestApp> {
    TestApp::start(0, &[&[("accounts.sign_up", "true")], settings].concat()).await
}

/// A browser session.
pub struct Visitor<'a> {
    app: &'a TestApp,
    pub cookies: BTreeMap<String, String>,
    /// Headers that are sent with every request.
    pub headers: Vec<(&'static str, String)>,
}

/// A response.
pub struct PageResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl<'a> Visitor<'a> {
    pub fn new(app: &'a TestApp) -> Self {
        Self { app, cookies: BTreeMap::new(), headers: Vec::new() }
    }

    /// Creates an account with a verified address and a team of its own, and signs in.
    pub async fn with_account(app: &'a TestApp, email: &str) -> Result<Self> {
        if !app.service.core().sends_mail() {
            return Self::with_sign_up(app, email).await;
        }
        let (address, now) = (Email::parse(email)?, app.service.core().now());
        let (team, name) = accounts::personal_team(&address, now);
        let place = InitialTeam::New(team, name);
        accounts::create_user(app.service.store(), &address, PASSWORD, place, now).await?;
        let mut visitor = Self::new(app);
        let answer = visitor.sign_in(email, PASSWORD, "").await?;
        ensure!(answer.status == 303, "{} {}", answer.status, answer.body);
        Ok(visitor)
    }

    /// Signs up.
    pub async fn with_sign_up(app: &'a TestApp, email: &str) -> Result<Self> {
        let mut visitor = Self::new(app);
        let form_token = visitor.get("/sign-up").await?.hidden_field("form_token")?;
        let form = [("form_token", &*form_token), ("email", email), ("password", PASSWORD)];
        let answer = visitor.post("/sign-up", &form).await?;
        ensure!(answer.status == 303, "{} {}", answer.status, answer.body);
        Ok(visitor)
    }

    pub async fn get(&mut self, path: &str) -> Result<PageResponse> {
        let request = self.app.client.get(format!("{}{path}", self.app.service.public_url()));
        self.send(request).await
    }

    pub async fn post(&mut self, path: &str, form: &[(&str, &str)]) -> Result<PageResponse> {
        let request = self.app.client.post(format!("{}{path}", self.app.service.public_url()));
        let body = reqwest::Url::parse_with_params("http://form.invalid", form)?;
        let body = body.query().unwrap_or_default().to_owned();
        self.send(request.header("content-type", "application/x-www-form-urlencoded").body(body)).await
    }

    async fn send(&mut self, mut request: crate::client::RequestBuilder) -> Result<PageResponse> {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let response = request.header(COOKIE, cookies.join("; ")).send().await?;
        for line in response.headers().get_all(SET_COOKIE) {
            let (name, rest) = line.to_str()?.split_once('=').context("a cookie has a name")?;
            match rest.split(';').next().unwrap_or_default() {
                "" => self.cookies.remove(name),
                value => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(PageResponse { status, headers, body: response.text().await? })
    }

    pub async fn sign_in(&mut self, email: &str, password: &str, next: &str) -> Result<PageResponse> {
        let form_token = self.get("/sign-in").await?.hidden_field("form_token")?;
        let form = [("form_token", &*form_token), ("email", email), ("password", password), ("next", next)];
        self.post("/sign-in", &form).await
    }

    /// Submits the consent page as it is, with its ticked boxes. `changes` replace fields of the form; `("manage", "yes")`
    /// ticks the box of that name, and `("manage", "")` unticks it.
    pub async fn decide(
        &mut self,
        page: &PageResponse,
        decision: &str,
        changes: &[(&str, &str)],
    ) -> Result<PageResponse> {
        let (form_token, ticket) = (page.hidden_field("form_token")?, page.hidden_field("ticket")?);
        let place = page.body.split("name=\"place\" value=\"").nth(1).context("a place")?;
        let place = place.split('"').next().unwrap_or_default();
        let manage = if page.body.contains("name=\"manage\" value=\"yes\" checked") { "yes" } else { "" };
        let fields = [
            ("form_token", &*form_token),
            ("ticket", &*ticket),
            ("place", place),
            ("manage", manage),
            ("decision", decision),
        ];
        let changed = |name| changes.iter().find(|(changed, _)| *changed == name).map(|(_, value)| *value);
        let fields = fields.map(|(name, value)| (name, changed(name).unwrap_or(value)));
        // A browser does not send a box that is not ticked.
        let sent: Vec<_> = fields.into_iter().filter(|(name, value)| *name != "manage" || !value.is_empty()).collect();
        self.post("/oauth/authorize", &sent).await
    }

    /// Whether the session is signed in.
    pub async fn is_signed_in(&mut self) -> Result<bool> {
        Ok(self.get("/apps").await?.status == 200)
    }

    /// The session token.
    pub fn session(&self) -> Result<String> {
        self.cookies.get("grabd_session").cloned().context("a session")
    }
}

impl PageResponse {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub fn location(&self) -> &str {
        self.header(LOCATION.as_str())
    }

    /// A query parameter of the redirect location.
    pub fn redirect_param(&self, name: &str) -> Result<String> {
        let location =
            reqwest::Url::parse(self.location()).with_context(|| format!("{} {}", self.status, self.body))?;
        let value = location.query_pairs().find(|(named, _)| named == name).map(|(_, value)| value.into_owned());
        value.with_context(|| format!("no {name} in {location}"))
    }

    /// The value of a hidden form field.
    pub fn hidden_field(&self, name: &str) -> Result<String> {
        let after = format!("<input type=\"hidden\" name=\"{name}\" value=\"");
        let value = self.body.split(&after).nth(1).and_then(|rest| rest.split('"').next());
        value.map(|value| value.replace("&#38;", "&")).with_context(|| format!("no field {name} in {}", self.body))
    }

    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.body).with_context(|| self.body.clone())
    }
}

/// Registers an OAuth client and returns its id.
pub async fn register(app: &TestApp) -> Result<String> {
    let metadata = json!({
        "client_name": "An app", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none",
    });
    let url = format!("{}/v1/oauth/register", app.service.public_url());
    let answer: Value = app.client.post(url).json(&metadata).send().await?.error_for_status()?.json().await?;
    Ok(answer["client_id"].as_str().context("a client")?.to_owned())
}

/// The path of an authorization request. `changes` replace parameters; empty values remove them.
pub fn authorization_path(client: &str, changes: &[(&str, &str)]) -> Result<String> {
    let fields = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("state", "a state & more"),
        ("scope", ""),
    ];
    let changed = |name| changes.iter().find(|(changed, _)| *changed == name).map(|(_, value)| *value);
    let fields = fields.map(|(name, value)| (name, changed(name).unwrap_or(value)));
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let url = reqwest::Url::parse_with_params("http://request.invalid/oauth/authorize", fields)?;
    Ok(format!("{}?{}", url.path(), url.query().unwrap_or_default()))
}

/// Exchanges an authorization code for tokens.
pub async fn exchange(app: &TestApp, request: &str, code: &str) -> Result<Value> {
    let request = reqwest::Url::parse(&format!("http://request.invalid{request}"))?;
    let client = request.query_pairs().find(|(name, _)| name == "client_id").map(|(_, value)| value.into_owned());
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("client_id", &client.unwrap_or_default()),
        ("code_verifier", VERIFIER),
    ];
    let answer = Visitor::new(app).post("/v1/oauth/token", &form).await?;
    ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
    ensure!(answer.header("cache-control") == "no-store", "{:?}", answer.headers);
    answer.json()
}
