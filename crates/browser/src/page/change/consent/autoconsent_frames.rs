//! The frames of a page in which autoconsent runs, and the exchange of messages with it.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::dom::{BackendNodeId, DescribeNodeParams, ResolveNodeParams};
use chromiumoxide::cdp::browser_protocol::page::{CreateIsolatedWorldParams, GetFrameTreeParams};
use chromiumoxide::cdp::js_protocol::runtime::{
    CallFunctionOnParams, EvaluateParams, ExecutionContextId, RemoteObjectId, TimeDelta,
};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::json;
use tokio::time::Instant;

use super::message::Message;
use super::rules;
use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;

/// The name of the isolated world. Pages cannot see it.
const WORLD: &str = "grabd consent";

/// The number of frames in which dialogs are searched for, the main frame included. Dialogs in frames are in one of the
/// first, and pages with many ads have dozens.
const MAX_FRAMES: usize = 9;

/// The time limit of a call. The page's process answers these.
const CALL_LIMIT: Duration = Duration::from_secs(2);

/// The time limit of a script of a rule in the world of the page.
const EVAL_LIMIT: Duration = Duration::from_millis(500);

/// Maximum length of such a script. The longest has two thousand characters.
const MAX_EVAL_CHARS: usize = 16 << 10;

/// The frames of one document and its subframes.
pub(super) struct ConsentFrames {
    frames: Vec<ConsentFrame>,
    /// The end of all calls, however many of them a busy page leaves without an answer.
    until: Instant,
}

