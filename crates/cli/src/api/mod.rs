//! The REST API, as a client meets it. The public contract is all this knows.

mod call;
mod grab;
mod retry;

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use url::Url;

pub(crate) use call::{Answer, Call};
pub(crate) use grab::Grab;
pub(crate) use retry::Pace;

use crate::failure::Failure;
use crate::login::Credential;
use crate::settings::Settings;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long nothing may come, on any answer. A synchronous capture may be silent for its 25 s and what comes around it;
/// streams are never silent for more than 15 s.
const SILENCE: Duration = Duration::from_secs(60);

/// A service and who calls it.
#[derive(Debug)]
pub(crate) struct Api {
    http: Client,
    base: Url,
    credential: Credential,
    retries: u32,
    pace: Pace,
}

impl Api {
    /// The service that the settings name. Nothing is asked of it yet.
    pub(crate) fn new(settings: &Settings) -> Result<Self, Failure> {
        let http = client().map_err(Failure::unreachable(&settings.base))?;
        let credential = Credential::find(settings)?;
        Ok(Self { http, base: settings.base.clone(), credential, retries: settings.retries, pace: Pace::default() })
    }

    /// Where the API is.
    pub(crate) const fn base(&self) -> &Url {
        &self.base
    }

    /// When the service next wants to be asked.
    pub(crate) const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// A request to a path below the API's address, such as `grabs`.
    pub(crate) fn call(&self, method: Method, path: &str) -> Call<'_> {
        let url = self.base.join(path).expect("paths are relative, and the base has one");
        Call::new(self, method, url)
    }

    /// A request for a file of the service, without a credential: pictures are public.
    pub(crate) fn file(&self, url: &Url) -> RequestBuilder {
        self.http.get(url.clone())
    }
}

/// What every request goes out by.
pub(crate) fn client() -> Result<Client, reqwest::Error> {
    // The only failure is that one is set already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("grab/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE)
        // A credential goes where it was meant to go.
        .redirect(reqwest::redirect::Policy::none())
        .build()
}
