//! A client of the public REST API.

mod call;
mod grab;
mod retry;

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use url::Url;

pub(crate) use call::{ApiResponse, Call};
pub(crate) use grab::Grab;
pub(crate) use retry::RateLimit;

use crate::failure::Failure;
use crate::login::Credential;
use crate::settings::Settings;

/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout between reads of a response. A synchronous capture may take 25 s plus overhead before its response begins;
/// event streams send at least a comment every 15 s.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// An API client with its credential.
#[derive(Debug)]
pub(crate) struct Api {
    http: Client,
    base: Url,
    credential: Credential,
    retries: u32,
    rate_limit: RateLimit,
}

impl Api {
    /// Creates the client. Sends no request.
    pub(crate) fn new(settings: &Settings) -> Result<Self, Failure> {
        let http = client().map_err(Failure::unreachable(&settings.base))?;
        let credential = Credential::find(settings)?;
        let (base, rate_limit) = (settings.base.clone(), RateLimit::default());
        Ok(Self { http, base, credential, retries: settings.retries, rate_limit })
    }

    /// The base URL of the API.
    pub(crate) const fn base(&self) -> &Url {
        &self.base
    }

    /// The credential of requests.
    pub(crate) const fn credential(&self) -> &Credential {
        &self.credential
    }

    /// The rate limit that all requests share.
    pub(crate) const fn rate_limit(&self) -> &RateLimit {
        &self.rate_limit
    }

    /// A request to a path relative to the base URL, such as `grabs`.
    pub(crate) fn call(&self, method: Method, path: &str) -> Call<'_> {
        let url = self.base.join(path).expect("relative paths can be joined to an http base URL");
        Call::new(self, method, url)
    }

    /// A request for an image. Images are public, so no credential is sent.
    pub(crate) fn file(&self, url: &Url) -> RequestBuilder {
        self.http.get(url.clone())
    }
}

/// The HTTP client for all requests.
pub(crate) fn client() -> Result<Client, reqwest::Error> {
    // Fails only if a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("grab/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        // A redirect must not send the credential to another server.
        .redirect(reqwest::redirect::Policy::none())
        .build()
}
