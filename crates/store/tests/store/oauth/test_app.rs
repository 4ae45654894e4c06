//! A user with a team and a registered app.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::ids::{GrantId, TeamId, UserId};
use grabd_domain::oauth::{AuthMethod, Challenge, ClientId, ClientMetadata, OauthScopes, RedirectUri, Resources};
use grabd_store::accounts::{InitialTeam, NewUser};
use grabd_store::oauth::{ConsentOutcome, Exchange, NewClient, NewConsent, NewTokenPair, Refresh, TokenOutcome};

use crate::harness::{NOW, TestDb};

pub(super) const GRACE: Duration = Duration::from_secs(30);
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

pub(super) struct TestApp<'a> {
    pub(super) db: &'a TestDb,
    pub(super) user: UserId,
    pub(super) team: TeamId,
    pub(super) client: ClientId,
}

/// A distinct secret hash for each number.
pub(super) fn hash(kind: u8, number: u16) -> [u8; 32] {
    let mut hash = [kind; 32];
    hash[..2].copy_from_slice(&number.to_be_bytes());
    hash
}

pub(super) fn pair(number: u16) -> NewTokenPair {
    NewTokenPair { access: hash(b'a', number), refresh: hash(b'r', number) }
}

pub(super) fn challenge() -> Challenge {
    Challenge::parse(CHALLENGE, Some("S256")).unwrap()
}

pub(super) fn redirect() -> RedirectUri {
    RedirectUri::parse("https://app.example/cb").unwrap()
}

pub(super) fn client_id(letter: char) -> ClientId {
    ClientId::new(&letter.to_string().repeat(43)).unwrap()
}

impl<'a> TestApp<'a> {
    pub(super) async fn new(db: &'a TestDb) -> Self {
        let (user, team) = (UserId(db.id()), TeamId(db.id()));
        let email = Email::parse(&format!("{user}@example.com")).unwrap();
        let initial_team = InitialTeam::New(team, "A team".into());
        let new = NewUser { id: user, email, password_hash: String::new(), initial_team, verified: true, now: NOW };
        db.store.accounts().create_user(new).await.unwrap();
        let app = Self { db, user, team, client: client_id('c') };
        if db.store.oauth().find_client(app.client.as_str()).await.unwrap().is_none() {
            db.store.oauth().create_client(new_client(app.client.clone())).await.unwrap();
        }
        app
    }

    pub(super) fn new_consent(&self, code: u16) -> NewConsent {
        NewConsent {
            grant: GrantId(self.db.id()),
            user: self.user,
            team: self.team,
            environment: Environment::Test,
            client: self.client.clone(),
            client_name: "An app".into(),
            client_host: None,
            scopes: OauthScopes::GRABS,
            resources: Resources::default(),
            code: hash(b'c', code),
            redirect: redirect(),
            challenge: challenge(),
            now: NOW,
        }
    }

    /// Records a consent with the code of this number.
    pub(super) async fn consent(&self, code: u16) -> GrantId {
        let consent = self.new_consent(code);
        let grant = consent.grant;
        assert_eq!(self.db.store.oauth().consent(consent).await.unwrap(), ConsentOutcome::Granted);
        grant
    }

    pub(super) fn exchange(&self, code: u16, pair_number: u16) -> Exchange {
        Exchange {
            code: hash(b'c', code),
            client: self.client.clone(),
            redirect: Some(redirect().to_string()),
            challenge: challenge(),
            resources: Resources::default(),
            pair: pair(pair_number),
            now: NOW,
        }
    }

    pub(super) fn refresh_request(&self, token: u16, pair_number: u16, now: Timestamp) -> Refresh {
        Refresh {
            token: hash(b'r', token),
            client: self.client.clone(),
            resources: Resources::default(),
            scopes: None,
            pair: pair(pair_number),
            grace: GRACE,
            now,
        }
    }

    /// Records a consent and exchanges its code for the token pair of this number.
    pub(super) async fn connect(&self, number: u16) -> GrantId {
        let grant = self.consent(number).await;
        let exchanged = self.db.store.oauth().exchange(self.exchange(number, number)).await.unwrap();
        assert!(matches!(exchanged, TokenOutcome::Issued { .. }), "{exchanged:?}");
        grant
    }

    pub(super) async fn refresh(&self, token: u16, pair_number: u16, now: Timestamp) -> TokenOutcome {
        self.db.store.oauth().refresh(self.refresh_request(token, pair_number, now)).await.unwrap()
    }

    /// Authenticates with the access token of this number.
    pub(super) async fn authenticate(&self, number: u16, now: Timestamp) -> Option<Caller> {
        self.db.store.oauth().authenticate_token(&hash(b'a', number), now).await.unwrap().map(|token| token.caller)
    }

    /// The scopes of the access token of this number.
    pub(super) async fn scopes(&self, number: u16) -> String {
        let token = self.db.store.oauth().authenticate_token(&hash(b'a', number), NOW).await.unwrap();
        token.map(|token| token.scopes.to_string()).unwrap_or_default()
    }

    pub(super) fn caller(&self, grant: GrantId) -> Option<Caller> {
        let principal = Principal::Grant(grant);
        Some(Caller { team: self.team, environment: Environment::Test, principal })
    }
}

pub(super) fn new_client(id: ClientId) -> NewClient {
    let metadata =
        ClientMetadata { name: "An app".into(), redirect_uris: vec![redirect()], auth_method: AuthMethod::None };
    NewClient { id, secret_hash: None, metadata, now: NOW, max_unused: 100 }
}
