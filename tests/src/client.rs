//! The HTTP client of the tests. It ignores proxies that are configured on the machine, and checks every error response of
//! the service against the contract, whatever its test expects.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Body, IntoUrl, Method, Response, ResponseBuilderExt, Result, redirect};
use serde::Serialize;

use crate::contract;

/// A client builder. A TLS provider is installed because the command line tool, which is built together with the tests,
/// enables TLS in `reqwest`; the tests themselves use plain HTTP.
pub fn client() -> ClientBuilder {
    // Fails only if a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ClientBuilder(reqwest::ClientBuilder::new().no_proxy())
}

/// Builds a [`Client`].
#[derive(Debug)]
pub struct ClientBuilder(reqwest::ClientBuilder);

impl ClientBuilder {
    /// Whether redirects are followed.
    #[must_use]
    pub fn redirect(self, policy: redirect::Policy) -> Self {
        Self(self.0.redirect(policy))
    }

    /// The time limit of a request.
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Self {
        Self(self.0.timeout(limit))
    }

    /// Builds the client.
    pub fn build(self) -> Result<Client> {
        self.0.build().map(Client)
    }
}

/// An HTTP client. Its clones share their connections.
#[derive(Clone, Debug)]
pub struct Client(reqwest::Client);

impl Client {
    /// Starts a request.
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        RequestBuilder(self.0.request(method, url))
    }

    /// Starts a GET request.
    pub fn get(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::GET, url)
    }

    /// Starts a POST request.
    pub fn post(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::POST, url)
    }

    /// Starts a PUT request.
    pub fn put(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::PUT, url)
    }

    /// Starts a PATCH request.
    pub fn patch(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::PATCH, url)
    }

    /// Starts a DELETE request.
    pub fn delete(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::DELETE, url)
    }

    /// Starts a HEAD request.
    pub fn head(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::HEAD, url)
    }
}

/// Builds and sends a request.
#[derive(Debug)]
#[must_use]
pub struct RequestBuilder(reqwest::RequestBuilder);

impl RequestBuilder {
    /// Adds a header field.
    pub fn header<N, V>(self, name: N, value: V) -> Self
    where
        HeaderName: TryFrom<N>,
        <HeaderName as TryFrom<N>>::Error: Into<http::Error>,
        HeaderValue: TryFrom<V>,
        <HeaderValue as TryFrom<V>>::Error: Into<http::Error>,
    {
        Self(self.0.header(name, value))
    }

    /// Sets header fields.
    pub fn headers(self, headers: HeaderMap) -> Self {
        Self(self.0.headers(headers))
    }

    /// Adds the credential.
    pub fn bearer_auth(self, token: impl std::fmt::Display) -> Self {
        Self(self.0.bearer_auth(token))
    }

    /// Sets the body.
    pub fn body(self, body: impl Into<Body>) -> Self {
        Self(self.0.body(body))
    }

    /// Sets a JSON body.
    pub fn json<T: Serialize + ?Sized>(self, body: &T) -> Self {
        Self(self.0.json(body))
    }

    /// The time limit of this request.
    pub fn timeout(self, limit: Duration) -> Self {
        Self(self.0.timeout(limit))
    }

    /// Sends the request.
    ///
    /// # Panics
    /// If the service responds with an error that the contract does not allow.
    pub async fn send(self) -> Result<Response> {
        let (client, request) = self.0.build_split();
        let request = request?;
        let method = request.method().clone();
        checked(method, client.execute(request).await?).await
    }
}

/// Checks the response if it is or has an error of the service. Other responses are not read.
async fn checked(method: Method, mut response: Response) -> Result<Response> {
    let (status, path) = (response.status(), response.url().path().to_owned());
    let is_error = status.is_client_error() || status.is_server_error();
    // Responses of other servers of the tests have no request id, and neither have those to malformed HTTP.
    let is_service = response.headers().contains_key("x-request-id") || path.starts_with("/v1/");
    let is_batch = status.is_success() && path == "/v1/grabs/batch" && method == Method::POST;
    if !is_service || !(is_error || is_batch) {
        return Ok(response);
    }
    let headers = response.headers().clone();
    let check = |body: &[u8]| {
        if let Err(problem) = contract::check_response(&method, &path, status, &headers, body) {
            panic!("{method} {path} responded {status}: {problem:#}");
        }
    };
    if headers.get(CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
        // Pages are left to their tests, which may stop reading them.
        check(&[]);
        return Ok(response);
    }
    let mut head = http::Response::builder().status(status).version(response.version()).url(response.url().clone());
    head.extensions_mut().into_iter().for_each(|to| to.extend(std::mem::take(response.extensions_mut())));
    let body = response.bytes().await?;
    check(&body);
    let mut read = head.body(body).expect("the head of a response");
    *read.headers_mut() = headers;
    Ok(read.into())
}
