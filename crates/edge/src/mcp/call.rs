//! Runs a tool and responds in the format of the client's era.

use std::sync::Arc;

use axum::response::Response;
use grabd_proto::called_as;
use grabd_proto::v1::ErrorCode as Code;
use http::HeaderMap;
use http::request::Parts;
use rmcp::model::ErrorData;
use tokio::sync::oneshot;
use tracing::Instrument;

use super::era::{self, Era};
use super::message::{Id, RpcRequest, object, shorten};
use super::progress::{self, Progress};
use super::responder::CallResponder;
use super::state::Mcp;
use super::tools::{self, ToolArgs, ToolContext, ToolFuture, ToolResult, Tools};
use crate::rest::error::{ApiError, INTERNAL_MESSAGE};
use crate::rest::json::{self, Members};

/// A parsed `tools/call` request. Invalid arguments are reported as a tool error when it runs.
pub(super) struct Call {
    tool: String,
    args: ToolArgs,
    /// Sent by clients that want progress notifications.
    progress_token: Option<Id>,
}

impl Call {
    /// Parses a request.
    ///
    /// # Errors
    /// For an unknown tool.
    pub(super) fn read(tools: &Tools, message: &RpcRequest<'_>) -> Result<Self, ErrorData> {
        let params = &message.params;
        let name = params.get("name").and_then(|name| json::string(name));
        let name = name.ok_or_else(|| ErrorData::invalid_params("`name` must be the name of a tool.", None))?;
        let unknown = || {
            let message = format!("Unknown tool {:?}; tools/list has the available tools.", shorten(&name));
            ErrorData::invalid_params(message, None)
        };
        let tool = tools::find(tools, &name).ok_or_else(unknown)?;
        let args = match params.get("arguments").map(|arguments| (arguments, object(arguments))) {
            None => tool.parse_args(Members::new()),
            Some((_, Some(arguments))) => tool.parse_args(arguments),
            Some((seen, None)) => {
                ToolArgs::Invalid(format!("`arguments` must be an object; got {}.", shorten(seen.get())))
            }
        };
        let meta = params.get("_meta").and_then(|meta| object(meta));
        let progress_token = meta.and_then(|meta| Id::of(meta.get("progressToken")?));
        Ok(Self { tool: name, args, progress_token })
    }
}

/// Runs a call.
///
/// When a modern client disconnects, its call is cancelled: the tool runs inside the response future and is dropped
/// with it. A legacy client must send `notifications/cancelled`; until then the tool runs in its own task.
pub(super) async fn run(mcp: Arc<Mcp>, parts: &Parts, era: Era, message: &RpcRequest<'_>, call: Call) -> Response {
    let Call { tool, args, progress_token } = call;
    let token = progress_token.filter(|_| era::accepts(&parts.headers, "text/event-stream"));
    let (progress, reports) = Progress::new(token.as_ref());
    let mut headers = parts.headers.clone();
    called_as::set(&mut headers, "MCP", &tool);
    let context = ToolContext { mcp: Arc::clone(&mcp), headers: headers.clone() };
    let work = tools::run(context, args, progress);
    let work: ToolFuture = match era {
        Era::Modern => Box::pin(work),
        Era::Legacy => spawn_detached(&mcp, &headers, &message.id, work),
    };
    let responder = CallResponder { mcp, era, id: message.id.clone(), headers };
    match token {
        None => responder.response(work.await),
        Some(token) => progress::respond(token, reports, work, responder).await,
    }
}

/// Runs a tool in its own task, which continues after a disconnect until the call is cancelled.
fn spawn_detached(
    mcp: &Mcp,
    headers: &HeaderMap,
    id: &Id,
    work: impl Future<Output = ToolResult> + Send + 'static,
) -> ToolFuture {
    let call = mcp.open_calls.register(headers, id);
    let (sender, receiver) = oneshot::channel();
    let work = async move {
        let outcome = tokio::select! {
            biased;
            outcome = work => outcome,
            () = call.cancelled.cancelled() => {
                Err(ApiError::new(Code::RenderFailed, "The request was cancelled by its caller; nothing was charged."))
            }
        };
        let _ = sender.send(outcome);
    };
    mcp.tasks.spawn(work.in_current_span());
    Box::pin(
        async move { receiver.await.unwrap_or_else(|_| Err(ApiError::new(Code::InternalError, INTERNAL_MESSAGE))) },
    )
}
