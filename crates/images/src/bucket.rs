//! Images in a bucket of an S3-compatible object store.
//!
//! An image is first a file of this machine, so that its upload can be repeated, and is not in memory as a whole.

use std::fmt;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use grabd_domain::grabs::ImageKey;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::signer::{HeaderName, HeaderValue, SignedUrlOptions, Signer};
use object_store::{
    Attribute, Attributes, BackoffConfig, Certificate, ClientOptions, GetOptions, GetRange, GetResult, MultipartUpload,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, RetryConfig,
};
use reqwest::header::{CONTENT_TYPE, IF_NONE_MATCH};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use super::error::{Error, Result};
use super::name::FileName;
use super::spool::{Draft, Spool, run_blocking};
use super::upload_target::{SignedUploads, UploadTarget};
use super::uploader::{UploadError, Uploader};

/// How the object store is reached.
#[derive(Clone, Default)]
pub struct S3Options {
    /// The URL of the object store. Empty: that of AWS for the region.
    pub endpoint: String,
    /// The region. Empty: that of the environment, or `us-east-1`.
    pub region: String,
    /// The access key id and its secret. `None`: those of the environment.
    pub keys: Option<(String, String)>,
    /// Whether the bucket is named in the path of URLs, and not in their host.
    pub path_style: bool,
    /// Additional certificate authorities, as PEM.
    pub extra_roots: Vec<u8>,
    /// The AWS variables of the environment: credentials, region and roles.
    pub environment: Vec<(String, String)>,
}

/// Without the secrets.
impl fmt::Debug for S3Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint, region, path_style, .. } = self;
        f.debug_struct("S3Options")
            .field("endpoint", endpoint)
            .field("region", region)
            .field("path_style", path_style)
            .finish_non_exhaustive()
    }
}

/// The size of the parts of an upload, in bytes. S3 allows parts from 5 MiB, and 10,000 of them.
const PART_BYTES: u64 = 8 << 20;
/// Uploads at the same time. Each has one part in memory.
pub(super) const MAX_UPLOADS: usize = 4;
/// Time limit of a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long the object store may send nothing.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);
/// How long a failed request is repeated.
const RETRY_LIMIT: Duration = Duration::from_secs(20);
/// Time limit of requests other than uploads, until the first byte of the response.
const REQUEST_LIMIT: Duration = Duration::from_secs(25);
/// Time limit for giving up an upload in parts.
const ABORT_LIMIT: Duration = Duration::from_secs(5);

/// A bucket, and the prefix of all names in it.
#[derive(Clone)]
pub(super) struct Bucket {
    store: Arc<AmazonS3>,
    prefix: Arc<str>,
    spool: Spool,
    uploads: Arc<Semaphore>,
    /// What the object store does with uploads to signed URLs. Unknown until that was tried.
    signed_uploads: Arc<OnceLock<SignedUploads>>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// What the response with an object should say.
#[derive(Clone, Debug, Default)]
pub struct ResponseHeaders {
    /// `Content-Type`.
    pub content_type: String,
    /// `Content-Disposition`, if any.
    pub content_disposition: Option<String>,
}

impl Bucket {
    /// The bucket with this name. Nothing is requested from the object store.
    pub(super) fn open(bucket: &str, prefix: &str, options: &S3Options, spool: Spool) -> Result<Self> {
        // Fails only if there is one already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let fails = |error: object_store::Error| Error::Options(error.to_string());
        let S3Options { endpoint, region, keys, path_style, extra_roots, environment } = options;
        let mut client = ClientOptions::new()
            .with_timeout_disabled()
            .with_connect_timeout(CONNECT_LIMIT)
            .with_read_timeout(SILENCE_LIMIT)
            .with_allow_http(endpoint.starts_with("http://"));
        for root in Certificate::from_pem_bundle(extra_roots).map_err(fails)? {
            client = client.with_root_certificate(root);
        }
        let backoff =
            BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(2), base: 2.0 };
        let mut builder = AmazonS3Builder::new();
        for (name, value) in environment {
            let key: AmazonS3ConfigKey = name.to_ascii_lowercase().parse().map_err(fails)?;
            builder = builder.with_config(key, value);
        }
        if let Some((id, secret)) = keys {
            // A session token of the environment belongs to other keys.
            builder = AmazonS3Builder::new().with_access_key_id(id).with_secret_access_key(secret);
        }
        if !region.is_empty() {
            builder = builder.with_region(region);
        }
        if !endpoint.is_empty() {
            let endpoint = endpoint.trim_end_matches('/');
            builder = builder.with_endpoint(match (path_style, endpoint.split_once("://")) {
                (false, Some((scheme, host))) => format!("{scheme}://{bucket}.{host}"),
                (true, _) | (false, None) => endpoint.to_owned(),
            });
        }
        let store = builder
            .with_bucket_name(bucket)
            .with_virtual_hosted_style_request(!path_style)
            .with_client_options(client)
            .with_retry(RetryConfig { backoff, max_retries: 8, retry_timeout: RETRY_LIMIT })
            .build()
            .map_err(fails)?;
        let uploads = Arc::new(Semaphore::new(MAX_UPLOADS));
        let signed_uploads = Arc::default();
        Ok(Self { store: Arc::new(store), prefix: prefix.into(), spool, uploads, signed_uploads })
    }

