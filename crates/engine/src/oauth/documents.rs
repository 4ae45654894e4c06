//! Client ID Metadata Documents: client metadata at a URL of the app. Anybody can make this service fetch such a URL,
//! so fetches go through the address guard, are limited in size and time, and are cached.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::Timestamp;
use grabd_domain::oauth::{
    ClientMetadata, DOCUMENT_BYTES, DOCUMENT_LIFE, DOCUMENT_TIMEOUT, DocumentUrl, MetadataError, RawMetadata,
};
use grabd_egress::Guard;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::outgoing::{OutgoingClient, RequestError};

const USER_AGENT_VALUE: &str = "grabd-oauth/1.0";
/// The start of all authentication methods with a secret (RFC 7591 section 2).
const SECRET_METHODS: &str = "client_secret_";
/// Documents in the cache.
const MAX_CACHED: usize = 256;
/// Concurrent fetches. Each takes a few seconds at most. Whoever asks for them has a part of the requests that cause them.
const MAX_FETCHES: usize = 64;

/// Why a document cannot be used. Errors about its content have the code `invalid_client_metadata` (RFC 7591).
#[derive(Debug, thiserror::Error)]
pub(super) enum DocumentError {
    #[error("too many documents are being fetched")]
    Busy,
    #[error("it cannot be fetched")]
    Unanswered(#[source] RequestError),
    #[error("its server answered with status {0}; it must be 200")]
    Status(StatusCode),
    #[error("it is not of type application/json")]
    Type,
    #[error("it has more than {DOCUMENT_BYTES} bytes, or breaks off")]
    Body,
    #[error("it is not the JSON of a client's metadata: {0}")]
    Json(serde_json::Error),
    #[error("its `client_id` is not its own address")]
    Foreign,
    #[error("it has a `client_secret`, which would not be one")]
    Secret,
    #[error("its `token_endpoint_auth_method` needs a secret, which a public document cannot have; it must be none")]
    AuthMethod,
    #[error("{0}")]
    Metadata(MetadataError),
}

impl DocumentError {
    /// The code of RFC 7591 section 3.2.2 for an error about the content.
    pub(super) const fn code(&self) -> Option<&'static str> {
        match self {
            Self::Json(_) | Self::Foreign | Self::Secret | Self::AuthMethod => Some("invalid_client_metadata"),
            Self::Metadata(MetadataError::Other(_)) => Some("invalid_client_metadata"),
            Self::Metadata(MetadataError::RedirectUri(_)) => Some("invalid_redirect_uri"),
            Self::Busy | Self::Unanswered(_) | Self::Status(_) | Self::Type | Self::Body => None,
        }
    }
}

/// What fetches documents.
#[derive(Clone, Copy)]
pub(super) struct Fetcher<'a> {
    pub(super) client: &'a OutgoingClient,
    pub(super) guard: &'a Guard,
}

/// Cache of fetched documents.
pub(crate) struct Documents {
    cached: Mutex<HashMap<DocumentUrl, (ClientMetadata, Timestamp)>>,
    permits: Semaphore,
}

impl Default for Documents {
    fn default() -> Self {
        Self { cached: Mutex::default(), permits: Semaphore::new(MAX_FETCHES) }
    }
}

impl Documents {
    /// The metadata in the document at this URL. Failures are not cached.
    pub(super) async fn get(
        &self,
        fetcher: Fetcher<'_>,
        clock: &Clock,
        url: &DocumentUrl,
    ) -> Result<ClientMetadata, DocumentError> {
        if let Some(metadata) = self.find(url, clock.now()) {
            return Ok(metadata);
        }
        let _permit = self.permits.try_acquire().map_err(|_| DocumentError::Busy)?;
        let (head, body) = fetch(fetcher, url).await?;
        let metadata = read(url, &body)?;
        self.insert(url.clone(), metadata.clone(), clock.now(), lifetime(&head));
        Ok(metadata)
    }

