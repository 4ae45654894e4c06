//! A core with one person, and the words that an app says.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::address::Policy;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{TeamId, UserId};
use grabd_egress::Guard;
use grabd_engine::clock::Clock;
use grabd_engine::oauth::{self, Fields, TokenError};
use grabd_engine::outgoing::Outgoing;
use grabd_engine::placeholder::Placeholder;
use grabd_engine::pricing::Pricing;
use grabd_engine::vault::Vault;
use grabd_engine::webhooks::Webhooks;
use grabd_engine::{Core, Failpoints, Parts, Settings, accounts};
use grabd_store::{Images, Place, Store};
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
/// Where tests may serve documents.
pub(crate) const ALLOWED: &str = "127.0.0.2";
const VERIFIER: &str = "a-verifier-of-43-characters-0123456789-abcde";

pub(crate) struct House {
    pub(crate) core: Core,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) user: UserId,
    pub(crate) team: TeamId,
    _images: tempfile::TempDir,
}

/// What differs from the usual house.
pub(crate) struct Wishes {
    pub(crate) sign_up: bool,
    pub(crate) grace_s: u64,
    pub(crate) roots: String,
}

impl Default for Wishes {
    fn default() -> Self {
        Self { sign_up: false, grace_s: 30, roots: String::new() }
    }
}

/// What an app has got.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) access: String,
    pub(crate) refresh: String,
}

impl House {
    pub(crate) async fn new() -> Self {
        Self::with(Wishes::default()).await
    }

    pub(crate) async fn with(wishes: Wishes) -> Self {
        Self::at("sqlite::memory:", wishes).await
    }

    pub(crate) async fn at(database: &str, wishes: Wishes) -> Self {
        let store = Store::open(database).await.unwrap();
        store.migrate().await.unwrap();
        let clock = Clock::manual(NOW);
        let images = tempfile::tempdir().unwrap();
        let policy = Policy { allow: vec![format!("{ALLOWED}/32").parse().unwrap()], ..Policy::default() };
        let parts = Parts {
            store: store.clone(),
            images: Images::local(images.path().to_owned()).unwrap(),
            guard: Guard::new(grabd_egress::Options { policy, ..Default::default() }).unwrap(),
            outgoing: Outgoing::new(wishes.roots.as_bytes()).unwrap(),
            mail: None,
            clock: clock.clone(),
            pricing: Pricing::embedded(),
            placeholder: Placeholder::new(1 << 20),
            webhooks: Webhooks::new(Vault::new([7; 32]), false),
            stripe: None,
            settings: Settings {
                public_url: "https://grabd.example".into(),
                requests_per_minute: 60,
                async_queue: 50,
                top_up: "https://grabd.example".into(),
                sign_up: wishes.sign_up,
                oauth: oauth::Settings {
                    issuer: ISSUER.into(),
                    mcp_url: MCP.into(),
                    base_url: API.into(),
                    web_base_url: WEB.into(),
                    refresh_reuse_grace_s: wishes.grace_s,
                },
            },
            failpoints: Failpoints::default(),
        };
        let core = Core::start(parts).await.unwrap();
        let (user, team) = person(&store, "ada@example.com").await;
        Self { core, store, clock, user, team, _images: images }
    }

    pub(crate) async fn end(self) {
        self.core.stop().await;
        self.store.close().await;
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Registers an app; what it was answered.
    pub(crate) async fn register(&self, changes: Value) -> Value {
        let body = body(&changes);
        oauth::register(&self.core, body.to_string().as_bytes()).await.unwrap()
    }

    /// A public app's id.
    pub(crate) async fn app(&self) -> String {
        text(&self.register(json!({})).await["client_id"])
    }

    /// The person allows the request; the fields of the answer.
    pub(crate) async fn allow(&self, request: &Fields, environment: Environment) -> Fields {
        let asked = oauth::check_request(&self.core, request).await.unwrap();
        let location = oauth::allow(&self.core, self.user, asked, self.team, environment).await.unwrap();
        query(&location)
    }

    /// A code for the app.
    pub(crate) async fn code(&self, client: &str) -> String {
        let answer = self.allow(&request(client), Environment::Test).await;
        value(&answer, "code").to_owned()
    }

    pub(crate) async fn exchange(&self, client: &str, code: &str) -> Result<Value, TokenError> {
        self.token(&exchange(client, code)).await
    }

    pub(crate) async fn token(&self, form: &Fields) -> Result<Value, TokenError> {
        oauth::token(&self.core, form, None).await.map(|tokens| serde_json::to_value(tokens).unwrap())
    }

    /// An app that is connected.
    pub(crate) async fn connect(&self, client: &str) -> Pair {
        let code = self.code(client).await;
        pair(&self.exchange(client, &code).await.unwrap())
    }
}

/// Somebody with a team of their own.
pub(crate) async fn person(store: &Store, email: &str) -> (UserId, TeamId) {
    let email = Email::parse(email).unwrap();
    let (team, name) = accounts::own_team(&email, NOW);
    let place = Place::New(team, name);
    let (user, team, _) = accounts::create_person(store, &email, PASSWORD, place, NOW).await.unwrap();
    (user, team)
}

/// What an app registers, with changes; `null` leaves a member out.
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

/// A good request for consent.
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

/// A good exchange of a code.
pub(crate) fn exchange(client: &str, code: &str) -> Fields {
    fields(&[
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ])
}

/// A good exchange of a refresh token.
pub(crate) fn refresh(client: &str, token: &str) -> Fields {
    fields(&[("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)])
}

/// The fields with one changed; `None` leaves it out, and an unknown one is added.
pub(crate) fn but(mut fields: Fields, name: &str, value: Option<&str>) -> Fields {
    let at = fields.iter().position(|(known, _)| known == name);
    fields.retain(|(known, _)| known != name);
    if let Some(value) = value {
        fields.insert(at.unwrap_or(fields.len()), (name.to_owned(), value.to_owned()));
    }
    fields
}

/// The fields with one more, whether or not it is there.
pub(crate) fn and(mut fields: Fields, name: &str, value: &str) -> Fields {
    fields.push((name.to_owned(), value.to_owned()));
    fields
}

/// The fields of an answer that goes to the app.
pub(crate) fn query(location: &str) -> Fields {
    assert!(location.starts_with(REDIRECT), "{location}");
    Url::parse(location).unwrap().query_pairs().into_owned().collect()
}

pub(crate) fn value<'a>(fields: &'a Fields, name: &str) -> &'a str {
    let mut values = fields.iter().filter(|(known, _)| known == name);
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
