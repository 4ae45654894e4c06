//! Runs a tool, and sees to it that its result reaches the caller in the way of its era, or nobody.

use std::pin::Pin;
use std::sync::Arc;

use axum::response::Response;
use grabd_proto::v1::ErrorCode as Code;
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use rmcp::model::ErrorData;
use tokio::sync::oneshot;
use tracing::Instrument;

use super::era::{self, Era};
use super::message::{Id, Message, object, shortened};
use super::progress::{self, Progress};
use super::tools::{self, Asked, Desk, Outcome, Tools};
use super::{Mcp, answer};
use crate::rest::error::{Failure, INTERNAL};
use crate::rest::json::{self, Members};
use crate::rest::limits;

/// A tool at work.
pub(super) type Work = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A tool's call that can be carried out, or refused in the tool's own way.
pub(super) struct Call {
    asked: Asked,
    /// Given by those who want to hear how it goes on.
    progress_token: Option<Id>,
}

impl Call {
    /// The call that a message asks for.
    ///
    /// # Errors
    /// For a tool that there is not.
    pub(super) fn read(tools: &Tools, message: &Message<'_>) -> Result<Self, ErrorData> {
        let params = &message.params;
        let name = params.get("name").and_then(|name| json::string(name));
        let name = name.ok_or_else(|| ErrorData::invalid_params("`name` must be the name of a tool.", None))?;
        let unknown = || {
            let message = format!("Unknown tool {:?}; tools/list names those that there are.", shortened(&name));
            ErrorData::invalid_params(message, None)
        };
        let tool = tools.find(&name).ok_or_else(unknown)?;
        let asked = match params.get("arguments").map(|arguments| (arguments, object(arguments))) {
            None => tool.ask(Members::new()),
            Some((_, Some(arguments))) => tool.ask(arguments),
            Some((seen, None)) => {
                Asked::Unacceptable(format!("`arguments` must be an object; got {}.", shortened(seen.get())))
            }
        };
        let meta = params.get("_meta").and_then(|meta| object(meta));
        let progress_token = meta.and_then(|meta| Id::of(meta.get("progressToken")?));
        Ok(Self { asked, progress_token })
    }
}

/// Carries a call out.
///
/// A modern client that goes away takes its call back: the work is part of the answer, and ends with it. A legacy one has
/// to say so: until then the work goes on without it.
pub(super) async fn run(mcp: Arc<Mcp>, parts: &Parts, era: Era, message: &Message<'_>, call: Call) -> Response {
    let Call { asked, progress_token } = call;
    let token = progress_token.filter(|_| era::accepts(&parts.headers, "text/event-stream"));
    let (progress, reports) = Progress::to(token.as_ref());
    let headers = parts.headers.clone();
    let desk = Desk { mcp: Arc::clone(&mcp), headers: headers.clone() };
    let work = tools::run(desk, asked, progress);
    let work: Work = match era {
        Era::Modern => Box::pin(work),
        Era::Legacy => detached(&mcp, &headers, &message.id, work),
    };
    let finish = Finish { mcp, era, id: message.id.clone(), headers };
    match token {
        None => finish.whole(work.await),
        Some(token) => progress::answer(token, reports, work, finish).await,
    }
}

/// Work that goes on when nobody waits for it any more, until it is taken back.
fn detached(mcp: &Mcp, headers: &HeaderMap, id: &Id, work: impl Future<Output = Outcome> + Send + 'static) -> Work {
    let open = mcp.calls.open(headers, id);
    let (tell, told) = oneshot::channel();
    let work = async move {
        let outcome = tokio::select! {
            biased;
            outcome = work => outcome,
            () = open.taken_back.cancelled() => {
                Err(Failure::new(Code::RenderFailed, "The request was cancelled by its caller; nothing was charged."))
            }
        };
        let _ = tell.send(outcome);
    };
    mcp.tasks.spawn(work.in_current_span());
    Box::pin(async move { told.await.unwrap_or_else(|_| Err(Failure::new(Code::InternalError, INTERNAL))) })
}

/// What the answer to a finished call depends on.
pub(super) struct Finish {
    mcp: Arc<Mcp>,
    era: Era,
    id: Id,
    headers: HeaderMap,
}

impl Finish {
    /// The answer as a whole.
    pub(super) fn whole(&self, outcome: Outcome) -> Response {
        match outcome {
            // Clients read the status of this one, to get another token.
            Err(failure) if failure.code == Code::Unauthorized => self.mcp.failed(&self.headers, failure),
            Err(failure) => {
                let mut response = answer::result(&self.id, tools::failed(self.era, &failure), &failure.headers);
                copy(&failure.headers, RETRY_AFTER, response.headers_mut());
                response
            }
            Ok(success) => {
                let metadata = success.metadata.clone();
                answer::result(&self.id, tools::succeeded(self.era, success), &metadata)
            }
        }
    }

    /// The answer as the last message of several.
    pub(super) fn last(&self, outcome: Outcome) -> Vec<u8> {
        match outcome {
            Err(failure) => answer::text_of(&self.id, tools::failed(self.era, &failure)),
            Ok(success) => answer::text_of(&self.id, tools::succeeded(self.era, success)),
        }
    }
}

fn copy(from: &HeaderMap, name: HeaderName, to: &mut HeaderMap) {
    limits::copy(from, to);
    if let Some(value) = from.get(&name) {
        to.insert(name, value.clone());
    }
}
