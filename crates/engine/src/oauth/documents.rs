//! Apps that describe themselves at an address of their own (Client ID Metadata Documents). Whoever asks for consent with
//! such an address makes this service fetch it, so it goes through the guard, is small, quick, and remembered.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::Timestamp;
use grabd_domain::oauth::{
    ClientMetadata, DOCUMENT_BYTES, DOCUMENT_LIFE, DOCUMENT_LIMIT, DocumentUrl, MetadataError, RawMetadata,
};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::sync::Semaphore;

use crate::core::Core;
use crate::outgoing::Unanswered;

const AGENT: &str = "grabd-oauth/1.0";
/// Documents that are remembered.
const REMEMBERED: usize = 256;
/// Documents that are fetched at a time. Each is over after a few seconds.
const AT_ONCE: usize = 16;

/// Why a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("too many documents are being fetched")]
    Busy,
    #[error("it cannot be fetched")]
    Unanswered(#[source] Unanswered),
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
    #[error("{0}")]
    Metadata(MetadataError),
}

/// What was fetched, and may be used for a while.
pub(crate) struct Documents {
    known: Mutex<HashMap<DocumentUrl, (ClientMetadata, Timestamp)>>,
    places: Semaphore,
}

impl Default for Documents {
    fn default() -> Self {
        Self { known: Mutex::default(), places: Semaphore::new(AT_ONCE) }
    }
}

impl Documents {
    /// What the document at this address says. A failure is not remembered.
    pub(super) async fn get(&self, core: &Core, url: &DocumentUrl) -> Result<ClientMetadata, Unreadable> {
        if let Some(known) = self.find(url, core.clock.now()) {
            return Ok(known);
        }
        let _place = self.places.try_acquire().map_err(|_| Unreadable::Busy)?;
        let (head, body) = fetch(core, url).await?;
        let metadata = read(url, &body)?;
        self.remember(url.clone(), metadata.clone(), core.clock.now(), life(&head));
        Ok(metadata)
    }

    fn find(&self, url: &DocumentUrl, now: Timestamp) -> Option<ClientMetadata> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(url).filter(|(_, until)| *until > now).map(|(metadata, _)| metadata.clone())
    }

    fn remember(&self, url: DocumentUrl, metadata: ClientMetadata, now: Timestamp, life: Duration) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.retain(|_, (_, until)| *until > now);
        }
        if known.len() >= REMEMBERED
            && let Some(first) = known.iter().min_by_key(|(_, (_, until))| *until).map(|(url, _)| url.clone())
        {
            known.remove(&first);
        }
        known.insert(url, (metadata, now + life));
    }
}

async fn fetch(core: &Core, url: &DocumentUrl) -> Result<(HeaderMap, Bytes), Unreadable> {
    let request = Request::get("/").header(ACCEPT, "application/json").header(USER_AGENT, AGENT);
    let read = |head: http::response::Parts, body: Incoming| async move {
        if head.status != StatusCode::OK {
            return Err(Unreadable::Status(head.status));
        }
        if !is_json(&head.headers) {
            return Err(Unreadable::Type);
        }
        let body = Limited::new(body, DOCUMENT_BYTES).collect().await.map_err(|_| Unreadable::Body)?;
        Ok((head.headers, body.to_bytes()))
    };
    let answer = core.outgoing.ask(&core.guard, &url.target(), request, Bytes::new(), DOCUMENT_LIMIT, read).await;
    answer.map_err(Unreadable::Unanswered)?
}

fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media == "application/json" || media.starts_with("application/") && media.ends_with("+json")
}

/// How long its server lets it be kept, within our own bounds.
fn life(headers: &HeaderMap) -> Duration {
    let directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives: Vec<String> =
        directives.flat_map(|line| line.split(',')).map(|directive| directive.trim().to_ascii_lowercase()).collect();
    let is_kept = !directives.iter().any(|directive| directive == "no-store" || directive == "no-cache");
    let seconds =
        directives.iter().find_map(|directive| directive.strip_prefix("max-age=")?.trim_matches('"').parse().ok());
    let asked = seconds.filter(|_| is_kept).map_or(*DOCUMENT_LIFE.start(), Duration::from_secs);
    asked.clamp(*DOCUMENT_LIFE.start(), *DOCUMENT_LIFE.end())
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
}

fn read(url: &DocumentUrl, body: &[u8]) -> Result<ClientMetadata, Unreadable> {
    let document: Document = serde_json::from_slice(body).map_err(Unreadable::Json)?;
    let Document { client_id, client_name, redirect_uris, grant_types, response_types, client_secret } = document;
    if client_id != url.as_str() {
        return Err(Unreadable::Foreign);
    }
    if client_secret.is_some() {
        return Err(Unreadable::Secret);
    }
    let raw = RawMetadata {
        client_name: Some(client_name.unwrap_or_else(|| url.host())),
        redirect_uris,
        grant_types,
        response_types,
        // Everybody can read the document, so the app has no secret to prove itself with.
        token_endpoint_auth_method: Some("none".to_owned()),
    };
    ClientMetadata::parse(&raw).map_err(Unreadable::Metadata)
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