    pub(super) const fn spool(&self) -> &Spool {
        &self.spool
    }

    fn path(&self, key: &ImageKey, name: FileName) -> Path {
        self.named(&name.path(key))
    }

    fn named(&self, name: &str) -> Path {
        match self.prefix.is_empty() {
            true => Path::from(name),
            false => Path::from(format!("{}/{name}", self.prefix)),
        }
    }

    /// Uploads a file, with retries until `until`.
    pub(super) async fn upload(&self, key: &ImageKey, name: FileName, draft: Draft, until: Instant) -> Result<()> {
        let bytes = draft.bytes();
        let unfinished = draft.end()?;
        self.upload_file(key, name, &unfinished.0, bytes, until).await
    }

    /// Uploads a file of this machine.
    async fn upload_file(
        &self,
        key: &ImageKey,
        name: FileName,
        file: &FilePath,
        bytes: u64,
        until: Instant,
    ) -> Result<()> {
        let path = self.path(key, name);
        let attributes = Attributes::from_iter([(Attribute::ContentType, name.media_type(key.format()))]);
        // Closed only with the process.
        let Ok(_permit) = timeout_at(until, self.uploads.acquire()).await.map_err(|_| Error::TooSlow)? else {
            return Err(Error::TooSlow);
        };
        let mut parts = Parts { file: file.to_owned(), at: 0, left: bytes };
        if bytes <= PART_BYTES {
            let whole = parts.next().await?.unwrap_or_default();
            let options = PutOptions { attributes, ..PutOptions::default() };
            let put = self.store.put_opts(&path, whole.into(), options);
            timeout_at(until, put).await.map_err(|_| Error::TooSlow)??;
            return Ok(());
        }
        let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
        let begin = self.store.put_multipart_opts(&path, options);
        let mut upload = timeout_at(until, begin).await.map_err(|_| Error::TooSlow)??;
        let sent = timeout_at(until, send(&mut *upload, &mut parts)).await.unwrap_or(Err(Error::TooSlow));
        if sent.is_err() {
            // The parts of an upload that is not given up are stored, and charged, although nobody can see them.
            let aborted = timeout(ABORT_LIMIT, upload.abort()).await;
            if !matches!(aborted, Ok(Ok(()))) {
                tracing::warn!("parts of a failed upload may remain until a lifecycle rule of the bucket removes them");
            }
        }
        sent
    }

    /// Stores a small file.
    pub(super) async fn put(&self, key: &ImageKey, name: FileName, content: Bytes) -> Result<()> {
        let attributes = Attributes::from_iter([(Attribute::ContentType, name.media_type(key.format()))]);
        let options = PutOptions { attributes, ..PutOptions::default() };
        in_time(self.store.put_opts(&self.path(key, name), content.into(), options)).await?;
        Ok(())
    }

