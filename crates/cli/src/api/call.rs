//! One request and its answer, tried again where that is safe and useful.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::Api;
use super::retry::{self, Again};
use crate::failure::{Failure, Refusal};

const REQUEST_ID: &str = "x-request-id";

/// A request that is being put together.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    api: &'a Api,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Value>,
}

/// An answer that is no refusal.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its body; null where there is none.
    pub(crate) body: Value,
}

/// The contract's envelope of errors.
#[derive(Deserialize)]
struct Envelope {
    error: Told,
}

#[derive(Deserialize)]
struct Told {
    code: String,
    message: String,
}

impl<'a> Call<'a> {
    pub(super) fn new(api: &'a Api, method: Method, url: Url) -> Self {
        Self { api, method, url, headers: HeaderMap::new(), body: None }
    }

    /// Adds a parameter to the address.
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.url.query_pairs_mut().append_pair(name, value);
        self
    }

    /// Adds a header field.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Result<Self, Failure> {
        let value = HeaderValue::from_str(value).map_err(|_| {
            Failure::Usage(format!("{value:?} cannot be sent as {name}: it has characters no header has"))
        })?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// Sets the body.
    pub(crate) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Sends it, and reads the whole answer.
    pub(crate) async fn send(self) -> Result<Answer, Failure> {
        let response = self.stream().await?;
        let (url, status) = (response.url().clone(), response.status());
        let bytes = response.bytes().await.map_err(Failure::unreachable(&self.api.base))?;
        if bytes.is_empty() {
            return Ok(Answer { body: Value::Null });
        }
        let body = serde_json::from_slice(&bytes).map_err(|_| Failure::Foreign { url, status })?;
        Ok(Answer { body })
    }

    /// Sends it, and leaves the body to be read. What may be repeated is, as the service asks for it.
    pub(crate) async fn stream(&self) -> Result<Response, Failure> {
        let (began, mut tries, mut is_renewed) = (Instant::now(), 0, false);
        loop {
            self.api.pace.wait().await;
            let (failure, headers) = match self.once().await {
                Ok(response) => return Ok(response),
                Err(refused) => refused,
            };
            // A sign-in outlives its tokens: once, a new one is fetched.
            if failure.code() == Some("unauthorized") && !is_renewed {
                is_renewed = true;
                if self.api.credential.renew(&self.api.http).await? {
                    continue;
                }
            }
            match retry::again(&self.method, &self.headers, &failure, &headers, tries) {
                // Of many who wait for the rate limit one is let in at a time: that is no failure of the others.
                Again::After(wait) if retry::is_turn_taking(&failure) && self.api.retries > 0 => {
                    if began.elapsed() + wait > retry::PATIENCE {
                        return Err(failure);
                    }
                    self.api.pace.hold(wait, &failure).await;
                }
                Again::After(wait) if tries < self.api.retries => {
                    tries += 1;
                    self.api.pace.hold(wait, &failure).await;
                }
                Again::After(_) | Again::Never => return Err(failure),
            }
        }
    }

    async fn once(&self) -> Result<Response, (Failure, HeaderMap)> {
        let no_headers = |failure| (failure, HeaderMap::new());
        let request = self.request().await.map_err(no_headers)?;
        let response =
            request.send().await.map_err(|source| no_headers(Failure::unreachable(&self.api.base)(source)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refused(response).await)
    }

    async fn request(&self) -> Result<RequestBuilder, Failure> {
        let mut request = self.api.http.request(self.method.clone(), self.url.clone()).headers(self.headers.clone());
        if let Some(token) = self.api.credential.token(&self.api.http).await? {
            request = request.bearer_auth(token);
        }
        Ok(match &self.body {
            Some(body) => request.json(body),
            None => request,
        })
    }
}

/// The failure behind an answer, with the fields that say when to ask again.
async fn refused(response: Response) -> (Failure, HeaderMap) {
    let (status, url, headers) = (response.status(), response.url().clone(), response.headers().clone());
    let body = response.bytes().await.unwrap_or_default();
    let failure = match serde_json::from_slice::<Envelope>(&body) {
        Ok(Envelope { error: Told { code, message } }) => {
            let request_id = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
            Failure::Refused(Refusal { code, message, request_id })
        }
        Err(_) => Failure::Foreign { url, status },
    };
    (failure, headers)
}
