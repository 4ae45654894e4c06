//! The API client, with what all of its requests share.

use reqwest::{Client, RequestBuilder};
use url::Url;

use super::RateLimit;
use crate::failure::Failure;
use crate::http;
use crate::login::Credential;
use crate::settings::Settings;

/// An API client with its credential.
#[derive(Debug)]
pub(crate) struct Api {
    pub(super) http: Client,
    pub(super) base: Url,
    pub(super) credential: Credential,
    pub(super) retries: u32,
    pub(super) rate_limit: RateLimit,
    /// The service counts waits for captures apart, so they do not delay other requests.
    pub(super) waits: RateLimit,
}

impl Api {
    /// Creates the client. Sends no request.
    pub(crate) fn new(settings: &Settings) -> Result<Self, Failure> {
        let http = http::client().map_err(Failure::unreachable(&settings.base))?;
        let credential = Credential::find(settings)?;
        let (base, rate_limit, waits) = (settings.base.clone(), RateLimit::default(), RateLimit::default());
        Ok(Self { http, base, credential, retries: settings.retries, rate_limit, waits })
    }

    /// The base URL of the API.
    pub(crate) const fn base(&self) -> &Url {
        &self.base
    }

    /// The credential of requests.
    pub(crate) const fn credential(&self) -> &Credential {
        &self.credential
    }

    /// The rate limit that all requests share, but for waits.
    pub(crate) const fn rate_limit(&self) -> &RateLimit {
        &self.rate_limit
    }

    /// A request for an image. Images are public, so no credential is sent.
    pub(crate) fn file(&self, url: &Url) -> RequestBuilder {
        self.http.get(url.clone())
    }
}