    /// The size of an object in bytes, if it exists.
    pub(super) async fn size(&self, key: &ImageKey, name: FileName) -> Result<Option<u64>> {
        Ok(found(in_time(self.store.head(&self.path(key, name))).await)?.map(|object| object.size))
    }

    /// The size of an object, and its content or a range of it. `None` if it does not exist.
    pub(super) async fn read(
        &self,
        key: &ImageKey,
        name: FileName,
        range: Option<RangeInclusive<u64>>,
    ) -> Result<Option<(u64, BoxStream<'static, io::Result<Bytes>>)>> {
        let range = range.map(|range| GetRange::Bounded(*range.start()..range.end().saturating_add(1)));
        let options = GetOptions { range, ..GetOptions::default() };
        let object = found(in_time(self.store.get_opts(&self.path(key, name), options)).await)?;
        Ok(object.map(|object: GetResult| {
            let size = object.meta.size;
            (size, object.into_stream().map_err(|error| io::Error::other(Error::from(error))).boxed())
        }))
    }

    /// A URL from which anybody can read an object for a time.
    pub(super) async fn presigned(
        &self,
        key: &ImageKey,
        name: FileName,
        valid: Duration,
        headers: &ResponseHeaders,
    ) -> Result<String> {
        let ResponseHeaders { content_type, content_disposition } = headers;
        let mut query = vec![("response-content-type", content_type.as_str())];
        query.extend(content_disposition.as_deref().map(|value| ("response-content-disposition", value)));
        let options = SignedUrlOptions::new().with_query(query);
        let path = self.path(key, name);
        let signed = self.store.signed_url_opts(reqwest::Method::GET, &path, valid, &options);
        Ok(in_time(signed).await?.into())
    }

    /// Where the image with this key may be uploaded without credentials for a time, in whole seconds. `None` if the
    /// object store accepts no such uploads.
    pub(super) async fn upload_target(&self, key: &ImageKey, valid: Duration) -> Result<Option<UploadTarget>> {
        // Most object stores know the condition, and others usually ignore it.
        let is_conditional = match self.signed_uploads.get() {
            None | Some(SignedUploads::Once | SignedUploads::Repeatable) => true,
            Some(SignedUploads::Unconditional) => false,
            Some(SignedUploads::Refused) => return Ok(None),
        };
        let media_type = FileName::Image.media_type(key.format());
        self.signed_put(&self.path(key, FileName::Image), media_type, valid, is_conditional).await.map(Some)
    }