    fn find(&self, url: &DocumentUrl, now: Timestamp) -> Option<ClientMetadata> {
        let cached = self.cached.lock();
        cached.get(url).filter(|(_, until)| *until > now).map(|(metadata, _)| metadata.clone())
    }

    fn insert(&self, url: DocumentUrl, metadata: ClientMetadata, now: Timestamp, lifetime: Duration) {
        let mut cached = self.cached.lock();
        if cached.len() >= MAX_CACHED {
            cached.retain(|_, (_, until)| *until > now);
        }
        if cached.len() >= MAX_CACHED
            && let Some(first) = cached.iter().min_by_key(|(_, (_, until))| *until).map(|(url, _)| url.clone())
        {
            cached.remove(&first);
        }
        cached.insert(url, (metadata, now + lifetime));
    }
}

async fn fetch(fetcher: Fetcher<'_>, url: &DocumentUrl) -> Result<(HeaderMap, Bytes), DocumentError> {
    let request = Request::get("/").header(ACCEPT, "application/json").header(USER_AGENT, USER_AGENT_VALUE);
    let read = |head: http::response::Parts, body: Incoming| async move {
        if head.status != StatusCode::OK {
            return Err(DocumentError::Status(head.status));
        }
        if !is_json(&head.headers) {
            return Err(DocumentError::Type);
        }
        let body = Limited::new(body, DOCUMENT_BYTES).collect().await.map_err(|_| DocumentError::Body)?;
        Ok((head.headers, body.to_bytes()))
    };
    let (target, body) = (url.target(), Full::new(Bytes::new()));
    let response = fetcher.client.send(fetcher.guard, &target, request, body, DOCUMENT_TIMEOUT, read).await;
    response.map_err(DocumentError::Unanswered)?
}

fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media == "application/json" || media.starts_with("application/") && media.ends_with("+json")
}

/// The cache lifetime that the server allows, clamped to the bounds of this service.
fn lifetime(headers: &HeaderMap) -> Duration {
    let directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives: Vec<String> =
        directives.flat_map(|line| line.split(',')).map(|directive| directive.trim().to_ascii_lowercase()).collect();
    let is_cacheable = !directives.iter().any(|directive| directive == "no-store" || directive == "no-cache");
    let seconds =
        directives.iter().find_map(|directive| directive.strip_prefix("max-age=")?.trim_matches('"').parse().ok());
    let requested = seconds.filter(|_| is_cacheable).map_or(*DOCUMENT_LIFE.start(), Duration::from_secs);
    requested.clamp(*DOCUMENT_LIFE.start(), *DOCUMENT_LIFE.end())
}

#[derive(Deserialize)]
struct Document {
    client_id: String,
    client_name: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
    client_secret: Option<IgnoredAny>,
    token_endpoint_auth_method: Option<String>,
}

fn read(url: &DocumentUrl, body: &[u8]) -> Result<ClientMetadata, DocumentError> {
    let document: Document = serde_json::from_slice(body).map_err(DocumentError::Json)?;
    let Document {
        client_id,
        client_name,
        redirect_uris,
        grant_types,
        response_types,
        client_secret,
        token_endpoint_auth_method,
    } = document;
    if client_id != url.as_str() {
        return Err(DocumentError::Foreign);
    }
    if client_secret.is_some() {
        return Err(DocumentError::Secret);
    }
    if token_endpoint_auth_method.is_some_and(|method| method.starts_with(SECRET_METHODS)) {
        return Err(DocumentError::AuthMethod);
    }
    let raw = RawMetadata {
        client_name: Some(client_name.unwrap_or_else(|| url.host())),
        redirect_uris,
        grant_types,
        response_types,
        // The document is public, so the app cannot have a secret. Methods with a key are not used, and not needed.
        token_endpoint_auth_method: Some("none".to_owned()),
    };
    ClientMetadata::parse(&raw).map_err(DocumentError::Metadata)
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
