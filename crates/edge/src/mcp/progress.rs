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
use tokio::time::Instant;

use super::message::Id;
use super::responder::CallResponder;
use super::tools::ToolFuture;
use crate::rest::headers::{self, PRIVATE_NO_STORE};
use crate::rest::limits;

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Interval of comments that keep proxies from closing an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Capacity of the report queue. Further reports are dropped when the reader is slow.
const REPORTS: usize = 32;
/// The `total` of progress notifications in seconds. No call takes longer.
const TOTAL_S: f64 = 30.0;
/// Minimum difference between reports in seconds.
const STEP: f64 = 0.001;

/// A progress report.
pub(super) struct Report {
    /// Seconds since the call began; strictly increasing.
    seconds: f64,
    message: &'static str,
    /// Metadata of the core's response.
    metadata: Option<HeaderMap>,
}

/// Sends progress reports, if the client has asked for them.
pub(super) struct Progress {
    reports: Option<mpsc::Sender<Report>>,
    began: Instant,
    last: f64,
}

impl Progress {
    /// Without a token no reports are sent.
    pub(super) fn new(token: Option<&Id>) -> (Self, mpsc::Receiver<Report>) {
        let (reports, receiver) = mpsc::channel(REPORTS);
        let reports = token.is_some().then_some(reports);
        (Self { reports, began: Instant::now(), last: 0.0 }, receiver)
    }

    /// Whether the client has asked for reports.
    pub(super) const fn is_requested(&self) -> bool {
        self.reports.is_some()
    }

    /// Sends a report.
    pub(super) fn report(&mut self, message: &'static str, metadata: Option<&HeaderMap>) {
        let Some(reports) = &self.reports else { return };
        let seconds = (self.began.elapsed().as_secs_f64() / STEP).round() * STEP;
        self.last = seconds.max(self.last + STEP);
        let _ = reports.try_send(Report { seconds: self.last, message, metadata: metadata.cloned() });
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
    limits::copy(&metadata, headers);
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
    let Report { seconds, message, metadata: _ } = report;
    let params = Params { progress_token: token, progress: *seconds, total: TOTAL_S, message };
    self::message(headers::to_json(&Notification { jsonrpc: "2.0", method: "notifications/progress", params }))
}

fn message(json: Vec<u8>) -> Event {
    Event::default().event("message").data(String::from_utf8(json).expect("JSON is UTF-8"))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn progress_increases_strictly_and_drops_reports_for_slow_readers() {
        let token = Id::of(serde_json::from_str::<&RawValue>("\"t\"").unwrap()).unwrap();
        let (mut progress, mut reports) = Progress::new(Some(&token));
        for _ in 0..3 {
            progress.report("x", None);
        }
        tokio::time::advance(Duration::from_secs(5)).await;
        for _ in 0..100 {
            progress.report("x", None);
        }
        drop(progress);
        let mut seen = Vec::new();
        while let Some(report) = reports.recv().await {
            seen.push(report.seconds);
        }
        assert_eq!(seen.len(), REPORTS);
        assert!(seen.is_sorted_by(|a, b| a < b) && seen[0] > 0.0 && seen[3] >= 5.0, "{seen:?}");

        let (mut disabled, mut reports) = Progress::new(None);
        disabled.report("x", None);
        assert!(reports.recv().await.is_none());
    }
}
