//! Captures pages, one or many, synchronously or queued, and saves the images.

pub(crate) mod download;
mod keys;
mod names;
mod outcome;
mod progress;
mod targets;

use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt;
use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::api::{self, Api, Grab};
use crate::args::{CaptureArgs, ConnectionArgs};
use crate::failure::{Exit, Failure};
use crate::output;
pub(crate) use keys::Keys;
pub(crate) use names::unique_path;
use outcome::Outcome;
use progress::Progress;
use targets::{Destination, Target};
pub(crate) use targets::{complete_url, page_urls};

/// The longest long poll that the service allows, in seconds.
const LONG_POLL_S: u64 = 25;

/// How long one capture is waited for, in seconds. The service ends it earlier.
const MAX_WAIT_S: u64 = 300;

/// Captures all pages and prints the results.
pub(crate) async fn run(api: &Api, connection: &ConnectionArgs, args: &CaptureArgs) -> Result<Exit, Failure> {
    let targets = targets::resolve(args)?;
    // Also those that are skipped count, so that a repeated run has the same keys.
    let keys = Keys::new(args.idempotency_key.as_ref(), targets.all.len() + targets.skipped)?;
    let progress = Progress::start(targets.all.len() + targets.skipped, targets.skipped, connection.quiet, api);
    let mut outcomes = futures::stream::iter(targets.all)
        .map(|target| capture_one(api, args, &keys, target))
        .buffer_unordered(usize::from(args.jobs));
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    let mut exit = Exit::Done;
    loop {
        let outcome = tokio::select! {
            outcome = outcomes.next() => outcome,
            _ = &mut interrupted => {
                exit = Exit::Interrupted;
                break;
            }
        };
        let Some(outcome) = outcome else { break };
        progress.record(&outcome);
        print(connection, &outcome)?;
        let Some(failure) = &outcome.failure else { continue };
        if exit == Exit::Done {
            exit = failure.exit();
        }
        // All other pages would fail in the same way, so they are not tried.
        if failure.is_fatal() {
            exit = failure.exit();
            break;
        }
    }
    progress.finish(exit);
    Ok(exit)
}

/// Captures one page and saves its image.
async fn capture_one(api: &Api, args: &CaptureArgs, keys: &Keys, target: Target) -> Outcome {
    let started = Instant::now();
    let (mut grab, mut saved) = (None, Saved::default());
    let failure = try_capture(api, (args, keys), &target, &mut grab, &mut saved).await.err();
    let Saved { file, slices } = saved;
    Outcome { url: target.url, grab, file, slices, failure, duration: started.elapsed() }
}

/// Where the image and its slices were saved.
#[derive(Default)]
struct Saved {
    file: Option<PathBuf>,
    slices: Vec<PathBuf>,
}

async fn try_capture(
    api: &Api,
    (args, keys): (&CaptureArgs, &Keys),
    target: &Target,
    grab: &mut Option<Grab>,
    saved: &mut Saved,
) -> Result<(), Failure> {
    let is_queued = args.queued || args.wait.is_some();
    let created = create(api, keys, request(args, target), is_queued).await?;
    let created = match args.wait {
        Some(seconds) if !created.has_ended() => wait(api, created, seconds).await?,
        Some(_) | None => created,
    };
    let grab = grab.insert(created);
    match &*grab.fields.status {
        "done" => {}
        "failed" => return Err(Failure::CaptureFailed(grab.error())),
        // Queued without `--wait`.
        _ => return Ok(()),
    }
    let stored = save(api, grab, &target.destination).await;
    *saved = stored.map_err(|cause| Failure::NotSaved { id: grab.fields.id.to_string(), cause: Box::new(cause) })?;
    Ok(())
}

async fn save(api: &Api, grab: &Grab, destination: &Destination) -> Result<Saved, Failure> {
    match destination {
        Destination::Nowhere => Ok(Saved::default()),
        Destination::Stdout => download::to_stdout(api, grab).await.map(|()| Saved::default()),
        Destination::File(path) => {
            download::to_file(api, grab, path).await?;
            Ok(Saved { file: Some(path.clone()), slices: download::attachments(api, grab, path).await? })
        }
    }
}

/// Creates the capture. All retries use the same Idempotency-Key, so that it is created and charged once.
async fn create(api: &Api, keys: &Keys, body: Value, is_queued: bool) -> Result<Grab, Failure> {
    let call = api.call(Method::POST, "grabs").header("idempotency-key", &keys.of(&body))?;
    let call = if is_queued { call.header("prefer", "respond-async")? } else { call };
    Grab::from_response(api, call.body(body).send().await?)
}

/// Creates one capture with this request body, and waits until it has ended.
pub(crate) async fn create_one(api: &Api, keys: &Keys, body: Value) -> Result<Grab, Failure> {
    let created = create(api, keys, body, false).await?;
    if created.has_ended() { Ok(created) } else { wait(api, created, MAX_WAIT_S).await }
}

/// The request body. Options that are not set are left out, so that the service's defaults apply.
fn request(args: &CaptureArgs, target: &Target) -> Value {
    let mut body = Map::new();
    match &target.html {
        Some(html) => {
            body.insert("html".to_owned(), json!(html));
            body.extend(args.html_url.iter().map(|url| ("base_url".to_owned(), json!(url))));
        }
        None => _ = body.insert("url".to_owned(), json!(target.url)),
    }
    body.extend(target.format.map(|format| ("format".to_owned(), json!(format.as_str()))));
    body.extend(args.options.0.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    Value::Object(body)
}

/// Waits until a capture has ended.
async fn wait(api: &Api, grab: Grab, seconds: u64) -> Result<Grab, Failure> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut grab = grab;
    while !grab.has_ended() {
        let left = until.duration_since(Instant::now()).as_secs();
        if left == 0 {
            return Err(Failure::WaitTimedOut {
                id: grab.fields.id.into_owned(),
                status: grab.fields.status.into_owned(),
                seconds,
            });
        }
        let call = api.call(Method::GET, &format!("grabs/{}", grab.fields.id)).waiting_until(until);
        let call = call.header("prefer", &format!("wait={}", left.min(LONG_POLL_S)))?;
        grab = match call.send().await {
            Ok(response) => Grab::from_response(api, response)?,
            // What the service asked for was waited for already.
            Err(failure) if api::is_rate_limited(&failure) => continue,
            Err(failure) => return Err(failure),
        };
    }
    Ok(grab)
}

/// Prints the result to stdout: with `--json` an object, otherwise the file names, or the id of a queued capture.
fn print(connection: &ConnectionArgs, outcome: &Outcome) -> Result<(), Failure> {
    if connection.json {
        return output::line(&outcome.to_json().to_string());
    }
    match (&outcome.failure, &outcome.file, &outcome.grab) {
        (None, Some(file), _) => {
            std::iter::once(file).chain(&outcome.slices).try_for_each(|path| output::line(&path.display().to_string()))
        }
        (None, None, Some(grab)) if !grab.has_ended() => output::line(&grab.fields.id),
        (Some(_), ..) | (None, None, _) => Ok(()),
    }
}
