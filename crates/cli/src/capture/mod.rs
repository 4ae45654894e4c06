//! Captures pages: one or many, at once or queued, into files.

pub(crate) mod download;
mod names;
mod progress;
mod targets;

use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt;
use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::api::{Api, Grab};
use crate::args::{Capture, Connection};
use crate::failure::{Exit, Failure};
use crate::output;
use progress::Progress;
use targets::{Destination, Target};

/// The longest that the service lets somebody wait for a change, in seconds.
const LONG_POLL_S: u64 = 25;

/// What came of one page.
#[derive(Debug)]
struct Outcome {
    url: String,
    /// The capture, where there is one.
    grab: Option<Grab>,
    /// Where its picture went.
    file: Option<PathBuf>,
    failure: Option<Failure>,
    took: Duration,
}

/// Captures everything that was asked for, and says what came of it.
pub(crate) async fn run(api: &Api, connection: &Connection, asked: &Capture) -> Result<Exit, Failure> {
    let targets = targets::of(asked)?;
    if asked.idempotency_key.is_some() && targets.all.len() > 1 {
        return Err(Failure::Usage("--idempotency-key belongs to one capture; there are several".to_owned()));
    }
    let progress = Progress::start(targets.all.len() + targets.passed_over, targets.passed_over, connection.quiet, api);
    let mut outcomes = futures::stream::iter(targets.all)
        .map(|target| one(api, asked, target))
        .buffer_unordered(usize::from(asked.jobs));
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
        progress.tell(&outcome);
        tell(connection, &outcome)?;
        let Some(failure) = &outcome.failure else { continue };
        if exit == Exit::Done {
            exit = failure.exit();
        }
        // What holds for everything is told once, and the rest is not tried.
        if failure.is_final() {
            exit = failure.exit();
            break;
        }
    }
    progress.end(exit);
    Ok(exit)
}

/// One page, from the request to the file.
async fn one(api: &Api, asked: &Capture, target: Target) -> Outcome {
    let began = Instant::now();
    let (mut grab, mut file) = (None, None);
    let failure = captured(api, asked, &target, &mut grab, &mut file).await.err();
    Outcome { url: target.url, grab, file, failure, took: began.elapsed() }
}

async fn captured(
    api: &Api,
    asked: &Capture,
    target: &Target,
    grab: &mut Option<Grab>,
    file: &mut Option<PathBuf>,
) -> Result<(), Failure> {
    let is_queued = asked.queued || asked.wait.is_some();
    let made = create(api, asked, target, is_queued).await?;
    let made = match asked.wait {
        Some(seconds) if !made.has_ended() => wait(api, made, seconds).await?,
        Some(_) | None => made,
    };
    let made = grab.insert(made);
    match made.read.status.as_str() {
        "done" => {}
        "failed" => {
            let message = made.read.error_message.clone().unwrap_or_else(|| "The capture failed.".to_owned());
            return Err(Failure::NotCaptured { message });
        }
        // Queued, and nobody wants to wait.
        _ => return Ok(()),
    }
    *file = match &target.destination {
        Destination::Nowhere => None,
        Destination::Stdout => {
            download::to_stdout(api, made).await?;
            None
        }
        Destination::File(path) => {
            download::to_file(api, made, path).await?;
            Some(path.clone())
        }
    };
    Ok(())
}

/// Asks for the capture. One key for all tries: however often it is asked, it is made and charged once.
async fn create(api: &Api, asked: &Capture, target: &Target, is_queued: bool) -> Result<Grab, Failure> {
    let key = asked.idempotency_key.clone().unwrap_or_else(fresh_key);
    let call = api.call(Method::POST, "grabs").header("idempotency-key", &key)?;
    let call = if is_queued { call.header("prefer", "respond-async")? } else { call };
    Grab::of(api, call.body(request(asked, target)).send().await?)
}

#[expect(clippy::disallowed_methods, reason = "the command line is its own root: nobody above it makes ids")]
fn fresh_key() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The body of the request: only what was asked, so that the service's own defaults hold.
fn request(asked: &Capture, target: &Target) -> Value {
    let mut body = Map::new();
    body.insert("url".to_owned(), json!(target.url));
    let numbers = [("width", asked.width), ("height", asked.height), ("delay_ms", asked.delay_ms)];
    for (name, value) in numbers {
        body.extend(value.map(|value| (name.to_owned(), json!(value))));
    }
    body.extend(target.format.map(|format| ("format".to_owned(), json!(format.as_str()))));
    body.extend(asked.full_page.then(|| ("full_page".to_owned(), json!(true))));
    body.extend(asked.selector.as_ref().map(|selector| ("selector".to_owned(), json!(selector))));
    Value::Object(body)
}

/// Waits until a capture has ended.
async fn wait(api: &Api, grab: Grab, seconds: u64) -> Result<Grab, Failure> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut grab = grab;
    while !grab.has_ended() {
        let left = until.duration_since(Instant::now()).as_secs();
        if left == 0 {
            return Err(Failure::NotYet { id: grab.read.id, status: grab.read.status, seconds });
        }
        let call = api.call(Method::GET, &format!("grabs/{}", grab.read.id));
        let call = call.header("prefer", &format!("wait={}", left.min(LONG_POLL_S)))?;
        grab = Grab::of(api, call.send().await?)?;
    }
    Ok(grab)
}

/// What programs read: an object for each page with `--json`, else the file's name, or the id of what is queued.
fn tell(connection: &Connection, outcome: &Outcome) -> Result<(), Failure> {
    if connection.json {
        return output::line(&described(outcome).to_string());
    }
    match (&outcome.failure, &outcome.file, &outcome.grab) {
        (None, Some(file), _) => output::line(&file.display().to_string()),
        (None, None, Some(grab)) if !grab.has_ended() => output::line(&grab.read.id),
        (Some(_), ..) | (None, None, _) => Ok(()),
    }
}

/// The capture as the API tells it, with the file, or with why there is none.
fn described(outcome: &Outcome) -> Value {
    let mut object = match &outcome.grab {
        Some(Grab { whole: Value::Object(whole), .. }) => whole.clone(),
        Some(_) | None => Map::from_iter([("target_url".to_owned(), json!(outcome.url))]),
    };
    if let Some(file) = &outcome.file {
        object.insert("file".to_owned(), json!(file.display().to_string()));
    }
    if let Some(failure) = &outcome.failure {
        let error = json!({ "code": failure.code(), "message": failure.told() });
        object.insert("error".to_owned(), error);
    }
    Value::Object(object)
}
