//! Serves the pages of a set, without their scripts.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::sets::Page;

/// The served pages. They stop when this is dropped.
pub(super) struct PageSite {
    origin: String,
    _task: AbortOnDropHandle<()>,
}

/// A page as it is served.
struct Served {
    file: PathBuf,
    base: Option<String>,
}

impl PageSite {
    /// Serves pages on a free port of this address.
    pub(super) async fn start(address: IpAddr, pages: &[Page]) -> io::Result<Self> {
        let served = |page: &Page| Served { file: page.file.clone(), base: page.base.clone() };
        let pages: Arc<[Served]> = pages.iter().map(served).collect();
        let listener = TcpListener::bind((address, 0)).await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let router = Router::new().route("/pages/{number}", get(respond)).with_state(pages);
        let task = TaskTracker::new().spawn(async move {
            // It ends with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { origin, _task: AbortOnDropHandle::new(task) })
    }

    /// The URL of the page at this index.
    pub(super) fn url(&self, index: usize) -> String {
        format!("{}/pages/{index}", self.origin)
    }
}

async fn respond(State(pages): State<Arc<[Served]>>, Path(number): Path<usize>) -> Response {
    let Some(page) = pages.get(number) else { return StatusCode::NOT_FOUND.into_response() };
    let Ok(mut content) = tokio::fs::read(&page.file).await else { return StatusCode::NOT_FOUND.into_response() };
    let mut headers = HeaderMap::new();
    // Scripts would need the servers of the page, so that none runs. `<noscript>` stays what it is with scripts.
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("script-src 'none'"));
    let is_compressed = page.file.extension().is_some_and(|extension| extension == "gz");
    if is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let is_utf8 = is_compressed || std::str::from_utf8(&content).is_ok();
    headers
        .insert(CONTENT_TYPE, HeaderValue::from_static(if is_utf8 { "text/html; charset=utf-8" } else { "text/html" }));
    if let Some(base) = &page.base {
        content = with_base(&content, base);
    }
    (headers, content).into_response()
}

/// The document with a `<base>` of this URL, so that relative links are those of the original page.
fn with_base(html: &[u8], url: &str) -> Vec<u8> {
    let lower = html.to_ascii_lowercase();
    let after = |tag: &[u8]| {
        let begin = lower.windows(tag.len()).position(|part| part == tag)?;
        lower.iter().skip(begin).position(|byte| *byte == b'>').map(|end| begin + end + 1)
    };
    let at = after(b"<head>").or_else(|| after(b"<head ")).or_else(|| after(b"<html")).or_else(|| after(b"<!doctype"));
    let (before, rest) = html.split_at(at.unwrap_or_default());
    let base = format!("<base href=\"{}\">", url.replace('&', "&amp;").replace('"', "&quot;"));
    [before, base.as_bytes(), rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_is_the_first_element_of_the_head() {
        let with = |html: &str| String::from_utf8(with_base(html.as_bytes(), "https://example.com/?a&b")).unwrap();
        let base = "<base href=\"https://example.com/?a&amp;b\">";
        assert_eq!(with("<html><HEAD><title>"), format!("<html><HEAD>{base}<title>"));
        assert_eq!(with("<!doctype html><p>"), format!("<!doctype html>{base}<p>"));
        assert_eq!(with("<p>"), format!("{base}<p>"));
    }
}
