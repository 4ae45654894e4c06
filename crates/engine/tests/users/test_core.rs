//! A core with one user, and the requests of an OAuth client.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::address::Policy;
use grabd_domain::credentials::{Environment, SessionToken};
use grabd_domain::ids::{TeamId, UserId};
use grabd_egress::Guard;
use grabd_engine::accounts::SignInSource;
use grabd_engine::clock::Clock;
use grabd_engine::mail::{Server, Smtp};
use grabd_engine::oauth::{self, EndpointError, Fields};
use grabd_engine::outgoing::OutgoingClient;
use grabd_engine::placeholder::Placeholder;
use grabd_engine::pricing::Pricing;
use grabd_engine::vault::Vault;
use grabd_engine::webhooks::Webhooks;
use grabd_engine::{Core, Failpoints, Operations, Parts, Retention, Settings, accounts};
use grabd_images::Images;
use grabd_memory::MemoryBudget;
use grabd_store::Store;
use grabd_store::accounts::InitialTeam;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;

pub(crate) const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
pub(crate) const PASSWORD: &str = "correct horse battery staple";
pub(crate) const REDIRECT: &str = "https://app.example/cb";
pub(crate) const ISSUER: &str = "https://auth.grabd.example";
pub(crate) const MCP: &str = "https://mcp.grabd.example/mcp";
pub(crate) const API: &str = "https://api.grabd.example/v1";
pub(crate) const WEB: &str = "https://grabd.example/v1";
/// Address at which tests serve documents; allowed by the address guard.
pub(crate) const ALLOWED: &str = "127.0.0.2";
const VERIFIER: &str = "a-verifier-of-43-characters-0123456789-abcde";

pub(crate) struct TestCore {
    pub(crate) core: Core,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) user: UserId,
    pub(crate) team: TeamId,
    _images: tempfile::TempDir,
}

/// Where the user of a test signs in.
pub(crate) const HOME: SignInSource = SignInSource { address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), device: None };

/// Another network, in an end site of its own.
pub(crate) fn elsewhere(number: u32) -> SignInSource {
    SignInSource { address: Ipv4Addr::from_bits(0x0a00_0000 + (number << 8)).into(), device: None }
}

/// Settings of a test core.
pub(crate) struct TestOptions {
    pub(crate) sign_up: bool,
    pub(crate) trial_credits: u32,
    pub(crate) grace_s: u64,
    pub(crate) roots: String,
    pub(crate) unused_clients: u32,
    /// Whether mail is configured. Nothing is delivered.
    pub(crate) mail: bool,
    pub(crate) second_factor_for_operators: bool,
}

impl Default for TestOptions {
    fn default() -> Self {
        Self {
            sign_up: false,
            trial_credits: 0,
            grace_s: 30,
            roots: String::new(),
            unused_clients: 1000,
            mail: false,
            second_factor_for_operators: false,
        }
    }
}

/// The tokens of an app.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) access: String,
    pub(crate) refresh: String,
}

impl TestCore {
    pub(crate) async fn new() -> Self {
        Self::with(TestOptions::default()).await
    }

    pub(crate) async fn with(options: TestOptions) -> Self {
        Self::at("sqlite::memory:", options).await
    }

    pub(crate) async fn at(database: &str, options: TestOptions) -> Self {
        let store = Store::open(database).await.unwrap();
        store.migrate().await.unwrap();
        let clock = Clock::manual(NOW);
        let images = tempfile::tempdir().unwrap();
        let policy = Policy { allow: vec![format!("{ALLOWED}/32").parse().unwrap()], ..Policy::default() };
        let parts = Parts {
            store: store.clone(),
            images: Images::local(images.path().to_owned()).unwrap(),
            memory: MemoryBudget::new(64 << 20),
            guard: Guard::new(grabd_egress::Options { policy, ..Default::default() }).unwrap(),
            outgoing: OutgoingClient::new(options.roots.as_bytes()).unwrap(),
            mail: options.mail.then(mail),
            clock: clock.clone(),
            pricing: Pricing::embedded(),
            placeholder: Placeholder::new(1 << 20, MemoryBudget::new(64 << 20)),
            vault: Vault::new([7; 32]),
            webhooks: Webhooks::new(false),
            stripe: None,
            settings: Settings {
                public_url: "https://grabd.example".into(),
                requests_per_minute: 60,
                abuse: grabd_engine::admission::Settings {
                    has_strangers: true,
                    failed_seconds_per_minute: 60,
                    failed_seconds_per_minute_unpaid: 20,
                    paid_slots_percent: 25,
                },
                async_queue: 50,
                image_max_bytes: 32 << 20,
                direct_uploads: false,
                top_up: "https://grabd.example".into(),
                sign_up: options.sign_up,
                trial_credits: options.trial_credits,
                oauth: oauth::Settings {
                    issuer: ISSUER.into(),
                    origin: "https://grabd.example".into(),
                    mcp_url: MCP.into(),
                    base_url: API.into(),
                    web_base_url: WEB.into(),
                    refresh_reuse_grace_s: options.grace_s,
                    registrations_per_hour: 20,
                    unused_clients: options.unused_clients,
                },
                retention: Retention::default(),
                operations: Operations {
                    second_factor_for_operators: options.second_factor_for_operators,
                    ..Operations::default()
                },
            },
            cluster: None,
            failpoints: Failpoints::default(),
        };
        let core = Core::start(parts).await.unwrap();
        let (user, team) = user(&store, "ada@example.com").await;
        Self { core, store, clock, user, team, _images: images }
    }

