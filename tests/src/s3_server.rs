//! An S3 server in the process of a test. It stores objects in files, checks signatures, and fails when a test asks
//! for it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::error_handling::HandleError;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use grabd_images::{ImageOptions, Location, S3Options};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::leftovers::files_below;

const BUCKET: &str = "grabd-test";
const PREFIX: &str = "some/images";
const ACCESS_KEY: &str = "the-access-key";
const SECRET_KEY: &str = "the-secret-key-of-the-object-store";

/// A running server with an empty bucket. It stops when dropped.
pub struct S3Server {
    address: SocketAddr,
    root: tempfile::TempDir,
    faults: Arc<Faults>,
    _task: AbortOnDropHandle<()>,
}

/// How the server fails.
#[derive(Clone)]
enum Fault {
    /// Responds with this status and S3 error code.
    Status(StatusCode, &'static str),
    /// Processes the request.
    Pass,
    /// Processes the request when the test allows it.
    Pause(Arc<Pause>),
}

/// What all requests with a method meet, until the outage ends.
#[derive(Clone, Copy, Debug)]
pub enum Outage {
    /// This status and S3 error code.
    Status(StatusCode, &'static str),
    /// They are processed when the outage has ended.
    Pause,
}

/// The requests that fail.
#[derive(Default)]
struct Faults {
    /// The next ones with a method.
    next: Mutex<Vec<(Method, usize, Fault)>>,
    /// All with a method.
    outage: watch::Sender<Option<(Method, Outage)>>,
    /// The number of requests that met an outage.
    outages: AtomicUsize,
}

/// A request that the server has received, but not processed.
#[derive(Default)]
pub struct Pause {
    reached: Notify,
    released: Notify,
}

impl Pause {
    /// Completes when the server has received the request.
    pub async fn reached(&self) {
        self.reached.notified().await;
    }

    /// Lets the server process the request.
    pub fn release(&self) {
        self.released.notify_one();
    }
}

impl S3Server {
    /// Starts a server with an empty bucket.
    ///
    /// # Errors
    /// If it cannot listen or write.
    pub async fn start() -> Result<Self> {
        let root = tempfile::tempdir()?;
        std::fs::create_dir(root.path().join(BUCKET))?;
        let files = FileSystem::new(root.path()).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let failed = |error: s3s::HttpError| async move {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:?}")).into_response()
        };
        let faults = Arc::<Faults>::default();
        let router = Router::new()
            .fallback_service(HandleError::new(service.build(), failed))
            .layer(middleware::from_fn_with_state(Arc::clone(&faults), inject));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = TaskTracker::new().spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Ok(Self { address, root, faults, _task: AbortOnDropHandle::new(task) })
    }

    /// The address of the server.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The origin of the server.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The URL of the images.
    pub fn url(&self) -> String {
        format!("s3://{BUCKET}/{PREFIX}")
    }

    /// The settings of a service that stores its images here.
    pub fn settings(&self) -> [(&'static str, String); 4] {
        [
            ("images.url", self.url()),
            ("images.endpoint", self.endpoint()),
            ("images.access_key_id", ACCESS_KEY.to_owned()),
            ("images.secret_access_key", SECRET_KEY.to_owned()),
        ]
    }

    /// The options of an image storage in this bucket, with unfinished files in `scratch`.
    pub fn options(&self, scratch: &Path) -> ImageOptions {
        let location = Location::Bucket { bucket: BUCKET.to_owned(), prefix: PREFIX.to_owned() };
        let s3 = S3Options {
            endpoint: self.endpoint(),
            keys: Some((ACCESS_KEY.to_owned(), SECRET_KEY.to_owned())),
            path_style: true,
            ..S3Options::default()
        };
        ImageOptions { scratch: scratch.to_owned(), location, fallback: None, s3, shared: None }
    }

    /// The names of all objects, without the prefix.
    ///
    /// # Errors
    /// If an object is outside of the prefix, or cannot be read.
    pub fn objects(&self) -> Result<BTreeSet<String>> {
        let all = files_below(&self.root.path().join(BUCKET))?;
        let name = |path: &String| path.strip_prefix(PREFIX)?.strip_prefix('/').map(str::to_owned);
        all.iter().map(|path| name(path).with_context(|| format!("{path} is outside of the prefix"))).collect()
    }

    /// The content of an object, whose name is without the prefix.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn object(&self, name: &str) -> Result<Vec<u8>> {
        Ok(std::fs::read(self.root.path().join(BUCKET).join(PREFIX).join(name))?)
    }