    async fn signed_put(
        &self,
        path: &Path,
        media_type: &'static str,
        valid: Duration,
        is_conditional: bool,
    ) -> Result<UploadTarget> {
        let condition = is_conditional.then_some((IF_NONE_MATCH, "*"));
        let headers: Vec<(HeaderName, &'static str)> =
            std::iter::once((CONTENT_TYPE, media_type)).chain(condition).collect();
        let options = headers.iter().fold(SignedUrlOptions::new(), |options, (name, value)| {
            options.with_signed_header(name.clone(), HeaderValue::from_static(value))
        });
        let url = in_time(self.store.signed_url_opts(reqwest::Method::PUT, path, valid, &options)).await?.into();
        let headers = headers.into_iter().map(|(name, value)| (name.to_string(), value.to_owned())).collect();
        Ok(UploadTarget { url, headers, valid: Duration::from_secs(valid.as_secs()) })
    }

    /// Finds out what the object store does with uploads to signed URLs, with an object of this name, which must not be
    /// in use. It is remembered.
    pub(super) async fn probe_signed_uploads(
        &self,
        name: &str,
        uploader: &Uploader,
    ) -> std::result::Result<SignedUploads, UploadError> {
        let support = self.try_signed_uploads(&self.named(name), uploader).await?;
        Ok(*self.signed_uploads.get_or_init(|| support))
    }

    async fn try_signed_uploads(
        &self,
        path: &Path,
        uploader: &Uploader,
    ) -> std::result::Result<SignedUploads, UploadError> {
        let failed = |error: Error| UploadError::Failed(error.to_string());
        let content = Bytes::from_static(b"grabd checks that it can sign uploads");
        let until = Instant::now() + REQUEST_LIMIT;
        let upload = async |is_conditional| {
            let target = self.signed_put(path, "text/plain", REQUEST_LIMIT, is_conditional).await.map_err(failed)?;
            match uploader.upload(&target, &content, until).await {
                Ok(()) => Ok(true),
                Err(UploadError::Refused(_)) => Ok(false),
                Err(error @ (UploadError::Unreachable(_) | UploadError::Failed(_))) => Err(error),
            }
        };
        let support = match upload(true).await? {
            true if upload(true).await? => SignedUploads::Repeatable,
            true => SignedUploads::Once,
            false if upload(false).await? => SignedUploads::Unconditional,
            false => SignedUploads::Refused,
        };
        found(in_time(self.store.delete(path)).await).map_err(failed)?;
        Ok(support)
    }

    /// Deletes an image and everything beside it. Succeeds when they do not exist.
    pub(super) async fn delete(&self, key: &ImageKey) -> Result<()> {
        // The image first: a thumbnail that is being stored is deleted again if its image is gone.
        found(in_time(self.store.delete(&self.path(key, FileName::Image))).await)?;
        let attachments: Vec<_> = FileName::attachments().map(|name| Ok(self.path(key, name))).collect();
        let deleted = self.store.delete_stream(futures::stream::iter(attachments).boxed());
        let all = deleted.map(|deleted| found(deleted.map_err(Error::from)).map(drop)).try_collect::<()>();
        timeout(REQUEST_LIMIT, all).await.map_err(|_| Error::TooSlow)?
    }

    /// Deletes one file.
    pub(super) async fn remove(&self, key: &ImageKey, name: FileName) -> Result<()> {
        found(in_time(self.store.delete(&self.path(key, name))).await).map(drop)
    }

    /// Writes, reads and deletes an object, which shows that the credentials suffice. `name` must not be in use.
    pub(super) async fn probe(&self, name: &str) -> Result<()> {
        let path = self.named(name);
        let content = Bytes::from_static(b"grabd checks that it can write, read and delete");
        in_time(self.store.put(&path, content.clone().into())).await?;
        let read = in_time(async { self.store.get(&path).await?.bytes().await }).await?;
        in_time(self.store.delete(&path)).await?;
        match read == content {
            true => Ok(()),
            false => Err(Error::ObjectStore("an object has another content than was written".to_owned())),
        }
    }
}

/// The parts of a file.
struct Parts {
    file: PathBuf,
    at: u64,
    left: u64,
}

impl Parts {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let length = self.left.min(PART_BYTES);
        if length == 0 {
            return Ok(None);
        }
        let (path, at) = (self.file.clone(), self.at);
        let part = run_blocking(move || {
            let mut file = std::fs::File::open(path)?;
            io::Seek::seek(&mut file, io::SeekFrom::Start(at))?;
            let mut part = vec![0; usize::try_from(length).unwrap_or(0)];
            file.read_exact(&mut part)?;
            Ok(Bytes::from(part))
        });
        let part = part.await?;
        self.at += length;
        self.left -= length;
        Ok(Some(part))
    }
}

async fn send(upload: &mut dyn MultipartUpload, parts: &mut Parts) -> Result<()> {
    while let Some(part) = parts.next().await? {
        upload.put_part(part.into()).await?;
    }
    upload.complete().await?;
    Ok(())
}

async fn in_time<T>(request: impl Future<Output = object_store::Result<T>>) -> Result<T> {
    Ok(timeout(REQUEST_LIMIT, request).await.map_err(|_| Error::TooSlow)??)
}

/// `None` for an object that does not exist.
fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
        Ok(found) => Ok(Some(found)),
    }
}
