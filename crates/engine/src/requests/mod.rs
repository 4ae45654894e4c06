//! The API requests of a team, for its members: all that were refused, and those that created or changed something.
//!
//! The gate of the gRPC services records a request when it is answered. Requests wait in a queue in memory with a bound for
//! each team, and are written in batches by a loop of its own, so no request waits for the database. What does not fit is
//! counted instead of recorded.

mod list;
mod queue;
mod write;
mod written;

use std::collections::BTreeSet;
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::without_seen;
use grabd_domain::ids::GrabId;
pub use grabd_store::requests::{ApiRequest, REQUESTS_KEPT, RequestFilter, RequestOutcome};
use url::Url;

use crate::grabs::CreateRequest;
use crate::random;
use crate::service::Core;

pub use list::{MAX_REQUESTS, RequestPage, find, list};
pub(crate) use queue::RequestQueue;
pub use queue::WAITING_PER_TEAM;
pub(crate) use write::run;
pub use write::{RequestsPerDay, requests_per_day};

/// Maximum length of the texts of a recorded request, in characters.
const PATH_CHARS: usize = 120;
const HOST_CHARS: usize = 100;
const MESSAGE_CHARS: usize = 250;
const OPTIONS_CHARS: usize = 250;

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct AnsweredRequest {
    /// Who made it: a key or an app. Requests of users are not recorded.
    pub caller: Caller,
    /// When it arrived.
    pub arrived_at: Timestamp,
    /// Time until the response.
    pub latency: Duration,
    /// The request id of the response.
    pub request_id: Option<String>,
    /// The HTTP method, or the protocol.
    pub method: &'static str,
    /// The path without the query, or what was called.
    pub path: String,
    /// The HTTP status that the response has over REST.
    pub status: u16,
    /// The code and the message of the error, if there is one.
    pub error: Option<(String, String)>,
    /// The host of the page to capture.
    pub host: Option<String>,
    /// The names of the options of a create.
    pub options: Vec<&'static str>,
    /// The grab that it created.
    pub grab: Option<GrabId>,
}

/// The host of the page that a create asks for. `None` if it is no URL.
pub fn host(request: &CreateRequest) -> Option<String> {
    Url::parse(request.capture.url.as_deref()?).ok()?.host_str().map(str::to_owned)
}

/// The names of the options that some of these creates ask for, without the URL.
pub fn option_names<'a>(requests: impl IntoIterator<Item = &'a CreateRequest>) -> Vec<&'static str> {
    let given: BTreeSet<_> = requests.into_iter().flat_map(|request| request.capture.given()).collect();
    given.into_iter().filter(|name| *name != "url").collect()
}

/// Records a request, unless too many are waiting to be written.
pub fn record(core: &Core, request: AnsweredRequest) {
    let AnsweredRequest { caller, arrived_at, latency, request_id, method, path, status, error, host, options, grab } =
        request;
    let Caller { team, environment, principal } = caller;
    let (code, message) = error.unzip();
    let recorded = core.requests.push(ApiRequest {
        id: random::api_request_id(core.now()),
        team,
        at: arrived_at,
        environment,
        principal,
        request_id,
        method: method.to_owned(),
        path: shorten(path, PATH_CHARS),
        status,
        code,
        message: message.map(|message| shorten(without_seen(&message).into_owned(), MESSAGE_CHARS)),
        host: host.map(|host| shorten(host, HOST_CHARS)),
        options: names(options),
        grab,
        latency_ms: u32::try_from(latency.as_millis()).unwrap_or(u32::MAX),
        omitted: 0,
    });
    if !recorded {
        core.metrics.requests_not_recorded("queue_full", 1);
    }
}

/// As many of the names as are recorded.
fn names(options: Vec<&'static str>) -> Vec<String> {
    let mut left = OPTIONS_CHARS;
    let fits = |name: &&'static str| {
        let fits = name.len() < left;
        left = left.saturating_sub(name.len() + 1);
        fits
    };
    options.into_iter().take_while(fits).map(str::to_owned).collect()
}

fn shorten(text: String, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some(_) => text.chars().take(chars.saturating_sub(1)).chain(['…']).collect(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_names_are_bounded() {
        assert_eq!(shorten("é".repeat(5), 5), "ééééé");
        assert_eq!(shorten("é".repeat(6), 5), "éééé…");
        assert_eq!(names(vec!["full_page", "width"]), ["full_page", "width"]);
        let many = names(vec!["full_page"; 1000]);
        assert_eq!((many.len(), many.join(" ").len()), (25, 249));
    }
}