    /// The number of files of unfinished uploads in parts.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn unfinished_parts(&self) -> Result<usize> {
        let names: Vec<_> = std::fs::read_dir(self.root.path())?.collect::<Result<_, _>>()?;
        Ok(names.iter().filter(|entry| entry.file_name().to_string_lossy().contains(".upload_id-")).count())
    }

    /// Fails the next `count` requests with this method.
    pub fn fail_next(&self, count: usize, method: Method, status: StatusCode, code: &'static str) {
        self.add(method, count, Fault::Status(status, code));
    }

    /// Processes the next request with this method, before the failures that are added later.
    pub fn pass_next(&self, method: Method) {
        self.add(method, 1, Fault::Pass);
    }

    /// Pauses the next request with this method.
    pub fn pause_next(&self, method: Method) -> Arc<Pause> {
        let pause = Arc::<Pause>::default();
        self.add(method, 1, Fault::Pause(Arc::clone(&pause)));
        pause
    }

    /// Begins an outage for all requests with this method.
    pub fn begin_outage(&self, method: Method, outage: Outage) {
        self.faults.outage.send_replace(Some((method, outage)));
    }

    /// Ends the outage.
    pub fn end_outage(&self) {
        self.faults.outage.send_replace(None);
    }

    /// Number of requests that met an outage.
    pub fn outage_count(&self) -> usize {
        self.faults.outages.load(Ordering::Relaxed)
    }

    /// Number of failures that were asked for and have not happened.
    pub fn failures_left(&self) -> usize {
        self.faults.lock().iter().map(|(_, count, _)| count).sum()
    }

    fn add(&self, method: Method, count: usize, fault: Fault) {
        self.faults.lock().push((method, count, fault));
    }
}

impl Faults {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Method, usize, Fault)>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, method: &Method) -> Option<Fault> {
        let mut all = self.lock();
        let (_, count, fault) = all.iter_mut().find(|(of, count, _)| of == method && *count > 0)?;
        *count -= 1;
        Some(fault.clone())
    }
}

async fn inject(State(faults): State<Arc<Faults>>, request: Request, next: Next) -> Response {
    let outage = faults.outage.borrow().clone().filter(|(method, _)| method == request.method());
    if let Some((_, outage)) = outage {
        faults.outages.fetch_add(1, Ordering::Relaxed);
        match outage {
            Outage::Status(status, code) => return refuse(request, status, code).await,
            // The server lives as long as its outages.
            Outage::Pause => drop(faults.outage.subscribe().wait_for(Option::is_none).await),
        }
    }
    match faults.take(request.method()) {
        None | Some(Fault::Pass) => next.run(request).await,
        Some(Fault::Status(status, code)) => refuse(request, status, code).await,
        Some(Fault::Pause(pause)) => {
            pause.reached.notify_one();
            pause.released.notified().await;
            next.run(request).await
        }
    }
}

async fn refuse(request: Request, status: StatusCode, code: &'static str) -> Response {
    // So that the client reads the response before the connection is closed.
    drop(to_bytes(request.into_body(), usize::MAX).await);
    let body = format!("<Error><Code>{code}</Code><Message>a test asked for it</Message></Error>");
    (status, Body::from(body)).into_response()
}
