//! `upload_url`: the image is uploaded before the grab is done.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use grabd_engine::clock::Clock;
use grabd_store::grabs::LostLeases;
use grabd_tests::harness::{ALLOWED, TestApp};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::secrets::check_files;

/// What is in the URLs and must not be anywhere else.
const SIGNATURE: &str = "5ecret-6f2a";

/// A bucket that records what is put into it.
struct Bucket {
    address: SocketAddr,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

struct Shared {
    statuses: Mutex<VecDeque<u16>>,
    puts: Mutex<Vec<Put>>,
    arrived: Semaphore,
    /// Answers take one of these.
    answers: Semaphore,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Put {
    method: Method,
    target: String,
    content_type: String,
    content_length: String,
    body: Bytes,
}

impl Bucket {
    /// Answers with these statuses, and then with 200. Holds its answers until they are released, if `is_held`.
    async fn start(statuses: &[u16], is_held: bool) -> Result<Self> {
        let listener = TcpListener::bind(SocketAddr::new(ALLOWED, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            statuses: Mutex::new(statuses.iter().copied().collect()),
            puts: Mutex::default(),
            arrived: Semaphore::new(0),
            answers: Semaphore::new(if is_held { 0 } else { 100 }),
        });
        let router = Router::new().fallback(take).with_state(Arc::clone(&shared));
        let task = TaskTracker::new().spawn(async move {
            // Ends when the task is aborted.
            drop(axum::serve(listener, router).await);
        });
        Ok(Self { address, shared, _task: AbortOnDropHandle::new(task) })
    }

    fn url(&self) -> String {
        format!("http://{}/shots/a%20b.png?signature={SIGNATURE}&x=~%2F", self.address)
    }

