//! The frames of a page in which autoconsent runs, and the exchange of messages with it.

use std::time::Duration;

use chromiumoxide::cdp::js_protocol::runtime::{CallFunctionOnParams, EvaluateParams, TimeDelta};
use serde_json::json;
use tokio::time::Instant;

use super::message::Message;
use super::rules;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::frame_calls::{Evaluated, FrameCalls, FrameInfo, FrameTree, OnTimeout};
use crate::page::load::watch::World;

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
    world: Option<World>,
    is_main: bool,
    /// The vendor whose dialog this frame is.
    dialog: Option<String>,
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
        let calls = calls(context, self.until);
        let Some(frame_tree) = calls.within(CALL_LIMIT).tree().await? else { return Ok(()) };
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
            let world = start_in(calls, id.clone(), is_main).await?;
            self.frames.push(ConsentFrame { frame: id, loader: loader_id, world, is_main, dialog: None });
        }
        Ok(())
    }

    /// Fetches the messages of all frames. Scripts that are to be run in the world of the page are run.
    pub(super) async fn exchange(&mut self, context: &CaptureContext<'_>) -> Result<Vec<Message>, CaptureError> {
        let (mut all, calls) = (Vec::new(), calls(context, self.until));
        for frame in &mut self.frames {
            let Some(world) = frame.world else { continue };
            // A script may be followed by another one, without any time passing.
            for _ in 0..4 {
                let messages: Option<Vec<Message>> =
                    calls.within(CALL_LIMIT).evaluate(world, "consent.take()".to_owned()).await?;
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
                            let result = run(calls, frame.is_main, world, code).await?;
                            let answer = json!({ "type": "evalResp", "id": id, "result": result });
                            let answer = format!("autoconsentReceiveMessage({answer}); 0");
                            let _: Option<u32> = calls.within(CALL_LIMIT).evaluate(world, answer).await?;
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
        // Also if the time for autoconsent is over.
        let calls = calls(context, Instant::now() + CALL_LIMIT);
        Ok(calls.evaluate(world, expression).await? == Some(true))
    }
}

/// How frames are called, until this time.
fn calls<'a>(context: &CaptureContext<'a>, until: Instant) -> FrameCalls<'a> {
    FrameCalls {
        tab: context.tab,
        session: &context.tab.session,
        world_name: WORLD,
        until: until.min(context.deadline),
        on_timeout: OnTimeout::Skip,
    }
}

/// Creates the isolated world of a frame and starts autoconsent in it.
async fn start_in(calls: FrameCalls<'_>, frame: String, is_main: bool) -> Result<Option<World>, CaptureError> {
    let Some(world) = calls.within(CALL_LIMIT).world(frame).await? else { return Ok(None) };
    let script = rules::script(is_main).to_owned();
    let started: Option<u32> = calls.within(CALL_LIMIT).evaluate(world, script).await?;
    Ok(started.map(|_| world))
}

/// Runs a script of a rule in the world of the page, and returns whether its result is true.
async fn run(calls: FrameCalls<'_>, is_main: bool, world: World, code: &str) -> Result<bool, CaptureError> {
    if is_main {
        let params = EvaluateParams {
            await_promise: Some(true),
            return_by_value: Some(true),
            silent: Some(true),
            timeout: Some(TimeDelta::new(EVAL_LIMIT.as_secs_f64() * 1000.0)),
            ..EvaluateParams::new(format!("(async () => !!(await ({code})))()"))
        };
        let result: Option<Evaluated<bool>> = calls.within(EVAL_LIMIT).call(params).await?;
        return Ok(result.and_then(Evaluated::into_value).unwrap_or(false));
    }
    // The world of a page in a frame has no known id, but the browser resolves nodes in it.
    let document = calls.within(EVAL_LIMIT).object(world, "document".to_owned()).await?;
    let Some(document) = document else { return Ok(false) };
    let Some(node) = calls.within(EVAL_LIMIT).describe(document).await? else { return Ok(false) };
    let resolved = calls.within(EVAL_LIMIT).resolve(node.backend_node_id, None).await?;
    let Some(object_id) = resolved else { return Ok(false) };
    let params = CallFunctionOnParams {
        object_id: Some(object_id),
        await_promise: Some(true),
        return_by_value: Some(true),
        silent: Some(true),
        ..CallFunctionOnParams::new(format!("async () => !!(await ({code}))"))
    };
    let result: Option<Evaluated<bool>> = calls.within(EVAL_LIMIT).call(params).await?;
    Ok(result.and_then(Evaluated::into_value).unwrap_or(false))
}
