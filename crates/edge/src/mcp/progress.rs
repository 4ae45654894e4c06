//! Telling on the way how a call goes on: Server-Sent Events with `notifications/progress`, and the answer as the last.

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

use super::PRIVATE;
use super::call::{Finish, Work};
use super::message::Id;
use crate::rest::{headers, limits};

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Comments in between keep proxies from closing a quiet connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Reports that wait to be sent. A reader who is slower misses some and no more.
const REPORTS: usize = 16;
/// What no call takes, in seconds: the scale that the progress is told on.
const TOTAL_S: f64 = 30.0;
/// Least step from one report to the next.
const STEP: f64 = 0.001;

/// How a call goes on.
pub(super) struct Report {
    /// Seconds since it began, greater with every report.
    seconds: f64,
    message: &'static str,
    /// What the core told with its first words.
    metadata: Option<HeaderMap>,
}

/// Where a tool reports to, if anybody wants to hear it.
pub(super) struct Progress {
    reports: Option<mpsc::Sender<Report>>,
    began: Instant,
    last: f64,
}

impl Progress {
    /// Reports for the holder of a token, or none.
    pub(super) fn to(token: Option<&Id>) -> (Self, mpsc::Receiver<Report>) {
        let (reports, receiver) = mpsc::channel(REPORTS);
        let reports = token.is_some().then_some(reports);
        (Self { reports, began: Instant::now(), last: 0.0 }, receiver)
    }

    /// Tells that it goes on.
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

/// The answer to a call: as a whole when there is nothing to tell on the way, else as events. Before the first report, the
/// core has accepted the caller and made the grab, so that nothing which has a status of its own comes after it.
pub(super) async fn answer(token: Id, mut reports: mpsc::Receiver<Report>, mut work: Work, finish: Finish) -> Response {
    let first = tokio::select! {
        biased;
        Some(report) = reports.recv() => report,
        outcome = &mut work => return finish.whole(outcome),
    };
    let metadata = first.metadata.clone().unwrap_or_default();
    let told = told(Telling { token, first: Some(first), reports, work: Some(work), finish });
    let mut response = Sse::new(told).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(PRIVATE));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    limits::copy(&metadata, headers);
    response
}

struct Telling {
    token: Id,
    first: Option<Report>,
    reports: mpsc::Receiver<Report>,
    /// None once it is done.
    work: Option<Work>,
    finish: Finish,
}

/// The work is driven by whoever reads the events, and dropped with them.
fn told(telling: Telling) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(telling, async |mut telling| {
        if let Some(first) = telling.first.take() {
            let event = event(&telling.token, &first);
            return Some((Ok(event), telling));
        }
        let work = telling.work.as_mut()?;
        let event = tokio::select! {
            biased;
            Some(report) = telling.reports.recv() => event(&telling.token, &report),
            outcome = work => {
                telling.work = None;
                message(telling.finish.last(outcome))
            }
        };
        Some((Ok(event), telling))
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
    async fn progress_grows_with_every_report_and_a_slow_reader_misses_some() {
        let token = Id::of(serde_json::from_str::<&RawValue>("\"t\"").unwrap()).unwrap();
        let (mut progress, mut reports) = Progress::to(Some(&token));
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

        let (mut nobody, mut reports) = Progress::to(None);
        nobody.report("x", None);
        assert!(reports.recv().await.is_none());
    }
}