    fn puts(&self) -> Vec<Put> {
        self.shared.puts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the next request.
    async fn arrived(&self) -> Result<()> {
        timeout(Duration::from_secs(60), self.shared.arrived.acquire()).await.context("no upload")??.forget();
        Ok(())
    }
}

async fn take(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let header =
        |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let (content_type, content_length) = (header("content-type"), header("content-length"));
    let Ok(body) = axum::body::to_bytes(body, 32 << 20).await else { return StatusCode::BAD_REQUEST.into_response() };
    let put = Put { method: head.method, target: head.uri.to_string(), content_type, content_length, body };
    shared.puts.lock().unwrap_or_else(PoisonError::into_inner).push(put);
    shared.arrived.add_permits(1);
    if let Ok(answer) = shared.answers.acquire().await {
        answer.forget();
    }
    let status = shared.statuses.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or(200);
    (StatusCode::from_u16(status).unwrap_or_default(), [("location", "/elsewhere")]).into_response()
}

async fn credits(app: &TestApp) -> Result<(Value, Value)> {
    let (_, usage) = app.get("/usage", app.live()).await?;
    Ok((usage["credits"]["total"].clone(), usage["credits"]["held"].clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn image_is_uploaded_before_the_grab_is_done_and_its_url_is_a_secret() -> Result<()> {
    let bucket = Bucket::start(&[], false).await?;
    let app = TestApp::start(3, &[("webhooks.allow_http", "true")]).await?;
    let options = json!({ "upload_url": bucket.url(), "format": "webp", "max_age": 3600 });
    let (grab, image) = app.capture("/tiny", options.clone()).await?;
    let expected = Put {
        method: Method::PUT,
        target: format!("/shots/a%20b.png?signature={SIGNATURE}&x=~%2F"),
        content_type: "image/webp".to_owned(),
        content_length: image.len().to_string(),
        body: image.into(),
    };
    assert_eq!(bucket.puts(), std::slice::from_ref(&expected));
    assert_eq!(credits(&app).await?, (json!(2), json!(0)));
    let (_, list) = app.get("/grabs", app.live()).await?;
    assert!(!format!("{grab}{list}").contains(SIGNATURE), "{grab}");
    // An earlier grab never stands for an upload.
    app.capture("/tiny", options).await?;
    assert_eq!(bucket.puts().len(), 2);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_upload_fails_the_grab_uncharged() -> Result<()> {
    let bucket = Bucket::start(&[403, 307, 503], false).await?;
    let app = TestApp::start(3, &[("webhooks.allow_http", "true")]).await?;
    // Nobody listens there any more.
    let closed = TcpListener::bind(SocketAddr::new(ALLOWED, 0)).await?.local_addr()?;
    let closed = format!("http://{closed}/{SIGNATURE}");
    for (url, cause, expected) in [
        (bucket.url(), "request", "`upload_url` refused the image with HTTP 403. Is the URL still valid?"),
        (bucket.url(), "request", "`upload_url` answered with a redirect (HTTP 307), which is not followed."),
        (bucket.url(), "target", "`upload_url` answered with HTTP 503, so the image was not uploaded."),
        (closed, "target", "The image could not be uploaded: there is no connection to the host of `upload_url`."),
    ] {
        let failed = app.create_refused(json!({ "url": app.site.url("/tiny"), "upload_url": url })).await?;
        assert_eq!(failed.summary(), (500, "render_failed", cause));
        assert_eq!(failed.message, expected);
    }
    assert_eq!(bucket.puts().len(), 3);
    assert_eq!(credits(&app).await?, (json!(3), json!(0)));
    let (_, list) = app.get("/grabs", app.live()).await?;
    assert_eq!((&list["data"][0]["status"], &list["data"][0]["image_sha256"]), (&json!("failed"), &Value::Null));
    assert!(!list.to_string().contains(SIGNATURE));
    assert_eq!(app.service.store().grabs().stored_bytes(app.team.team).await?, 0);
    app.finish().await
}

/// As after a crash: the leases of all grabs are released after the upload, and before it is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn grab_whose_upload_was_not_recorded_is_uploaded_again_and_charged_once() -> Result<()> {
    let bucket = Bucket::start(&[], true).await?;
    let app = TestApp::start(3, &[("webhooks.allow_http", "true")]).await?;
    // Asynchronous: the second attempt starts a browser of its own, which may take longer than a caller waits.
    let body = json!({ "url": app.site.url("/tiny"), "upload_url": bucket.url() });
    let request = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live()).json(&body);
    let grab: Value = request.send().await?.json().await?;
    let id = grab["id"].as_str().context("an id")?;
    bucket.arrived().await?;
    let lost = app.service.store().grabs().reclaim_leases(LostLeases::All, Clock::system().now(), 10).await?;
    assert_eq!(lost.len(), 1);
    bucket.shared.answers.add_permits(1);
    bucket.arrived().await?;
    assert_eq!(credits(&app).await?, (json!(2), json!(1)), "the credit is held until the upload has ended");
    check_files(&app.data_dir(), SIGNATURE)?;
    bucket.shared.answers.add_permits(1);
    let request = app.client.get(format!("{}/grabs/{id}", app.base())).bearer_auth(app.live());
    let grab: Value = request.header("prefer", "wait=25").send().await?.json().await?;
    assert_eq!(grab["status"], "done", "{grab}");
    check_files(&app.data_dir(), SIGNATURE)?;
    assert_eq!(bucket.puts().len(), 2);
    assert_eq!(credits(&app).await?, (json!(2), json!(0)));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn upload_urls_that_are_not_public_or_not_encrypted_are_refused() -> Result<()> {
    let app = TestApp::start_without_browser(3, &[]).await?;
    for url in [
        "http://bucket.example.com/",
        "ftp://bucket.example.com/",
        "https://10.0.0.1/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://localhost/",
    ] {
        let body = json!({ "url": "https://example.com/", "upload_url": format!("{url}{SIGNATURE}") });
        for key in [app.live(), app.test()] {
            let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(key).json(&body);
            let answer: Value = request.send().await?.json().await?;
            let error = &answer["error"];
            assert_eq!(error["code"], "bad_request", "{url}: {answer}");
            let message = error["message"].as_str().context("a message")?;
            assert!(message.starts_with("`upload_url` must be an absolute https URL of a public address"), "{message}");
            assert!(!answer.to_string().contains(SIGNATURE), "{answer}");
        }
    }
    // Nothing is uploaded with test keys.
    let body = json!({ "url": "https://example.com/", "upload_url": "https://bucket.example.com/" });
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(&body);
    assert_eq!(request.send().await?.status(), 200);
    app.finish().await
}
