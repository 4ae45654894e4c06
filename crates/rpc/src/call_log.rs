//! Records answered calls, so that a team can look them up: all that were refused, and those that create or change something.
//! Successful reads would push out everything else.

use std::sync::Arc;
use std::time::Instant;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Caller;
use grabd_engine::Core;
use grabd_engine::grabs::CreateRequest;
use grabd_engine::requests::{self, AnsweredRequest};
use grabd_proto::called_as::{self, CalledAs};
use grabd_proto::correlation;
use grabd_proto::reason::{self, REQUEST_ID};
use grabd_proto::v1::batch_result::Result as BatchResult;
use grabd_proto::v1::{self, ErrorCode, GrabStatus};
use http::HeaderMap;
use parking_lot::Mutex;
use tonic::{Request, Status};

/// What stands for the method of calls that were not made over HTTP.
const GRPC: &str = "gRPC";
/// The call by which an interface counts a request that it answers itself.
const TAKE_REQUEST: &str = "/grabd.v1.AccessService/TakeRequest";

const OK: u16 = 200;
const CREATED: u16 = 201;
const ACCEPTED: u16 = 202;
const NO_CONTENT: u16 = 204;

/// The status over REST of calls that are recorded when they succeed. `None`: they are not, because they only read.
fn success_status(path: &str) -> Option<u16> {
    match path.strip_prefix("/grabd.v1.")? {
        "GrabService/CreateGrab"
        | "GrabService/BatchCreateGrabs"
        | "GrabService/CaptureGrab"
        | "WebhookService/UpdateWebhook"
        | "WebhookService/RotateWebhookSecret"
        | "MonitorService/UpdateMonitor"
        | "MonitorService/AcceptBaseline"
        | "ProxyService/UpdateProxy"
        | "SiteService/CancelSite" => Some(OK),
        "WebhookService/CreateWebhook"
        | "MonitorService/BatchCreateMonitors"
        | "MonitorService/CreateMonitor"
        | "MonitorService/CreateMonitorFeed"
        | "ProxyService/CreateProxy" => Some(CREATED),
        "WebhookService/TestWebhook" | "WebhookService/RedeliverWebhook" | "SiteService/CreateSite" => Some(ACCEPTED),
        "GrabService/DeleteGrab"
        | "WebhookService/DeleteWebhook"
        | "MonitorService/DeleteMonitor"
        | "MonitorService/DeleteMonitorFeed"
        | "ProxyService/DeleteProxy"
        | "SiteService/DeleteSite" => Some(NO_CONTENT),
        _ => None,
    }
}

/// A call that is not answered yet.
pub(crate) struct CallLog {
    arrived_at: Timestamp,
    started: Instant,
    request_id: Option<String>,
    rpc: String,
    called: Option<CalledAs>,
    refusal: Option<String>,
    /// What the service says about the call.
    pub(crate) notes: CallNotes,
}

/// What a service says about a call that it answers. It is an extension of the request.
#[derive(Clone, Default)]
pub(crate) struct CallNotes(Arc<Mutex<Notes>>);

#[derive(Clone, Default)]
struct Notes {
    host: Option<String>,
    options: Vec<&'static str>,
    grab: Option<String>,
    /// The status over REST, if it is not that of the call.
    status: Option<u16>,
    /// The error of a call that succeeded over gRPC.
    error: Option<(String, String)>,
}

impl CallLog {
    /// Begins with the metadata of a call.
    pub(crate) fn begin(core: &Core, headers: &HeaderMap, rpc: &str) -> Self {
        let request_id = headers.get(REQUEST_ID).and_then(|id| correlation::request_id(id.to_str().ok()?));
        Self {
            arrived_at: core.now(),
            started: Instant::now(),
            request_id: request_id.map(str::to_owned),
            rpc: rpc.to_owned(),
            called: CalledAs::of(headers),
            refusal: called_as::refusal(headers),
            notes: CallNotes::default(),
        }
    }

    /// Records the call by the metadata of its response, which has the status if the call failed.
    pub(crate) fn end(self, core: &Core, caller: Caller, response: &HeaderMap) {
        let status = Status::from_header_map(response).filter(|status| status.code() != tonic::Code::Ok);
        self.end_with(core, caller, status.as_ref());
    }

