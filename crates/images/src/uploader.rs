//! Uploads images to signed URLs of an object store. This is what a renderer does, which has no credentials.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use reqwest::header::CONTENT_LENGTH;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Response, StatusCode};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::error::{self, deepest};
use super::upload_target::UploadTarget;

/// Size of the parts in which an image is sent. They share its memory; the connection copies one or a few at a time.
const PART_BYTES: usize = 256 << 10;
/// Time limit of a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long an upload may make no progress: the store takes no bytes, or does not respond after the last one. Also how
/// long the kernel tries to deliver what was sent, so that nothing arrives long after the upload was given up.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);
/// Initial and maximum pause before an upload is repeated. It doubles after each failure.
const RETRY_DELAY: Duration = Duration::from_millis(100);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);
/// Bytes of an error response that are read.
const RESPONSE_BYTES: usize = 16 << 10;

/// Uploads images. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Uploader {
    client: Client,
    /// [`SILENCE_LIMIT`], except in tests.
    silence_limit: Duration,
}

/// Why an image was not uploaded. The texts contain no URL.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UploadError {
    /// There is no connection to the object store.
    #[error("the object store cannot be reached: {0}")]
    Unreachable(String),
    /// The object store refuses the upload.
    #[error("the object store refuses the upload ({0})")]
    Refused(String),
    /// The object store or the connection failed, also after retries.
    #[error("the upload failed: {0}")]
    Failed(String),
}

/// The outcome of one request.
enum Outcome {
    Stored,
    /// There is an object already.
    Exists,
    /// Repeating it may help.
    Retry(String),
    Final(UploadError),
}

impl Uploader {
    /// An uploader that trusts the certificate authorities of the system, and those in `extra_roots` (PEM).
    ///
    /// # Errors
    /// When the certificates cannot be used.
    pub fn new(extra_roots: &[u8]) -> error::Result<Self> {
        // Fails only if there is one already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let fails = |error: reqwest::Error| error::Error::Options(error.to_string());
        let roots = Certificate::from_pem_bundle(extra_roots).map_err(fails)?;
        let client = Client::builder()
            .connect_timeout(CONNECT_LIMIT)
            .tcp_user_timeout(SILENCE_LIMIT)
            // The signature is valid for one host only.
            .redirect(Policy::none())
            .tls_certs_merge(roots)
            .user_agent("grabd")
            .build();
        Ok(Self { client: client.map_err(fails)?, silence_limit: SILENCE_LIMIT })
    }

    /// Uploads an image, with retries until `until`.
    ///
    /// # Errors
    /// [`UploadError`]. The object may exist nevertheless if the response was lost.
    pub async fn upload(&self, target: &UploadTarget, image: &Bytes, until: Instant) -> Result<(), UploadError> {
        let mut delay = RETRY_DELAY;
        // Whether an earlier request may have been processed without a response.
        let mut may_exist = false;
        let mut last = "the time limit".to_owned();
        loop {
            match timeout_at(until, self.put(target, image)).await {
                Ok(Outcome::Stored) => return Ok(()),
                Ok(Outcome::Exists) if may_exist => return Ok(()),
                Ok(Outcome::Exists) => return Err(UploadError::Refused("there is such an object already".to_owned())),
                Ok(Outcome::Final(error)) => return Err(error),
                Ok(Outcome::Retry(cause)) => last = cause,
                Err(_) => return Err(UploadError::Failed(last)),
            }
            may_exist = true;
            // Backoff before the upload is repeated.
            if timeout_at(until, sleep(delay)).await.is_err() {
                return Err(UploadError::Failed(last));
            }
            delay = (delay * 2).min(MAX_RETRY_DELAY);
        }
    }

