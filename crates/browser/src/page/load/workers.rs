//! The workers of the page: their requests are watched like those of the page, and their answers are waited for.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::network;
use chromiumoxide::cdp::browser_protocol::target::{FilterEntry, SetAutoAttachParams, TargetFilter};
use chromiumoxide::cdp::js_protocol::runtime::{EvaluateParams, RunIfWaitingForDebuggerParams};
use tokio::time::Instant;

use crate::page::context::CaptureContext;
use crate::page::tab::Tab;

/// A worker that answers within this time was not computing anything.
const PROMPT: Duration = Duration::from_millis(30);

/// The command that reports the workers of a page or of a worker. They wait until their requests are watched. Frames of
/// other sites are left out: only steps send commands to them, to those that they name.
pub(crate) fn report_workers() -> SetAutoAttachParams {
    SetAutoAttachParams {
        flatten: Some(true),
        filter: Some(TargetFilter::new(vec![FilterEntry { exclude: None, r#type: Some("worker".to_owned()) }])),
        ..SetAutoAttachParams::new(true, true)
    }
}

/// Watches the requests of a worker that has just been started, and lets it run: first `program`, if there is one.
pub(in crate::page) async fn watch(tab: &Tab, session: String, program: Option<&str>) {
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
    if let Some(program) = program {
        let evaluate = EvaluateParams { silent: Some(true), ..EvaluateParams::new(program) };
        client.send(on, &evaluate).await;
    }
    client.send(on, &RunIfWaitingForDebuggerParams::default()).await;
}

/// The result of waiting for workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) enum WorkerState {
    /// All of them answered at once.
    Idle,
    /// Some of them were computing. They may have sent a result to the page.
    WereBusy,
}

/// Waits until all running workers have answered, which they do when they are not computing anything, or until the time is
/// up.
pub(in crate::page) async fn wait_until_idle(context: &CaptureContext<'_>, limit: Duration) -> WorkerState {
    let began = Instant::now();
    for session in context.tab.watch.worker_sessions() {
        let left = limit.saturating_sub(began.elapsed());
        let question = EvaluateParams { silent: Some(true), ..EvaluateParams::new("0") };
        let answer = context.tab.client.call_as::<_, serde_json::Value>(left, Some(&session), question).await;
        if let Err(error) = answer {
            tracing::debug!(%error, "a worker did not answer");
        }
    }
    match began.elapsed() <= PROMPT {
        true => WorkerState::Idle,
        false => WorkerState::WereBusy,
    }
}
