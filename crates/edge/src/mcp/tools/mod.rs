//! The tools. `tools.json` has their descriptions and schemas and is served unchanged.

mod create_grab;
mod get_grab;
mod get_pricing;
mod get_usage;
mod grab_output;
mod hints;
mod list_grabs;

use std::sync::Arc;

use grabd_options::TABLE;
use grabd_proto::v1::access_service_client::AccessServiceClient;
use grabd_proto::v1::{ErrorCode, GetPricingRequest, ListGrabsRequest, TakeRequestRequest};
use http::HeaderMap;
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Value, json};

use super::Mcp;
use super::era::Era;
use super::methods::result_meta;
use super::progress::Progress;
use crate::rest::call::{self, CoreResponse};
use crate::rest::error::{ApiError, status_and_code};
use crate::rest::fields::Fields;
use crate::rest::json::Members;
use crate::rest::options;

const TOOLS_JSON: &str = include_str!("tools.json");
/// Maximum size of a result in bytes. The rest of the response stays within the documented 900,000 bytes.
const MAX_RESULT_BYTES: usize = 890_000;

/// The tools in the order of their list.
pub(super) struct Tools(Vec<Tool>);

impl Tools {
    /// Parses `tools.json`, and adds the capture options to the arguments of `create_grab`.
    pub(super) fn read() -> Self {
        let mut tools: Vec<Value> = serde_json::from_str(TOOLS_JSON).expect("tools.json is a list");
        let create = tools.iter_mut().find(|tool| tool["name"] == "create_grab").expect("tools.json has create_grab");
        let arguments = &mut create["inputSchema"]["properties"];
        let of_capture = TABLE.iter().filter(|option| option.in_mcp).map(|option| {
            let schema = serde_json::to_value(options::schema(option)).expect("a schema is JSON");
            (option.name.to_owned(), schema)
        });
        let others = std::mem::take(arguments.as_object_mut().expect("the arguments are an object"));
        *arguments = Value::Object(of_capture.chain(others).collect());
        Self(serde_json::from_value(tools.into()).expect("tools.json is a valid list of tools"))
    }

    /// All tools, always in the same order.
    pub(super) fn list(&self) -> Vec<Tool> {
        self.0.clone()
    }

    /// The tool with a name.
    pub(super) fn find(&self, name: &str) -> Option<ToolEntry<'_>> {
        let tool = self.0.iter().find(|tool| tool.name == name)?;
        Some(ToolEntry { tool, parser: ARGS_PARSERS.iter().find(|(known, _)| *known == name)?.1 })
    }
}

type ArgsParser = fn(&mut Fields<'_>) -> ToolArgs;

/// The argument parsers of the tools.
const ARGS_PARSERS: [(&str, ArgsParser); 5] = [
    ("create_grab", create_grab::read),
    ("get_grab", get_grab::read),
    ("list_grabs", list_grabs::read),
    ("get_usage", get_usage::read),
    ("get_pricing", get_pricing::read),
];

/// A tool and its argument parser.
pub(super) struct ToolEntry<'a> {
    tool: &'a Tool,
    parser: ArgsParser,
}

impl ToolEntry<'_> {
    /// Parses arguments. Unknown names are rejected here; the core validates the values.
    pub(super) fn parse_args(&self, arguments: Members<'_>) -> ToolArgs {
        let properties = self.tool.input_schema.get("properties").and_then(Value::as_object);
        let known: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let mut fields = Fields::from(arguments);
        if let Some(name) = fields.unknown_member(&known) {
            let name = super::message::shorten(name);
            let takes = match known.is_empty() {
                true => "no arguments".to_owned(),
                false => known.join(", "),
            };
            return ToolArgs::Invalid(format!("`{name}` is no argument of {}, which takes {takes}.", self.tool.name));
        }
        (self.parser)(&mut fields)
    }
}

/// Parsed arguments of a tool.
#[derive(Debug)]
pub(super) enum ToolArgs {
    CreateGrab(Box<create_grab::CreateGrabArgs>),
    GetGrab(get_grab::GetGrabArgs),
    ListGrabs(ListGrabsRequest),
    GetUsage,
    GetPricing(GetPricingRequest),
    /// Arguments that are not forwarded to the core, with the error message.
    Invalid(String),
}

/// Context of a call: the server state, and the headers of the request.
pub(super) struct ToolContext {
    pub(super) mcp: Arc<Mcp>,
    pub(super) headers: HeaderMap,
}

/// Output of a tool.
#[derive(Debug)]
pub(super) struct ToolOutput {
    /// Content that matches the output schema.
    structured: Value,
    /// An image and a link to it, or nothing.
    blocks: Vec<ContentBlock>,
    /// Metadata of the core's response.
    pub(super) metadata: HeaderMap,
}

/// Result of a tool.
pub(super) type ToolResult = Result<ToolOutput, ApiError>;

/// Runs a tool.
pub(super) async fn run(context: ToolContext, args: ToolArgs, progress: Progress) -> ToolResult {
    match args {
        ToolArgs::CreateGrab(args) => create_grab::run(&context, *args, progress).await,
        ToolArgs::GetGrab(args) => get_grab::run(&context, args).await,
        ToolArgs::ListGrabs(args) => list_grabs::run(&context, args).await,
        ToolArgs::GetUsage => get_usage::run(&context).await,
        ToolArgs::GetPricing(args) => get_pricing::run(&context, args).await,
        ToolArgs::Invalid(message) => {
            let metadata = context.take_request().await?;
            let mut failure = ApiError::new(ErrorCode::BadRequest, message);
            failure.headers.extend(metadata);
            Err(failure)
        }
    }
}

impl ToolContext {
    /// Counts a call that no other service counts. Returns the rate limit metadata of the core.
    async fn take_request(&self) -> Result<HeaderMap, ApiError> {
        let mut core = AccessServiceClient::new(self.mcp.transport.clone());
        let sent = call::request(&self.headers, TakeRequestRequest {}, call::QUERY_DEADLINE);
        let CoreResponse { message: _, metadata } =
            call::send(&self.headers, call::QUERY_DEADLINE, core.take_request(sent)).await?;
        Ok(metadata)
    }

    fn internal(&self, cause: &'static str) -> ApiError {
        ApiError::internal(cause, call::request_id(&self.headers))
    }
}

/// The result of a successful call: the structured content, and the same as text for clients that only read text.
pub(super) fn success_result(era: Era, success: ToolOutput) -> CallToolResult {
    let ToolOutput { structured, mut blocks, metadata: _ } = success;
    blocks.push(ContentBlock::text(structured.to_string()));
    let mut result = CallToolResult::success(blocks);
    result.structured_content = Some(structured);
    let mut result = for_era(era, result);
    // Only the image can be large.
    if size(&result) > MAX_RESULT_BYTES {
        result.content.retain(|block| block.as_image().is_none());
    }
    result
}

/// The result of a failed call: the error code and message, and a hint for the agent.
pub(super) fn error_result(era: Era, failure: &ApiError) -> CallToolResult {
    let (_, code) = status_and_code(failure.code);
    let error = json!({
        "error": { "code": code, "message": failure.message, "cause": grabd_proto::reason::cause_name(failure.cause) },
        "hint": hints::for_code(failure.code),
    });
    for_era(era, CallToolResult::error(vec![ContentBlock::text(error.to_string())]))
}

fn for_era(era: Era, mut result: CallToolResult) -> CallToolResult {
    match era {
        Era::Modern => result.meta = result_meta(),
        Era::Legacy => result.result_type = None,
    }
    result
}

fn size(result: &CallToolResult) -> usize {
    serde_json::to_vec(result).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests;
