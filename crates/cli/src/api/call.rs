//! One API request, retried when that is safe and useful.

use grabd_api::{ErrorBody, ErrorMembers};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::Api;
use super::retry::{self, Retry};
use crate::failure::{ApiError, Failure};

const REQUEST_ID: &str = "x-request-id";
const ERROR_CAUSE: &str = "error-cause";

/// A request builder.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    api: &'a Api,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Value>,
    /// Of a wait for a capture: when it is over.
    wait_until: Option<Instant>,
}

/// A successful response.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    /// The body; null if it is empty.
    pub(crate) body: Value,
}

impl Api {
    /// A request to a path relative to the base URL, such as `grabs`.
    pub(crate) fn call(&self, method: Method, path: &str) -> Call<'_> {
        let url = self.base.join(path).expect("relative paths can be joined to an http base URL");
        Call::new(self, method, url)
    }
}

impl<'a> Call<'a> {
    fn new(api: &'a Api, method: Method, url: Url) -> Self {
        Self { api, method, url, headers: HeaderMap::new(), body: None, wait_until: None }
    }

    /// Adds a query parameter.
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.url.query_pairs_mut().append_pair(name, value);
        self
    }

    /// Adds a header field.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Result<Self, Failure> {
        let value = HeaderValue::from_str(value).map_err(|_| {
            Failure::Usage(format!(
                "{value:?} cannot be sent as {name}: it has characters that are not allowed in a header"
            ))
        })?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// Sets the body.
    pub(crate) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Says that the request waits for a capture until then. If the limit of waits is used up, the failure is returned
    /// after the requested time: the caller tries again until then, with what is left of the time.
    pub(crate) const fn waiting_until(mut self, until: Instant) -> Self {
        self.wait_until = Some(until);
        self
    }

    /// Sends the request and reads the whole response.
    pub(crate) async fn send(self) -> Result<ApiResponse, Failure> {
        let response = self.stream().await?;
        let (url, status) = (response.url().clone(), response.status());
        let bytes = response.bytes().await.map_err(Failure::unreachable(&self.api.base))?;
        if bytes.is_empty() {
            return Ok(ApiResponse { body: Value::Null });
        }
        let body = serde_json::from_slice(&bytes).map_err(|_| Failure::UnexpectedResponse { url, status })?;
        Ok(ApiResponse { body })
    }

    /// Sends the request, with retries, and returns the response with an unread body.
    pub(crate) async fn stream(&self) -> Result<Response, Failure> {
        let (started, mut retries, mut is_renewed) = (Instant::now(), 0, false);
        loop {
            match self.wait_until {
                Some(until) => _ = timeout_at(until, self.api.waits.wait()).await,
                None => self.api.rate_limit.wait().await,
            }
            let (failure, headers) = match self.send_once().await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            // A sign-in outlives its access tokens: refresh once.
            if failure.code() == Some("unauthorized") && !is_renewed {
                is_renewed = true;
                if self.api.credential.renew(&self.api.http).await? {
                    continue;
                }
            }
            if let Some(until) = self.wait_until.filter(|_| retry::is_rate_limited(&failure)) {
                let wait = retry::wait_for_limit(&headers, retries);
                self.api.waits.pause(wait.min(until.duration_since(Instant::now())), &failure).await;
                _ = timeout_at(until, self.api.waits.wait()).await;
                return Err(failure);
            }
            match retry::classify(&self.method, &self.headers, &failure, &headers, retries) {
                // Concurrent requests that wait for the rate limit are admitted one at a time, so these waits do not
                // count as retries.
                Retry::After(wait) if retry::is_rate_limited(&failure) && self.api.retries > 0 => {
                    if started.elapsed() + wait > retry::RATE_LIMIT_WAIT {
                        return Err(failure);
                    }
                    self.api.rate_limit.pause(wait, &failure).await;
                }
                Retry::After(wait) if retries < self.api.retries => {
                    retries += 1;
                    self.api.rate_limit.pause(wait, &failure).await;
                }
                Retry::After(_) | Retry::Never => return Err(failure),
            }
        }
    }

    async fn send_once(&self) -> Result<Response, (Failure, HeaderMap)> {
        let no_headers = |failure| (failure, HeaderMap::new());
        let request = self.request().await.map_err(no_headers)?;
        let response =
            request.send().await.map_err(|source| no_headers(Failure::unreachable(&self.api.base)(source)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(read_error(response).await)
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

/// The failure for an error response, with the response headers, which may have a `Retry-After`.
async fn read_error(response: Response) -> (Failure, HeaderMap) {
    let (status, url, headers) = (response.status(), response.url().clone(), response.headers().clone());
    let body = response.bytes().await.unwrap_or_default();
    let failure = match serde_json::from_slice::<ErrorBody<'_>>(&body) {
        Ok(ErrorBody { error: ErrorMembers { code, message } }) => {
            let (code, message) = (code.into_owned(), message.into_owned());
            let header = |name| Some(headers.get(name)?.to_str().ok()?.to_owned());
            Failure::Api(ApiError { code, message, cause: header(ERROR_CAUSE), request_id: header(REQUEST_ID) })
        }
        Err(_) => Failure::UnexpectedResponse { url, status },
    };
    (failure, headers)
}