    async fn put(&self, target: &UploadTarget, image: &Bytes) -> Outcome {
        let progress = Arc::new(Notify::new());
        let mut request = self.client.put(&target.url).header(CONTENT_LENGTH, image.len());
        for (name, value) in &target.headers {
            request = request.header(name, value);
        }
        let request = request.body(body(image.clone(), Arc::clone(&progress)));
        let answered = tokio::select! {
            answered = request.send() => answered,
            () = self.stalled(&progress) => return Outcome::Retry("it made no progress".to_owned()),
        };
        match answered {
            Ok(response) => outcome_of(response).await,
            Err(error) => {
                let error = error.without_url();
                let text = deepest(&error);
                match error.is_connect() || error.is_builder() {
                    true => Outcome::Final(UploadError::Unreachable(text)),
                    false => Outcome::Retry(text),
                }
            }
        }
    }

    /// Completes when there is no progress for too long.
    async fn stalled(&self, progress: &Notify) {
        while timeout(self.silence_limit, progress.notified()).await.is_ok() {}
    }
}

/// The parts of an image. Each that is taken is progress.
fn body(image: Bytes, progress: Arc<Notify>) -> reqwest::Body {
    let starts = (0..image.len()).step_by(PART_BYTES);
    let parts = futures::stream::iter(starts).map(move |start| {
        progress.notify_one();
        Ok::<_, io::Error>(image.slice(start..image.len().min(start + PART_BYTES)))
    });
    reqwest::Body::wrap_stream(parts)
}

async fn outcome_of(response: Response) -> Outcome {
    let status = response.status();
    match status {
        status if status.is_success() => Outcome::Stored,
        StatusCode::PRECONDITION_FAILED => Outcome::Exists,
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => {
            Outcome::Retry(describe(response).await)
        }
        status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
            Outcome::Retry(describe(response).await)
        }
        _ => Outcome::Final(UploadError::Refused(describe(response).await)),
    }
}

/// The status and the error code of the object store. The rest of the response may contain the secret key of the image.
async fn describe(mut response: Response) -> String {
    let status = response.status().as_u16();
    let mut text = Vec::new();
    let read = async {
        while text.len() < RESPONSE_BYTES
            && let Ok(Some(part)) = response.chunk().await
        {
            text.extend_from_slice(&part);
        }
    };
    // What was not read in time is not needed.
    drop(timeout(SILENCE_LIMIT, read).await);
    match error::code(&String::from_utf8_lossy(&text)) {
        Some(code) => format!("{status} {code}"),
        None => format!("status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const SILENCE: Duration = Duration::from_millis(400);
    /// More than the buffers of the connection hold.
    const IMAGE_BYTES: usize = 16 << 20;

    /// Reads a request to its end, some bytes at a time, and responds.
    async fn respond_slowly(mut client: TcpStream, pause: Duration) -> io::Result<()> {
        let (mut buffer, mut read) = (vec![0; 1 << 20], 0);
        while read < IMAGE_BYTES {
            sleep(pause).await;
            read += match client.read(&mut buffer).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => bytes,
            };
        }
        client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await
    }

    #[tokio::test]
    async fn upload_is_given_up_only_without_progress() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/bucket/key", listener.local_addr()?);
        let target = UploadTarget { url, headers: Vec::new(), valid: SILENCE };
        let uploader = Uploader { silence_limit: SILENCE, ..Uploader::new(b"").expect("an uploader") };
        let image = Bytes::from(vec![7; IMAGE_BYTES]);
        let began = Instant::now();
        let upload = uploader.upload(&target, &image, began + Duration::from_secs(30));
        let serve = async {
            // The first connection takes what its buffers hold, and no more.
            let (_silent, _) = listener.accept().await?;
            let (slow, _) = listener.accept().await?;
            respond_slowly(slow, SILENCE / 8).await
        };
        let (uploaded, served) = tokio::join!(upload, serve);
        assert_eq!(uploaded, Ok(()));
        served?;
        // The first request was not left to the kernel, and the second one alone took longer than the limit.
        assert!((SILENCE * 3..SILENCE_LIMIT).contains(&began.elapsed()), "{:?}", began.elapsed());
        Ok(())
    }
}
