//! Progress of calls: Server-Sent Events with `notifications/progress`. The last event is the response.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream};
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use tokio::sync::mpsc;

use super::message::Id;
use super::responder::CallResponder;
use super::tools::ToolFuture;
use crate::rest::headers::{self, PRIVATE_NO_STORE};
use crate::rest::rate_limit_headers;

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Interval of comments that keep proxies from closing an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Capacity of the report queue. Further reports are dropped when the reader is slow.
const REPORTS: usize = 32;
/// The `total` of progress notifications. What is reported follows the stages, since the time that a page takes is not known.
const TOTAL: f64 = 100.0;
/// The part of what is left of a stage by which each further report of the same stage advances.
const ADVANCE: f64 = 0.1;
/// Minimum difference between reports.
const MIN_ADVANCE: f64 = 0.001;

/// A stage of a call.
#[derive(Clone, Copy)]
pub(super) struct CallStage {
    /// The progress at its begin.
    pub(super) from: f64,
    /// The progress at the begin of the next stage.
    pub(super) until: f64,
    /// What happens, for people.
    pub(super) message: &'static str,
}

/// A progress report.
pub(super) struct Report {
    /// Of [`TOTAL`]; strictly increasing.
    progress: f64,
    message: &'static str,
    /// Metadata of the core's response.
    metadata: Option<HeaderMap>,
}

/// Sends progress reports, if the client has asked for them.
pub(super) struct Progress {
    reports: Option<mpsc::Sender<Report>>,
    last: f64,
}

impl Progress {
    /// Without a token no reports are sent.
    pub(super) fn new(token: Option<&Id>) -> (Self, mpsc::Receiver<Report>) {
        let (reports, receiver) = mpsc::channel(REPORTS);
        let reports = token.is_some().then_some(reports);
        (Self { reports, last: 0.0 }, receiver)
    }

    /// Whether the client has asked for reports.
    pub(super) const fn is_requested(&self) -> bool {
        self.reports.is_some()
    }

    /// Sends a report.
    pub(super) fn report(&mut self, stage: CallStage, metadata: Option<&HeaderMap>) {
        let Some(reports) = &self.reports else { return };
        let CallStage { from, until, message } = stage;
        let advanced = self.last + ((until - self.last) * ADVANCE).max(MIN_ADVANCE);
        self.last = if self.last < from { from } else { advanced };
        let _ = reports.try_send(Report { progress: self.last, message, metadata: metadata.cloned() });
    }
}

#[derive(Serialize)]
struct Notification<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    progress_token: &'a Id,
    progress: f64,
    total: f64,
    message: &'static str,
}

/// Responds to a call: with a single message if it ends before the first report, else with events. The first report is
/// only sent after the core has authenticated the caller and created the grab, so that no later error needs its own
/// HTTP status.
pub(super) async fn respond(
    token: Id,
    mut reports: mpsc::Receiver<Report>,
    mut work: ToolFuture,
    responder: CallResponder,
) -> Response {
    let first = tokio::select! {
        biased;
        Some(report) = reports.recv() => report,
        outcome = &mut work => return responder.response(outcome),
    };
    let metadata = first.metadata.clone().unwrap_or_default();
    let events = event_stream(EventState { token, first: Some(first), reports, work: Some(work), responder });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(PRIVATE_NO_STORE));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    rate_limit_headers::copy(&metadata, headers);
    response
}

struct EventState {
    token: Id,
    first: Option<Report>,
    reports: mpsc::Receiver<Report>,
    /// `None` when it has finished.
    work: Option<ToolFuture>,
    responder: CallResponder,
}

/// The events. The stream polls the tool, and dropping it drops the tool.
fn event_stream(state: EventState) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(state, async |mut state| {
        if let Some(first) = state.first.take() {
            let event = event(&state.token, &first);
            return Some((Ok(event), state));
        }
        let work = state.work.as_mut()?;
        let event = tokio::select! {
            biased;
            Some(report) = state.reports.recv() => event(&state.token, &report),
            outcome = work => {
                state.work = None;
                message(state.responder.last_message(outcome))
            }
        };
        Some((Ok(event), state))
    })
}

fn event(token: &Id, report: &Report) -> Event {
    let Report { progress, message, metadata: _ } = report;
    let params = Params { progress_token: token, progress: *progress, total: TOTAL, message };
    self::message(headers::to_json(&Notification { jsonrpc: "2.0", method: "notifications/progress", params }))
}

fn message(json: Vec<u8>) -> Event {
    Event::default().event("message").data(String::from_utf8(json).expect("JSON is UTF-8"))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[tokio::test]
    async fn progress_increases_strictly_and_drops_reports_for_slow_readers() {
        let token = Id::of(serde_json::from_str::<&RawValue>("\"t\"").unwrap()).unwrap();
        let (mut progress, mut reports) = Progress::new(Some(&token));
        let stage = |from: f64, until: f64| CallStage { from, until, message: "x" };
        for _ in 0..3 {
            progress.report(stage(1.0, 20.0), None);
        }
        progress.report(stage(50.0, 70.0), None);
        for _ in 0..100 {
            progress.report(stage(50.0, 70.0), None);
        }
        drop(progress);
        let mut seen = Vec::new();
        while let Some(report) = reports.recv().await {
            seen.push(report.progress);
        }
        assert_eq!(seen.len(), REPORTS);
        assert!(seen.is_sorted_by(|a, b| a < b) && seen[0] > 0.0 && seen[2] < 20.0, "{seen:?}");
        assert!((seen[3] - 50.0).abs() < 1e-9 && seen[REPORTS - 1] < 70.0, "{seen:?}");

        let (mut disabled, mut reports) = Progress::new(None);
        disabled.report(stage(1.0, 2.0), None);
        assert!(reports.recv().await.is_none());
    }
}
