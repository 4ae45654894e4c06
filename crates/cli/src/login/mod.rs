//! Sign-in with OAuth 2.1: through the browser and a loopback redirect (RFC 8252), or by a code that is entered on another
//! device (RFC 8628). Also the stored tokens.

mod browser;
mod device;
mod discovery;
mod tokens;

use std::path::PathBuf;

use reqwest::Client;
use tokio::sync::Mutex;
use url::Url;

use crate::failure::{Exit, Failure};
use crate::http::client;
use crate::settings::Settings;
use discovery::Service;
use tokens::{File, Tokens};

/// The scope that is enough to capture, list and read.
const FIRST_SCOPE: &str = "grabs";
/// The same, and webhooks and the deletion of captures.
const ALL_SCOPES: &str = "grabs manage";

/// The credential of requests.
#[derive(Debug)]
pub(crate) enum Credential {
    /// No credential. The price list is public.
    None,
    /// An API key.
    Key(String),
    /// A sign-in. The lock is held during a refresh, so that concurrent requests refresh once.
    SignIn(Box<Mutex<SignIn>>),
}

/// A sign-in and the file that stores it.
#[derive(Debug)]
pub(crate) struct SignIn {
    file: PathBuf,
    base: Url,
    tokens: Tokens,
}

impl Credential {
    /// The API key if one is set, otherwise the stored sign-in for this service.
    pub(crate) fn find(settings: &Settings) -> Result<Self, Failure> {
        if let Some(key) = &settings.api_key {
            return Ok(Self::Key(key.clone()));
        }
        let Some(tokens) = File::read(&settings.credentials)?.get(&settings.base).cloned() else {
            return Ok(Self::None);
        };
        let (file, base) = (settings.credentials.clone(), settings.base.clone());
        Ok(Self::SignIn(Box::new(Mutex::new(SignIn { file, base, tokens }))))
    }

    /// The scopes of the sign-in, if it is one and the service has named them.
    pub(crate) async fn scope(&self) -> Option<String> {
        match self {
            Self::None | Self::Key(_) => None,
            Self::SignIn(sign_in) => sign_in.lock().await.tokens.scope.clone(),
        }
    }

    /// The bearer token, refreshed if it is about to expire.
    pub(crate) async fn token(&self, http: &Client) -> Result<Option<String>, Failure> {
        match self {
            Self::None => Ok(None),
            Self::Key(key) => Ok(Some(key.clone())),
            Self::SignIn(sign_in) => {
                let mut sign_in = sign_in.lock().await;
                if sign_in.tokens.need_refresh() {
                    sign_in.renew(http).await?;
                }
                Ok(Some(sign_in.tokens.access.clone()))
            }
        }
    }

    /// Refreshes the token after the service rejected it. `false` if the credential cannot be refreshed.
    pub(crate) async fn renew(&self, http: &Client) -> Result<bool, Failure> {
        match self {
            Self::None => Err(Failure::NotSignedIn),
            Self::Key(_) => Ok(false),
            Self::SignIn(sign_in) => sign_in.lock().await.renew(http).await.map(|()| true),
        }
    }
}

impl SignIn {
    /// Refreshes the tokens, unless another process has already done so.
    async fn renew(&mut self, http: &Client) -> Result<(), Failure> {
        let lock = File::lock(&self.file)?;
        match File::read(&self.file)?.get(&self.base) {
            Some(tokens) if *tokens != self.tokens => self.tokens = tokens.clone(),
            Some(_) | None => {
                self.tokens = self.tokens.refreshed(http).await?;
                File::update(&self.file, |file| file.insert(&self.base, self.tokens.clone()))?;
            }
        }
        drop(lock);
        Ok(())
    }
}

/// How to sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignInWay {
    /// In a browser on this machine, which is opened.
    Browser,
    /// The same, but the URL is printed only.
    PrintedUrl,
    /// By a code that is entered on another device.
    Code,
}

/// Signs in and stores the tokens. `manage` asks for the scope of that name too.
pub(crate) async fn login(settings: &Settings, way: SignInWay, manage: bool) -> Result<Exit, Failure> {
    let http = client().map_err(Failure::unreachable(&settings.base))?;
    let service = Service::discover(&http, &settings.base).await?;
    let scope = if manage { ALL_SCOPES } else { FIRST_SCOPE };
    let tokens = match way {
        SignInWay::Browser => browser::sign_in(&http, &service, scope, true).await?,
        SignInWay::PrintedUrl => browser::sign_in(&http, &service, scope, false).await?,
        SignInWay::Code => device::sign_in(&http, &service, scope).await?,
    };
    let may_manage = tokens.may_manage();
    let lock = File::lock(&settings.credentials)?;
    let former = File::read(&settings.credentials)?.get(&settings.base).cloned();
    File::update(&settings.credentials, |file| file.insert(&settings.base, tokens))?;
    drop(lock);
    // Nobody could use the former sign-in any more, and it would stay among the connected apps.
    if let Some(former) = former
        && former.revoke(&http).await.is_err()
    {
        eprintln!("Note: the previous sign-in could not be ended. Disconnect it in the web app, under Connected apps.");
    }
    eprintln!("Signed in at {}. Sign out with `grab logout`.", settings.base);
    if manage && !may_manage {
        eprintln!("Note: you did not allow webhooks and the deletion of captures.");
    }
    if settings.api_key.is_some() {
        eprintln!("Note: an API key is also set and takes precedence over this sign-in.");
    }
    Ok(Exit::Done)
}

/// Revokes and removes the tokens.
pub(crate) async fn logout(settings: &Settings) -> Result<Exit, Failure> {
    let http = client().map_err(Failure::unreachable(&settings.base))?;
    let lock = File::lock(&settings.credentials)?;
    let Some(tokens) = File::read(&settings.credentials)?.get(&settings.base).cloned() else {
        eprintln!("You are not signed in at {}.", settings.base);
        return Ok(Exit::Done);
    };
    let revoked = tokens.revoke(&http).await;
    File::update(&settings.credentials, |file| file.remove(&settings.base))?;
    drop(lock);
    // The tokens are removed locally in any case; a failed revocation is still reported.
    revoked?;
    eprintln!("Signed out at {}.", settings.base);
    Ok(Exit::Done)
}
