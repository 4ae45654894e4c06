//! Requests documents of sites: robots.txt and sitemaps. Each request goes through the address guard, and so does each redirect.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use grabd_domain::Fault;
use grabd_domain::site::{Scope, joined_address};
use grabd_domain::target::TargetUrl;
use http::header::{ACCEPT, ACCEPT_ENCODING, LOCATION, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::outgoing::RequestError;
use crate::service::Core;
use crate::targets;

/// Time limit of a document, with its redirects.
const LIMIT: Duration = Duration::from_secs(10);
/// The most redirects that are followed.
const MAX_REDIRECTS: usize = 5;
/// The first bytes of a compressed document.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What happens with a document that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// Its beginning is used.
    Cut,
    /// It is refused.
    Refuse,
}

/// A document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) status: StatusCode,
    /// Empty unless the status is one of success.
    pub(super) body: Bytes,
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub(super) enum DocumentError {
    /// Its host, or that of a redirect, has a private address.
    #[error("its host has an address that is not public")]
    Private,
    /// The operator's rules do not allow its domain.
    #[error("this service does not capture its domain")]
    Domain,
    /// A redirect leads to another site.
    #[error("it leads to another site")]
    OtherSite,
    /// There are too many redirects, or one without a valid address.
    #[error("it has more than {MAX_REDIRECTS} redirects, or one to an invalid address")]
    Redirects,
    /// It is too large.
    #[error("it has more than {} bytes", .0)]
    TooLarge(usize),
    /// It is not valid gzip.
    #[error("it is not valid gzip")]
    Encoding,
    /// There was no response.
    #[error("its server did not answer")]
    Unanswered(#[source] RequestError),
    /// The response ended early, or took too long.
    #[error("its server did not send it within {} s", LIMIT.as_secs())]
    Incomplete,
}

enum Response {
    Redirect(Option<String>),
    Document(Document),
}

/// Requests a document of a site.
///
/// # Errors
/// See [`DocumentError`].
pub(super) async fn fetch(
    core: &Core,
    scope: &Scope,
    url: &TargetUrl,
    most: usize,
    excess: Excess,
) -> Result<Document, DocumentError> {
    let document = async {
        let mut at = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            match request(core, scope, &at, most, excess).await? {
                Response::Document(document) => return Ok(document),
                Response::Redirect(location) => {
                    let next = location.and_then(|location| joined_address(&at, &location));
                    at = next.ok_or(DocumentError::Redirects)?;
                }
            }
        }
        Err(DocumentError::Redirects)
    };
    timeout(LIMIT, document).await.unwrap_or(Err(DocumentError::Incomplete))
}

/// Sends one request, if the site and the operator's rules allow the address.
async fn request(
    core: &Core,
    scope: &Scope,
    url: &TargetUrl,
    most: usize,
    excess: Excess,
) -> Result<Response, DocumentError> {
    if !scope.contains(url) {
        return Err(DocumentError::OtherSite);
    }
    if let Err(fault) = targets::check_page_url(core, url) {
        let is_private = matches!(fault, Fault::SsrfDetected(_));
        return Err(if is_private { DocumentError::Private } else { DocumentError::Domain });
    }
    let request = Request::get("/")
        .header(ACCEPT, "*/*")
        .header(ACCEPT_ENCODING, "identity")
        .header(USER_AGENT, format!("grabd/1.0 (+{})", core.public_url()));
    let read = |head: http::response::Parts, body: Incoming| async move {
        let status = head.status;
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            let location = head.headers.get(LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
            return Ok::<_, DocumentError>(Response::Redirect(location));
        }
        if !status.is_success() {
            return Ok(Response::Document(Document { status, body: Bytes::new() }));
        }
        let body = read_body(body, most, excess).await?;
        Ok(Response::Document(Document { status, body }))
    };
    let sent = core.outgoing.send(&core.guard, url, request, Empty::<Bytes>::new(), LIMIT, read).await;
    match sent {
        Ok(response) => response,
        Err(RequestError::Connection(refusal)) if refusal.is_refused() => Err(DocumentError::Private),
        Err(error) => Err(DocumentError::Unanswered(error)),
    }
}

async fn read_body(mut body: Incoming, most: usize, excess: Excess) -> Result<Bytes, DocumentError> {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| DocumentError::Incomplete)?;
        let Ok(data) = frame.into_data() else { continue };
        let room = most.saturating_sub(read.len());
        if data.len() > room {
            match excess {
                Excess::Refuse => return Err(DocumentError::TooLarge(most)),
                Excess::Cut => {
                    read.extend_from_slice(&data[..room]);
                    break;
                }
            }
        }
        read.extend_from_slice(&data);
    }
    Ok(Bytes::from(read))
}

/// Decompresses a document if it is compressed. It may have at most `most` bytes then, too.
///
/// # Errors
/// [`DocumentError::TooLarge`] and [`DocumentError::Encoding`].
pub(super) fn decompressed(body: Bytes, most: usize) -> Result<Bytes, DocumentError> {
    if !body.starts_with(&GZIP) {
        return Ok(body);
    }
    let mut plain = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(&*body).take(limit).read_to_end(&mut plain).map_err(|_| DocumentError::Encoding)?;
    if plain.len() > most {
        return Err(DocumentError::TooLarge(most));
    }
    Ok(Bytes::from(plain))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn decompressed_size_is_bounded() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&[b'a'; 1000]).unwrap();
        let compressed = Bytes::from(encoder.finish().unwrap());
        assert!(compressed.len() < 100);
        assert_eq!(decompressed(compressed.clone(), 1000).unwrap(), Bytes::from(vec![b'a'; 1000]));
        assert!(matches!(decompressed(compressed.clone(), 999), Err(DocumentError::TooLarge(999))));
        let broken = compressed.slice(..compressed.len() - 9);
        assert!(matches!(decompressed(broken, 1000), Err(DocumentError::Encoding)));
        assert_eq!(decompressed(Bytes::from_static(b"plain"), 10).unwrap(), Bytes::from_static(b"plain"));
    }
}
