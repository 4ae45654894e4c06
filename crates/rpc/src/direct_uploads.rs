//! Uploads images from a renderer to the object store, as far as the renderer can reach it.
//!
//! When an upload fails, that image and the next ones are sent to the core, which stores them, until a minute has passed.
//! Then one image is uploaded again, and if that works, all of them are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use grabd_engine::renderers::{ImageDigest, UploadError, UploadTarget, Uploader};
use parking_lot::Mutex;
use tokio::task::yield_now;
use tokio::time::Instant;
use tonic::codegen::Bytes;

/// How long images are sent to the core after an upload has failed.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// The part of the time until the lease ends that an upload may take. The rest is for the way through the core.
const SHARE: u32 = 2;
/// How much of an image is hashed without a break.
const HASHED_BYTES: usize = 256 << 10;

/// The uploads of a renderer.
#[derive(Debug)]
pub struct DirectUploads {
    uploader: Uploader,
    /// When the next upload may be tried, after one has failed. The lock is only held for a few moments, hence a std
    /// mutex.
    retry_at: Mutex<Option<Instant>>,
    stored: AtomicU64,
    failed: AtomicU64,
    skipped: AtomicU64,
}

/// Results of the images that could be uploaded, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectUploadCounts {
    /// Uploaded.
    pub stored: u64,
    /// Not uploaded, although that was tried. They were sent to the core.
    pub failed: u64,
    /// Sent to the core because an earlier upload had failed.
    pub skipped: u64,
}

impl DirectUploads {
    /// Uploads with this client.
    pub const fn new(uploader: Uploader) -> Self {
        let (retry_at, zero) = (Mutex::new(None), AtomicU64::new);
        Self { uploader, retry_at, stored: zero(0), failed: zero(0), skipped: zero(0) }
    }

    /// Results of the images so far.
    pub fn counts(&self) -> DirectUploadCounts {
        let Self { stored, failed, skipped, .. } = self;
        let [stored, failed, skipped] = [stored, failed, skipped].map(|count| count.load(Ordering::Relaxed));
        DirectUploadCounts { stored, failed, skipped }
    }

    /// Uploads an image well before `ends`. Returns its SHA-256 in hexadecimal digits, or `None` if it must be sent to the
    /// core. Cancel-safe.
    pub(crate) async fn upload(&self, target: &UploadTarget, image: &Bytes, ends: Instant) -> Option<String> {
        let began = Instant::now();
        if !self.may_try(began) {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let until = began + ends.saturating_duration_since(began) / SHARE;
        match tokio::join!(self.uploader.upload(target, image, until), sha256(image)) {
            (Ok(()), digest) => {
                self.succeeded();
                Some(digest)
            }
            (Err(error), _) => {
                self.fail(&error, Instant::now());
                None
            }
        }
    }

    /// Whether an upload may be tried now. After a failure, one may.
    fn may_try(&self, now: Instant) -> bool {
        let mut retry_at = self.retry_at.lock();
        match *retry_at {
            None => true,
            Some(at) if now < at => false,
            Some(_) => {
                // The others wait for the outcome.
                *retry_at = Some(now + RETRY_AFTER);
                true
            }
        }
    }

    fn succeeded(&self) {
        self.stored.fetch_add(1, Ordering::Relaxed);
        if self.retry_at.lock().take().is_some() {
            tracing::info!("images are uploaded to the object store again");
        }
    }

    fn fail(&self, error: &UploadError, now: Instant) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        if self.retry_at.lock().replace(now + RETRY_AFTER).is_none() {
            tracing::warn!(
                %error,
                retry_s = RETRY_AFTER.as_secs(),
                "an image could not be uploaded to the object store; images pass through the cores until that works"
            );
        }
    }
}

/// Lets other tasks run meanwhile.
async fn sha256(image: &Bytes) -> String {
    let mut digest = ImageDigest::default();
    for part in image.chunks(HASHED_BYTES) {
        digest.update(part);
        yield_now().await;
    }
    digest.into_hex()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uploads() -> DirectUploads {
        DirectUploads::new(Uploader::new(b"").unwrap())
    }

    #[tokio::test]
    async fn after_a_failure_one_upload_is_tried_each_minute_until_one_succeeds() {
        let (uploads, start) = (uploads(), Instant::now());
        let error = UploadError::Unreachable("Connection refused".to_owned());
        assert!(uploads.may_try(start) && uploads.may_try(start));
        uploads.fail(&error, start);
        assert!(!uploads.may_try(start) && !uploads.may_try(start + RETRY_AFTER - Duration::from_millis(1)));
        let next = start + RETRY_AFTER;
        assert!(uploads.may_try(next));
        assert!(!uploads.may_try(next), "one is enough");
        uploads.fail(&error, next);
        assert!(!uploads.may_try(next + RETRY_AFTER - Duration::from_millis(1)));
        assert!(uploads.may_try(next + RETRY_AFTER));
        uploads.succeeded();
        assert!(uploads.may_try(next + RETRY_AFTER) && uploads.may_try(start));
        assert_eq!(uploads.counts(), DirectUploadCounts { stored: 1, failed: 2, skipped: 0 });
    }

    #[tokio::test]
    async fn digest_does_not_depend_on_the_parts() {
        let image = Bytes::from(vec![7; HASHED_BYTES + 1]);
        let mut digest = ImageDigest::default();
        digest.update(&image);
        assert_eq!(sha256(&image).await, digest.into_hex());
        assert!(sha256(&Bytes::new()).await.starts_with("e3b0c442"));
    }

    #[tokio::test]
    async fn image_is_sent_to_the_core_when_the_store_cannot_be_reached() {
        let uploads = uploads();
        // Nothing listens on a port that was just given back.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}/bucket/key?X-Amz-Signature=secret");
        let target = UploadTarget { url, headers: Vec::new(), valid: Duration::from_secs(30) };
        let image = Bytes::from_static(b"image");
        let ends = Instant::now() + Duration::from_secs(30);
        for counts in [(1, 0), (1, 1)] {
            assert_eq!(uploads.upload(&target, &image, ends).await, None);
            let (failed, skipped) = counts;
            assert_eq!(uploads.counts(), DirectUploadCounts { stored: 0, failed, skipped });
        }
    }
}
