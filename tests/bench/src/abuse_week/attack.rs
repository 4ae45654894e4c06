//! What strangers can do that leaves something behind, as often as they are told.

use anyhow::{Context, Result, ensure};
use grabd_tests::harness::{PASSWORD, TestApp};
use grabd_tests::receiver::Receiver;
use grabd_tests::visitor::{PageResponse, REDIRECT, VERIFIER, Visitor, authorization_path, register};
use reqwest::Method;
use serde_json::{Value, json};

/// Creates of placeholders in each round, each with an idempotency key.
const PLACEHOLDERS: u32 = 10;
/// Every so many rounds, something that costs more is done.
const RARELY: u32 = 10;
/// Nothing listens there, so that captures fail.
const NOWHERE: &str = "http://127.0.0.2:65535/";

/// The attackers.
pub(super) struct Attack<'a> {
    app: &'a TestApp,
    receiver: &'a Receiver,
    /// A user with a team. Another one each day, since the limit of changes per day uses the time of the process.
    owner: Visitor<'a>,
    team: String,
    requests: u64,
    /// A number that is different in each round.
    turn: u32,
}

impl<'a> Attack<'a> {
    pub(super) fn new(app: &'a TestApp, receiver: &'a Receiver) -> Self {
        Self { app, receiver, owner: Visitor::new(app), team: String::new(), requests: 0, turn: 0 }
    }

    /// One day. Returns the number of requests.
    pub(super) async fn day(&mut self, day: u32, rounds: u32) -> Result<u64> {
        self.requests = 0;
        self.owner = Visitor::with_account(self.app, &format!("eve-{day}@example.com")).await?;
        let keys = self.owner.get("/keys").await?.location().to_owned();
        self.team = keys.strip_suffix("/keys").with_context(|| keys.clone())?.to_owned();
        for _ in 0..rounds {
            self.turn += 1;
            self.captures().await?;
            self.webhooks().await?;
            self.keys_and_invitations().await?;
            self.accounts().await?;
            self.apps().await?;
            if self.turn.is_multiple_of(RARELY) {
                self.teams().await?;
            }
        }
        Ok(self.requests)
    }

    async fn call(&mut self, key: &str, method: Method, path: &str, body: Option<Value>) -> Result<(u16, Value)> {
        self.requests += 1;
        let url = format!("{}{path}", self.app.base());
        let mut request = self.app.client.request(method, url).bearer_auth(key);
        request = request.header("idempotency-key", format!("{}-{}", self.turn, self.requests));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await?;
        let (status, text) = (response.status().as_u16(), response.text().await?);
        ensure!(status < 500 || text.contains("render_failed"), "{path}: {status} {text}");
        Ok((status, serde_json::from_str(&text).unwrap_or_default()))
    }

    async fn captures(&mut self) -> Result<()> {
        let (live, test) = (self.app.live().to_owned(), self.app.test().to_owned());
        for number in 0..PLACEHOLDERS {
            let body = json!({ "url": format!("https://example.com/{number}"), "metadata": { "a": "b".repeat(200) } });
            let (status, grab) = self.call(&test, Method::POST, "/grabs", Some(body)).await?;
            ensure!(status == 200, "{status} {grab}");
        }
        self.call(&live, Method::POST, "/grabs?async=true", Some(json!({ "url": NOWHERE }))).await?;
        if self.turn.is_multiple_of(RARELY) {
            let page = json!({ "url": self.app.site.url("/tiny"), "also": ["html", "text"] });
            let (status, grab) = self.call(&live, Method::POST, "/grabs", Some(page)).await?;
            ensure!(status == 200, "{status} {grab}");
            let id = grab["id"].as_str().context("an id")?;
            self.call(&live, Method::DELETE, &format!("/grabs/{id}"), None).await?;
        }
        Ok(())
    }

    async fn webhooks(&mut self) -> Result<()> {
        let live = self.app.live().to_owned();
        let body = json!({ "url": self.receiver.url() });
        let (status, webhook) = self.call(&live, Method::POST, "/webhooks", Some(body)).await?;
        ensure!(status == 201, "{status} {webhook}");
        let path = format!("/webhooks/{}", webhook["id"].as_str().context("an id")?);
        self.call(&live, Method::POST, &format!("{path}/test"), None).await?;
        // One stays, so that the failed captures have a receiver, until the limit of endpoints is reached.
        if self.turn > 1 {
            self.call(&live, Method::DELETE, &path, None).await?;
        }
        Ok(())
    }

