//! The workers of the page: their requests are watched like those of the page, and their results are waited for.

use std::sync::LazyLock;
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::network;
use chromiumoxide::cdp::browser_protocol::target::{FilterEntry, SetAutoAttachParams, TargetFilter};
use chromiumoxide::cdp::js_protocol::runtime::{EvaluateParams, RunIfWaitingForDebuggerParams};
use serde::Deserialize;
use tokio::time::Instant;

use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::frame_calls::Evaluated;
use crate::page::load::frame_drawing::Frames;
use crate::page::script::{millis, without_comments};
use crate::page::tab::Tab;

/// A worker that answers within this time was not doing anything.
const PROMPT: Duration = Duration::from_millis(30);

/// How much longer than what they wait for the workers may take to answer.
const ANSWER_TIME: Duration = Duration::from_millis(200);

/// The program that each worker runs first. It replaces functions for timers and frames by ones that count what is pending.
static PROGRAM: LazyLock<String> =
    LazyLock::new(|| format!("({})();", without_comments(&[include_str!("../scripts/worker.js")])));

/// What a worker does next.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Work {
    /// It has requested a frame, for which it waits.
    awaits_frame: bool,
}

/// The command that reports the workers of a page or of a worker. They wait until their requests are watched. Worklets are
/// reported because they wait, too, and would never run otherwise (Chromium 156). Frames of other sites are left out: only
/// steps send commands to them, to those that they name.
pub(crate) fn report_workers() -> SetAutoAttachParams {
    let kinds = ["worker", "worklet"].map(|kind| FilterEntry { exclude: None, r#type: Some(kind.to_owned()) });
    SetAutoAttachParams {
        flatten: Some(true),
        filter: Some(TargetFilter::new(kinds.to_vec())),
        ..SetAutoAttachParams::new(true, true)
    }
}

/// Watches the requests of a worker that has just been started, and lets it run. `clock` is the program that gives it a fixed
/// clock, if the capture asks for one: it has its own way to wait for timers.
pub(in crate::page) async fn watch(tab: &Tab, session: String, clock: Option<&str>) {
    let (client, on) = (&tab.client, Some(session.as_str()));
    client.route(&session, tab.watch.worker_sink(session.clone()));
    // Response bodies are never requested, so none are buffered.
    let network = network::EnableParams {
        max_total_buffer_size: Some(1),
        max_resource_buffer_size: Some(1),
        ..Default::default()
    };
    client.send(on, &network).await;
    client.send(on, &report_workers()).await;
    let program = clock.unwrap_or(&PROGRAM);
    client.send(on, &EvaluateParams { silent: Some(true), ..EvaluateParams::new(program) }).await;
    client.send(on, &RunIfWaitingForDebuggerParams::default()).await;
}

/// The result of waiting for workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) enum WorkerState {
    /// All of them answered at once.
    Idle,
    /// Some of them were computing, or had timers. They may have sent a result to the page, or have drawn.
    WereBusy,
}

/// Waits until all running workers have answered, which they do when they are not computing anything and no timer is due within
/// `limit`, or until the time is up.
///
/// # Errors
/// [`CaptureError::NeedsTimer`] if a worker draws, and the browser draws on demand only.
pub(in crate::page) async fn wait_until_idle(
    context: &CaptureContext<'_>,
    limit: Duration,
) -> Result<WorkerState, CaptureError> {
    let began = Instant::now();
    let draws_frames = matches!(context.tab.frames, Frames::Timer);
    for session in context.tab.watch.worker_sessions() {
        let left = limit.saturating_sub(began.elapsed());
        let question = format!("globalThis[Symbol.for('grabd-work')]?.({}, {draws_frames})", millis(left));
        let question = EvaluateParams {
            await_promise: Some(true),
            return_by_value: Some(true),
            silent: Some(true),
            ..EvaluateParams::new(question)
        };
        let answer_limit = (limit + ANSWER_TIME).saturating_sub(began.elapsed());
        let answer: Result<Evaluated<Work>, _> =
            context.tab.client.call_as(answer_limit, Some(&session), question).await;
        match answer.map(Evaluated::into_value) {
            // What a worker draws by frames on demand may be missing in all frames, or the browser may lose one.
            Ok(Some(Work { awaits_frame: true })) if !draws_frames => return Err(CaptureError::NeedsTimer),
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "a worker did not answer"),
        }
    }
    Ok(match began.elapsed() <= PROMPT {
        true => WorkerState::Idle,
        false => WorkerState::WereBusy,
    })
}
