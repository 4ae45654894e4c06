//! A file of a grab, read through the router of the public URLs, in this process. Therefore only files can be read that their
//! caller could fetch, and no deleted ones.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use grabd_memory::{MemoryBudget, MemoryError, Reservation};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::time::timeout;
use tower::ServiceExt;

/// How long to wait for memory, and for the next part of a file.
const WAIT: Duration = Duration::from_secs(10);
/// Memory for a file: its bytes, what is made of them, and the answer.
const MEMORY_FACTOR: u64 = 4;
/// The paths of images and of attachments begin with these.
const PREFIXES: [&str; 2] = ["/i/", "/f/"];

/// Reads files.
pub(super) struct Files {
    images: Router,
    memory: MemoryBudget,
    /// Origin of the URLs of files.
    origin: String,
}

/// A file. Its memory is reserved until it is dropped.
#[derive(Debug)]
pub(crate) struct LoadedFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) media_type: String,
    pub(crate) memory: Reservation,
}

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FileError {
    /// It was deleted, or the URL is not that of a file.
    #[error("There is no file at this URL, or it was deleted.")]
    Missing,
    /// It has more bytes than are read.
    #[error("The file has more than {0} bytes. Fetch its URL instead.")]
    TooLarge(u64),
    /// Other files take the memory.
    #[error("Too many files are being read at the moment. Retry in 5 s.")]
    Busy,
    /// The storage failed.
    #[error("The file could not be read; try again.")]
    Unreadable,
}

impl Files {
    /// Reads files with URLs of this origin.
    pub(super) fn new(images: Router, memory: MemoryBudget, origin: &str) -> Self {
        Self { images, memory, origin: origin.to_owned() }
    }

    /// Reads the file at a URL, which has at most this many bytes.
    ///
    /// # Errors
    /// See [`FileError`].
    pub(super) async fn load(&self, url: &str, max_bytes: u64) -> Result<LoadedFile, FileError> {
        let path = url.strip_prefix(self.origin.as_str()).unwrap_or(url);
        if !PREFIXES.iter().any(|prefix| path.starts_with(prefix)) {
            return Err(FileError::Missing);
        }
        let request = Request::get(path).body(Body::empty()).map_err(|_| FileError::Missing)?;
        let Ok(response) = self.images.clone().oneshot(request).await;
        let (media_type, size) = media_type_and_size(&response)?;
        if size > max_bytes {
            return Err(FileError::TooLarge(max_bytes));
        }
        let memory =
            self.memory.reserve(size.saturating_mul(MEMORY_FACTOR), WAIT).await.map_err(|error| match error {
                MemoryError::Busy => FileError::Busy,
                MemoryError::TooLarge => FileError::TooLarge(max_bytes),
            })?;
        let bytes = read(response.into_body(), usize::try_from(size).unwrap_or(usize::MAX)).await?;
        Ok(LoadedFile { bytes, media_type, memory })
    }
}

/// The media type and the size in bytes that a response has.
fn media_type_and_size(response: &Response<Body>) -> Result<(String, u64), FileError> {
    match response.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Err(FileError::Missing),
        StatusCode::TOO_MANY_REQUESTS => return Err(FileError::Busy),
        status => {
            tracing::error!("a file was not read: the request for it returned {status}");
            return Err(FileError::Unreadable);
        }
    }
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let size = header(CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok()).ok_or(FileError::Unreadable)?;
    let media_type = header(CONTENT_TYPE).unwrap_or("application/octet-stream");
    Ok((media_type.to_owned(), size))
}

/// Reads a body that has this many bytes.
async fn read(mut body: Body, size: usize) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::with_capacity(size);
    loop {
        match timeout(WAIT, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                let part = frame.into_data().unwrap_or_default();
                if bytes.len() + part.len() > size {
                    return Err(FileError::Unreadable);
                }
                bytes.extend_from_slice(&part);
            }
            Ok(None) if bytes.len() == size => return Ok(bytes),
            Ok(None | Some(Err(_))) | Err(_) => return Err(FileError::Unreadable),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;

    use super::*;

    fn files(memory: &MemoryBudget) -> Files {
        let images = Router::new()
            .route("/f/key/page.md", get(async || ([(CONTENT_TYPE, "text/markdown")], "# Hello")))
            .route("/f/key/busy", get(async || StatusCode::TOO_MANY_REQUESTS))
            .route("/f/key/broken", get(async || StatusCode::INTERNAL_SERVER_ERROR))
            .route("/secret", get(async || "no file"));
        Files::new(images, memory.clone(), "https://grabd.example")
    }

    #[tokio::test]
    async fn only_files_of_the_service_are_read() {
        let memory = MemoryBudget::new(1 << 20);
        let files = files(&memory);
        for url in ["https://grabd.example/f/key/page.md", "/f/key/page.md"] {
            let file = files.load(url, 100).await.unwrap();
            assert_eq!((file.bytes.as_slice(), file.media_type.as_str()), (&b"# Hello"[..], "text/markdown"));
        }
        assert_eq!(memory.reserved_bytes(), 0);
        for (url, expected) in [
            ("https://grabd.example/f/key/other", FileError::Missing),
            ("https://grabd.example/secret", FileError::Missing),
            ("https://other.example/f/key/page.md", FileError::Missing),
            ("https://grabd.example.evil/f/key/page.md", FileError::Missing),
            ("/f/no path", FileError::Missing),
            ("", FileError::Missing),
            ("/f/key/busy", FileError::Busy),
            ("/f/key/broken", FileError::Unreadable),
        ] {
            assert_eq!(files.load(url, 100).await.unwrap_err(), expected, "{url}");
        }
        assert_eq!(files.load("/f/key/page.md", 6).await.unwrap_err(), FileError::TooLarge(6));
    }

    #[tokio::test(start_paused = true)]
    async fn memory_of_others_delays_a_file() {
        let memory = MemoryBudget::new(1 << 20);
        let all = memory.reserve(1 << 20, WAIT).await.unwrap();
        assert_eq!(files(&memory).load("/f/key/page.md", 100).await.unwrap_err(), FileError::Busy);
        drop(all);
        assert!(files(&memory).load("/f/key/page.md", 100).await.is_ok());
    }
}