    /// Submits the form of a page. Refusals are expected, failures are not.
    async fn submit(&mut self, page: &str, path: &str, fields: &[(&str, &str)]) -> Result<PageResponse> {
        self.requests += 2;
        let form_token = self.owner.get(page).await?.hidden_field("form_token")?;
        let answer = self.owner.post(path, &[&[("form_token", &*form_token)], fields].concat()).await?;
        ensure!(answer.status < 500, "{path}: {} {}", answer.status, answer.body);
        Ok(answer)
    }

    async fn keys_and_invitations(&mut self) -> Result<()> {
        let keys = format!("{}/keys", self.team);
        let fields = [("name", "A key"), ("environment", "test"), ("scopes", "read")];
        self.submit(&keys, &keys, &fields).await?;
        let list = self.owner.get(&keys).await?;
        for id in ids(&list, "id=\"revoke-") {
            let revoke = format!("{keys}/{id}/revoke");
            self.submit(&revoke, &revoke, &[]).await?;
        }
        let users = format!("{}/people", self.team);
        let email = format!("guest-{}@example.com", self.turn);
        self.submit(&users, &format!("{}/invitations", self.team), &[("email", &email), ("role", "member")]).await?;
        Ok(())
    }

    /// Accounts that are never verified, requests for passwords, and sign-ins.
    async fn accounts(&mut self) -> Result<()> {
        let mut stranger = Visitor::new(self.app);
        stranger.headers = vec![("x-forwarded-for", address(self.turn))];
        let email = format!("stranger-{}@example.com", self.turn);
        let form_token = stranger.get("/sign-up").await?.hidden_field("form_token")?;
        let form = [("form_token", &*form_token), ("email", &email), ("password", PASSWORD)];
        let answer = stranger.post("/sign-up", &form).await?;
        ensure!(answer.status < 500, "{} {}", answer.status, answer.body);
        let form_token = stranger.get("/forgotten-password").await?.hidden_field("form_token")?;
        stranger.post("/forgotten-password", &[("form_token", &form_token), ("email", &email)]).await?;
        Visitor::new(self.app).sign_in(&email, PASSWORD, "").await?;
        self.requests += 6;
        Ok(())
    }

    /// Apps that register, ask for consent, and get tokens.
    async fn apps(&mut self) -> Result<()> {
        let client = register(self.app).await?;
        let request = authorization_path(&client, &[])?;
        let page = self.owner.get(&request).await?;
        self.requests += 2;
        if self.turn.is_multiple_of(RARELY) {
            let code = self.owner.decide(&page, "allow", &[]).await?.redirect_param("code")?;
            let form = [
                ("grant_type", "authorization_code"),
                ("code", &*code),
                ("redirect_uri", REDIRECT),
                ("client_id", &*client),
                ("code_verifier", VERIFIER),
            ];
            let answer = Visitor::new(self.app).post("/v1/oauth/token", &form).await?;
            ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
            self.requests += 2;
        }
        Ok(())
    }

    /// A team that is created and deleted.
    async fn teams(&mut self) -> Result<()> {
        let name = format!("team {}", self.turn);
        let made = self.submit("/teams", "/teams", &[("name", &name)]).await?;
        if let Some((team, _)) = made.location().trim_start_matches("/teams/").split_once('/') {
            let delete = format!("/teams/{team}/delete");
            self.submit(&delete, &delete, &[("name", &name), ("password", PASSWORD)]).await?;
        }
        Ok(())
    }
}

/// An address of a network of its own.
fn address(number: u32) -> String {
    format!("2001:db8:{:x}:{:x}::1", number >> 16, number & 0xffff)
}

/// The ids that follow this text in a page.
fn ids(page: &PageResponse, after: &str) -> Vec<String> {
    page.body.split(after).skip(1).filter_map(|rest| rest.get(..36)).map(str::to_owned).collect()
}