    /// Records the call, which failed with a status or succeeded.
    pub(crate) fn end_with(self, core: &Core, caller: Caller, failed: Option<&Status>) {
        let Self { arrived_at, started, request_id, rpc, called, refusal, notes } = self;
        let Notes { host, options, grab, status, error } = notes.0.lock().clone();
        let (status, error) = match failed {
            Some(status) => {
                let code = reason::code(status);
                (reason::http_status(code), Some((reason::name(code), status.message().to_owned())))
            }
            None => match (success_status(&rpc), refusal.filter(|_| rpc == TAKE_REQUEST)) {
                (_, Some(message)) => {
                    let code = ErrorCode::BadRequest;
                    (reason::http_status(code), Some((reason::name(code), message)))
                }
                (Some(usual), None) => (status.unwrap_or(usual), error),
                (None, None) => return,
            },
        };
        let CalledAs { method, path } = called.unwrap_or(CalledAs { method: GRPC, path: rpc });
        let answered = AnsweredRequest {
            caller,
            arrived_at,
            latency: started.elapsed(),
            request_id,
            method,
            path,
            status,
            error,
            host,
            options,
            grab: grab.and_then(|id| id.parse().ok()),
        };
        requests::record(core, answered);
    }
}

impl CallNotes {
    /// The notes of a call that passed the gate.
    pub(crate) fn of<T>(request: &Request<T>) -> Self {
        request.extensions().get().cloned().unwrap_or_default()
    }

    /// Notes what a create asks for.
    pub(crate) fn asked(&self, request: &CreateRequest) {
        let mut notes = self.0.lock();
        notes.host = requests::host(request);
        notes.options = requests::option_names([request]);
    }

    /// Notes what the creates of a batch ask for. The host is that of the first one.
    pub(crate) fn asked_all(&self, requests: &[CreateRequest]) {
        let mut notes = self.0.lock();
        notes.host = requests.first().and_then(requests::host);
        notes.options = requests::option_names(requests);
    }

    /// Notes the grab that answers a create.
    pub(crate) fn answered(&self, grab: &v1::Grab) {
        let mut notes = self.0.lock();
        notes.grab = Some(grab.id.clone());
        match grab.status() {
            GrabStatus::Failed => {
                let code = grab.failure_reason();
                notes.status = Some(reason::http_status(code));
                notes.error = Some((reason::name(code), grab.error_message.clone().unwrap_or_default()));
            }
            GrabStatus::Pending | GrabStatus::Processing => notes.status = Some(ACCEPTED),
            GrabStatus::Done | GrabStatus::Unspecified => {}
        }
    }

    /// Notes the results of a batch. If its first capture meets a limit that all others would meet as well, the error is the
    /// response over REST.
    pub(crate) fn answered_all(&self, results: &[v1::BatchResult], is_stopped: bool) {
        let mut refused = results.iter().filter_map(|of| match &of.result {
            Some(BatchResult::Error(error)) => Some(error),
            Some(BatchResult::Grab(_)) | None => None,
        });
        let (count, total) = (refused.clone().count(), results.len());
        let Some(first) = refused.next() else { return };
        let (code, message) = (first.code(), &first.message);
        let mut notes = self.0.lock();
        let is_response = is_stopped && count == total;
        notes.status = is_response.then(|| reason::http_status(code));
        let message = match is_response || total == 1 {
            true => message.clone(),
            false => format!("{count} of {total} captures were refused. The first: {message}"),
        };
        notes.error = Some((reason::name(code), message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_create_or_change_something_are_recorded_when_they_succeed() {
        for (rpc, expected) in [
            ("/grabd.v1.GrabService/CreateGrab", Some(OK)),
            ("/grabd.v1.GrabService/DeleteGrab", Some(NO_CONTENT)),
            ("/grabd.v1.WebhookService/CreateWebhook", Some(CREATED)),
            ("/grabd.v1.GrabService/GetGrab", None),
            ("/grabd.v1.GrabService/WatchGrab", None),
            ("/grabd.v1.WebhookService/ListWebhooks", None),
            ("/grabd.v1.AccessService/TakeRequest", None),
            ("/other", None),
        ] {
            assert_eq!(success_status(rpc), expected, "{rpc}");
        }
    }

    #[test]
    fn batch_reports_the_first_error_and_how_many_there_are() {
        let error = |code: ErrorCode| {
            let error = v1::BatchError { code: code.into(), message: "No.".into(), ..v1::BatchError::default() };
            v1::BatchResult { result: Some(BatchResult::Error(error)), replayed: false }
        };
        let done = || v1::BatchResult { result: Some(BatchResult::Grab(Box::default())), replayed: false };
        let noted = |results: &[v1::BatchResult], is_stopped| {
            let notes = CallNotes::default();
            notes.answered_all(results, is_stopped);
            let notes = notes.0.lock().clone();
            (notes.status, notes.error.map(|(code, message)| format!("{code}: {message}")))
        };
        assert_eq!(noted(&[done()], false), (None, None));
        let some = noted(&[done(), error(ErrorCode::BadRequest)], false);
        assert_eq!(some, (None, Some("bad_request: 1 of 2 captures were refused. The first: No.".to_owned())));
        let all = noted(&[error(ErrorCode::CreditsExhausted)], true);
        assert_eq!(all, (Some(402), Some("credits_exhausted: No.".to_owned())));
    }
}
