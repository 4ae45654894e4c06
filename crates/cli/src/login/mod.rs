//! Signing in: OAuth 2.1 with a browser and a loopback address (RFC 8252), and the tokens that come of it.

mod browser;
mod discovery;
mod tokens;

use std::fs;
use std::path::PathBuf;

use reqwest::Client;
use tokio::sync::Mutex;
use url::Url;

use crate::api::client;
use crate::failure::{Exit, Failure};
use crate::settings::Settings;
use discovery::Service;
use tokens::{File, Tokens};

/// As whom requests are made.
#[derive(Debug)]
pub(crate) enum Credential {
    /// Nobody: the price list is public.
    None,
    /// A key that somebody gave.
    Key(String),
    /// A sign-in. The lock is held while new tokens are fetched, so that parallel requests fetch them once.
    SignIn(Box<Mutex<SignIn>>),
}

/// A sign-in and where it is kept.
#[derive(Debug)]
pub(crate) struct SignIn {
    file: PathBuf,
    base: Url,
    tokens: Tokens,
}

impl Credential {
    /// The key, if there is one, else the sign-in at this service.
    pub(crate) fn find(settings: &Settings) -> Result<Self, Failure> {
        if let Some(key) = &settings.api_key {
            return Ok(Self::Key(key.clone()));
        }
        let Some(tokens) = File::read(&settings.credentials)?.of(&settings.base).cloned() else {
            return Ok(Self::None);
        };
        let (file, base) = (settings.credentials.clone(), settings.base.clone());
        Ok(Self::SignIn(Box::new(Mutex::new(SignIn { file, base, tokens }))))
    }

    /// What goes into the Authorization field.
    pub(crate) async fn token(&self, http: &Client) -> Result<Option<String>, Failure> {
        match self {
            Self::None => Ok(None),
            Self::Key(key) => Ok(Some(key.clone())),
            Self::SignIn(sign_in) => {
                let mut sign_in = sign_in.lock().await;
                if sign_in.tokens.are_stale() {
                    sign_in.renew(http).await?;
                }
                Ok(Some(sign_in.tokens.access.clone()))
            }
        }
    }

    /// Fetches a new token because the old one was refused; false where there is no other.
    pub(crate) async fn renew(&self, http: &Client) -> Result<bool, Failure> {
        match self {
            Self::None => Err(Failure::SignedOut),
            Self::Key(_) => Ok(false),
            Self::SignIn(sign_in) => sign_in.lock().await.renew(http).await.map(|()| true),
        }
    }
}

impl SignIn {
    /// Fetches new tokens, unless another process of this program has done so meanwhile.
    async fn renew(&mut self, http: &Client) -> Result<(), Failure> {
        let lock = File::lock(&self.file)?;
        match File::read(&self.file)?.of(&self.base) {
            Some(tokens) if *tokens != self.tokens => self.tokens = tokens.clone(),
            Some(_) | None => {
                self.tokens = self.tokens.renewed(http).await?;
                File::change(&self.file, |file| file.put(&self.base, self.tokens.clone()))?;
            }
        }
        drop(lock);
        Ok(())
    }
}

/// Signs in through the browser and keeps the tokens.
pub(crate) async fn login(settings: &Settings, opens: bool) -> Result<Exit, Failure> {
    let http = client().map_err(Failure::unreachable(&settings.base))?;
    let service = Service::discover(&http, &settings.base).await?;
    let tokens = browser::sign_in(&http, &service, opens).await?;
    let lock = File::lock(&settings.credentials)?;
    File::change(&settings.credentials, |file| file.put(&settings.base, tokens))?;
    drop(lock);
    eprintln!("Signed in at {}. `grab logout` ends it.", settings.base);
    if settings.api_key.is_some() {
        eprintln!("Mind that an API key is set as well, and that it is the one that is used.");
    }
    Ok(Exit::Done)
}

/// Revokes the tokens and forgets them.
pub(crate) async fn logout(settings: &Settings) -> Result<Exit, Failure> {
    let http = client().map_err(Failure::unreachable(&settings.base))?;
    let lock = File::lock(&settings.credentials)?;
    let Some(tokens) = File::read(&settings.credentials)?.of(&settings.base).cloned() else {
        eprintln!("Nobody was signed in at {}.", settings.base);
        return Ok(Exit::Done);
    };
    let revoked = tokens.revoke(&http).await;
    File::change(&settings.credentials, |file| file.remove(&settings.base))?;
    drop(lock);
    // Forgotten here in any case; whoever wants to know that the service did as well is told.
    revoked?;
    eprintln!("Signed out at {}.", settings.base);
    Ok(Exit::Done)
}

/// Makes the directory that a file lies in, for this user alone.
fn make_directory(file: &std::path::Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    let directory = file.parent().unwrap_or(std::path::Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(Failure::file(directory))
}