struct ConsentFrame {
    frame: String,
    loader: String,
    /// The isolated world. `None` if it could not be created, or is gone.
    world: Option<ExecutionContextId>,
    is_main: bool,
    /// The vendor whose dialog this frame is.
    dialog: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTreeResult {
    frame_tree: FrameTree,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame: FrameInfo,
    #[serde(default)]
    child_frames: Vec<FrameTree>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameInfo {
    id: String,
    loader_id: String,
    url: String,
}

#[derive(Deserialize)]
struct Evaluated<T> {
    result: Evaluation<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluation<T> {
    value: Option<T>,
    object_id: Option<RemoteObjectId>,
}

#[derive(Deserialize)]
struct Described {
    node: Node,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    backend_node_id: BackendNodeId,
}

#[derive(Deserialize)]
struct Resolved {
    object: Evaluation<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    execution_context_id: ExecutionContextId,
}

impl ConsentFrames {
    pub(super) fn new(until: Instant) -> Self {
        Self { frames: Vec::new(), until }
    }

    /// Whether the time is up.
    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Starts autoconsent in frames in which it does not run yet.
    pub(super) async fn start(&mut self, context: &CaptureContext<'_>) -> Result<(), CaptureError> {
        let tree: Option<FrameTreeResult> =
            call(context, self.until, CALL_LIMIT, GetFrameTreeParams::default()).await?;
        let Some(FrameTreeResult { frame_tree }) = tree else { return Ok(()) };
        let mut frames = vec![(frame_tree, true)];
        while let Some((FrameTree { frame, child_frames }, is_main)) = frames.pop() {
            frames.extend(child_frames.into_iter().rev().map(|child| (child, false)));
            let FrameInfo { id, loader_id, url } = frame;
            let is_known = self.frames.iter().any(|known| known.frame == id && known.loader == loader_id);
            let is_web = url.starts_with("https://") || url.starts_with("http://");
            if is_known || !(is_main || is_web) {
                continue;
            }
            // A frame with another document takes the place of the one before.
            self.frames.retain(|known| known.frame != id);
            if self.frames.len() >= MAX_FRAMES {
                return Ok(());
            }
            let world = start_in(context, self.until, &id, is_main).await?;
            self.frames.push(ConsentFrame { frame: id, loader: loader_id, world, is_main, dialog: None });
        }
        Ok(())
    }

    /// Fetches the messages of all frames. Scripts that are to be run in the world of the page are run.
    pub(super) async fn exchange(&mut self, context: &CaptureContext<'_>) -> Result<Vec<Message>, CaptureError> {
        let (mut all, until) = (Vec::new(), self.until);
        for frame in &mut self.frames {
            let Some(world) = frame.world else { continue };
            // A script may be followed by another one, without any time passing.
            for _ in 0..4 {
                let messages: Option<Vec<Message>> =
                    evaluate(context, until, world, "consent.take()".to_owned()).await?;
                let Some(messages) = messages else {
                    frame.world = None;
                    // The frame was removed with the dialog in it, before its last message was fetched.
                    if let Some(cmp) = frame.dialog.take().filter(|_| !frame.is_main) {
                        all.push(Message::done(cmp));
                    }
                    break;
                };
                let mut has_run = false;
                for message in messages {
                    match (&message.id, &message.code) {
                        (Some(id), Some(code)) if message.kind == "eval" && code.len() <= MAX_EVAL_CHARS => {
                            let result = run(context, until, frame.is_main, world, code).await?;
                            let answer = json!({ "type": "evalResp", "id": id, "result": result });
                            let answer = format!("autoconsentReceiveMessage({answer}); 0");
                            let _: Option<u32> = evaluate(context, until, world, answer).await?;
                            has_run = true;
                        }
                        (_, _) => {
                            if message.kind == "popupFound" {
                                frame.dialog.clone_from(&message.cmp);
                            }
                            all.push(message);
                        }
                    }
                }
                if !has_run {
                    break;
                }
            }
        }
        Ok(all)
    }

    /// Hides what the selectors match in the main frame, and what looks like a dialog about consent. Returns whether there
    /// was any.
    pub(super) async fn hide_dialogs(
        &self,
        context: &CaptureContext<'_>,
        selectors: &[&str],
    ) -> Result<bool, CaptureError> {
        let Some(world) = self.frames.iter().find(|frame| frame.is_main).and_then(|frame| frame.world) else {
            return Ok(false);
        };
        let expression = format!("consent.hideDialogs({})", json!(selectors));
        Ok(evaluate(context, Instant::now() + CALL_LIMIT, world, expression).await? == Some(true))
    }
}

/// Creates the isolated world of a frame and starts autoconsent in it.
async fn start_in(
    context: &CaptureContext<'_>,
    until: Instant,
    frame: &str,
    is_main: bool,
) -> Result<Option<ExecutionContextId>, CaptureError> {
    let create = CreateIsolatedWorldParams {
        world_name: Some(WORLD.to_owned()),
        ..CreateIsolatedWorldParams::new(frame.to_owned())
    };
    let created: Option<Created> = call(context, until, CALL_LIMIT, create).await?;
    let Some(Created { execution_context_id: world }) = created else { return Ok(None) };
    let started: Option<u32> = evaluate(context, until, world, rules::script(is_main).to_owned()).await?;
    Ok(started.map(|_| world))
}

/// Runs a script of a rule in the world of the page, and returns whether its result is true.
async fn run(
    context: &CaptureContext<'_>,
    until: Instant,
    is_main: bool,
    world: ExecutionContextId,
    code: &str,
) -> Result<bool, CaptureError> {
    if is_main {
        let params = EvaluateParams {
            await_promise: Some(true),
            return_by_value: Some(true),
            silent: Some(true),
            timeout: Some(TimeDelta::new(EVAL_LIMIT.as_secs_f64() * 1000.0)),
            ..EvaluateParams::new(format!("(async () => !!(await ({code})))()"))
        };
        let result: Option<Evaluated<bool>> = call(context, until, EVAL_LIMIT, params).await?;
        return Ok(result.and_then(|result| result.result.value).unwrap_or(false));
    }
    // The world of a page in a frame has no known id, but the browser resolves nodes in it.
    let document = EvaluateParams { context_id: Some(world), silent: Some(true), ..EvaluateParams::new("document") };
    let document: Option<Evaluated<IgnoredAny>> = call(context, until, EVAL_LIMIT, document).await?;
    let Some(document) = document.and_then(|document| document.result.object_id) else { return Ok(false) };
    let describe = DescribeNodeParams { object_id: Some(document), ..DescribeNodeParams::default() };
    let Some(Described { node }) = call(context, until, EVAL_LIMIT, describe).await? else { return Ok(false) };
    let resolve = ResolveNodeParams { backend_node_id: Some(node.backend_node_id), ..ResolveNodeParams::default() };
    let resolved: Option<Resolved> = call(context, until, EVAL_LIMIT, resolve).await?;
    let Some(object_id) = resolved.and_then(|resolved| resolved.object.object_id) else { return Ok(false) };
    let params = CallFunctionOnParams {
        object_id: Some(object_id),
        await_promise: Some(true),
        return_by_value: Some(true),
        silent: Some(true),
        ..CallFunctionOnParams::new(format!("async () => !!(await ({code}))"))
    };
    let result: Option<Evaluated<bool>> = call(context, until, EVAL_LIMIT, params).await?;
    Ok(result.and_then(|result| result.result.value).unwrap_or(false))
}

/// The value of an expression. `None` if it throws, or if the world is gone.
async fn evaluate<T: DeserializeOwned>(
    context: &CaptureContext<'_>,
    until: Instant,
    world: ExecutionContextId,
    expression: String,
) -> Result<Option<T>, CaptureError> {
    let params = EvaluateParams {
        context_id: Some(world),
        return_by_value: Some(true),
        silent: Some(true),
        ..EvaluateParams::new(expression)
    };
    let result: Option<Evaluated<T>> = call(context, until, CALL_LIMIT, params).await?;
    Ok(result.and_then(|result| result.result.value))
}

/// Calls the browser. `None` if the frame is gone, or too busy to answer.
async fn call<C: chromiumoxide::Command, T: DeserializeOwned>(
    context: &CaptureContext<'_>,
    until: Instant,
    limit: Duration,
    command: C,
) -> Result<Option<T>, CaptureError> {
    let left = until.saturating_duration_since(Instant::now()).min(context.remaining());
    match context.tab.client.call_as(limit.min(left), Some(&context.tab.session), command).await {
        Ok(result) => Ok(Some(result)),
        Err(CallError::Closed) => Err(CallError::Closed.into()),
        Err(error) => {
            tracing::debug!(%error, "a frame does not answer");
            Ok(None)
        }
    }
}