    pub(crate) async fn end(self) {
        self.core.stop().await;
        self.store.close().await;
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Registers an app and returns the response.
    pub(crate) async fn register(&self, changes: Value) -> Value {
        let body = body(&changes);
        oauth::register(&self.core, body.to_string().as_bytes()).await.unwrap()
    }

    /// Registers a public app and returns its client id.
    pub(crate) async fn app(&self) -> String {
        text(&self.register(json!({})).await["client_id"])
    }

    /// Allows the request as the user and returns the fields of the redirect.
    pub(crate) async fn allow(&self, request: &Fields, environment: Environment) -> Fields {
        let request = oauth::check_request(&self.core, request).await.unwrap();
        let location = oauth::allow(&self.core, self.user, request, self.team, environment).await.unwrap();
        query(&location)
    }

    /// An authorization code for the app.
    pub(crate) async fn code(&self, client: &str) -> String {
        let redirect = self.allow(&request(client), Environment::Test).await;
        value(&redirect, "code").to_owned()
    }

    pub(crate) async fn exchange(&self, client: &str, code: &str) -> Result<Value, EndpointError> {
        self.token(&exchange(client, code)).await
    }

    pub(crate) async fn token(&self, form: &Fields) -> Result<Value, EndpointError> {
        oauth::token(&self.core, form, None).await.map(|tokens| serde_json::to_value(tokens).unwrap())
    }

    /// Connects the app and returns its tokens.
    pub(crate) async fn connect(&self, client: &str) -> Pair {
        let code = self.code(client).await;
        pair(&self.exchange(client, &code).await.unwrap())
    }
}

/// A mail server that is not there.
fn mail() -> Smtp {
    let url = "smtp://127.0.0.1:9";
    Smtp::new(Server { url, from: "grabd <grabd@example.com>", extra_roots: b"", own_host: "localhost" }).unwrap()
}

/// Creates a user with a personal team.
pub(crate) async fn user(store: &Store, email: &str) -> (UserId, TeamId) {
    let email = Email::parse(email).unwrap();
    let (team, name) = accounts::personal_team(&email, NOW);
    let place = InitialTeam::New(team, name);
    let (user, team, _) = accounts::create_user(store, &email, PASSWORD, place, NOW).await.unwrap();
    (user, team)
}

/// Signs in a user without a second factor.
pub(crate) async fn signed_in(core: &Core, email: &str, password: &str, source: &SignInSource) -> SessionToken {
    accounts::sign_in(core, email, password, source).await.unwrap().into_session().unwrap()
}

/// A registration body with changes; `null` removes a member.
pub(crate) fn body(changes: &Value) -> Value {
    let mut body = json!({
        "client_name": "An app", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none",
    });
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        }
    }
    body
}

pub(crate) fn fields(pairs: &[(&str, &str)]) -> Fields {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A valid authorization request.
pub(crate) fn request(client: &str) -> Fields {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
    fields(&[
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("state", "a state & more"),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ])
}

/// A valid exchange of a code.
pub(crate) fn exchange(client: &str, code: &str) -> Fields {
    fields(&[
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ])
}

/// A valid exchange of a refresh token.
pub(crate) fn refresh(client: &str, token: &str) -> Fields {
    fields(&[("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)])
}

/// Sets a field, in place if it exists; `None` removes it.
pub(crate) fn set_field(mut fields: Fields, name: &str, value: Option<&str>) -> Fields {
    let at = fields.iter().position(|(field, _)| field == name);
    fields.retain(|(field, _)| field != name);
    if let Some(value) = value {
        fields.insert(at.unwrap_or(fields.len()), (name.to_owned(), value.to_owned()));
    }
    fields
}

/// Appends a field, even if it exists.
pub(crate) fn add_field(mut fields: Fields, name: &str, value: &str) -> Fields {
    fields.push((name.to_owned(), value.to_owned()));
    fields
}

/// The fields of a redirect to the app.
pub(crate) fn query(location: &str) -> Fields {
    assert!(location.starts_with(REDIRECT), "{location}");
    Url::parse(location).unwrap().query_pairs().into_owned().collect()
}

pub(crate) fn value<'a>(fields: &'a Fields, name: &str) -> &'a str {
    let mut values = fields.iter().filter(|(field, _)| field == name);
    let (_, value) = values.next().unwrap_or_else(|| panic!("{name} is not in {fields:?}"));
    assert!(values.next().is_none(), "{name} is repeated");
    value
}

pub(crate) fn pair(tokens: &Value) -> Pair {
    Pair { access: text(&tokens["access_token"]), refresh: text(&tokens["refresh_token"]) }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
