//! The tools: what each takes and gives. `tools.json` describes them to agents and is served as it is.

mod create_grab;
mod get_grab;
mod get_pricing;
mod get_usage;
mod hints;
mod list_grabs;
mod shown;

use std::sync::Arc;

use grabd_proto::v1::access_service_client::AccessServiceClient;
use grabd_proto::v1::{ErrorCode, GetPricingRequest, ListGrabsRequest, TakeRequestRequest};
use http::HeaderMap;
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Value, json};

use super::Mcp;
use super::era::Era;
use super::methods::signed;
use super::progress::Progress;
use crate::rest::call::{self, Answer};
use crate::rest::error::{Failure, row};
use crate::rest::fields::Fields;
use crate::rest::json::Members;

const DESCRIBED: &str = include_str!("tools.json");
/// What a result may have in bytes; the rest of the answer has room beside it.
const RESULT_BYTES: usize = 890_000;

/// The tools as they are listed.
pub(super) struct Tools(Vec<Tool>);

impl Tools {
    /// From the description.
    pub(super) fn read() -> Self {
        Self(serde_json::from_str(DESCRIBED).expect("tools.json describes tools"))
    }

    /// All of them, always in the same order.
    pub(super) fn list(&self) -> Vec<Tool> {
        self.0.clone()
    }

    /// The tool of that name.
    pub(super) fn find(&self, name: &str) -> Option<Known<'_>> {
        let tool = self.0.iter().find(|tool| tool.name == name)?;
        Some(Known { tool, reads: READERS.iter().find(|(known, _)| *known == name)?.1 })
    }
}

type Reads = fn(&mut Fields<'_>) -> Asked;

/// Who reads the arguments of which tool.
const READERS: [(&str, Reads); 5] = [
    ("create_grab", create_grab::read),
    ("get_grab", get_grab::read),
    ("list_grabs", list_grabs::read),
    ("get_usage", get_usage::read),
    ("get_pricing", get_pricing::read),
];

/// A tool that there is.
pub(super) struct Known<'a> {
    tool: &'a Tool,
    reads: Reads,
}

impl Known<'_> {
    /// What these arguments ask of it. Wrong values are the core's to judge; names that no value belongs to are not.
    pub(super) fn ask(&self, arguments: Members<'_>) -> Asked {
        let properties = self.tool.input_schema.get("properties").and_then(Value::as_object);
        let known: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let mut fields = Fields::from(arguments);
        if let Some(name) = fields.other_than(&known) {
            let name = super::message::shortened(name);
            let takes = match known.is_empty() {
                true => "no arguments".to_owned(),
                false => known.join(", "),
            };
            return Asked::Unacceptable(format!("`{name}` is no argument of {}, which takes {takes}.", self.tool.name));
        }
        (self.reads)(&mut fields)
    }
}

/// What a call asks for.
#[derive(Debug)]
pub(super) enum Asked {
    CreateGrab(Box<create_grab::Asked>),
    GetGrab(get_grab::Asked),
    ListGrabs(ListGrabsRequest),
    GetUsage,
    GetPricing(GetPricingRequest),
    /// Arguments that never reach the core, and what is wrong with them.
    Unacceptable(String),
}

/// Where a tool does its work: the face, and the headers of the request.
pub(super) struct Desk {
    pub(super) mcp: Arc<Mcp>,
    pub(super) headers: HeaderMap,
}

/// What a tool gives.
#[derive(Debug)]
pub(super) struct Success {
    /// As its output schema says.
    structured: Value,
    /// A picture and a link to it, or nothing.
    blocks: Vec<ContentBlock>,
    /// What came with the core's answer.
    pub(super) metadata: HeaderMap,
}

/// What a tool comes to.
pub(super) type Outcome = Result<Success, Failure>;

/// Does what was asked.
pub(super) async fn run(desk: Desk, asked: Asked, progress: Progress) -> Outcome {
    match asked {
        Asked::CreateGrab(asked) => create_grab::run(&desk, *asked, progress).await,
        Asked::GetGrab(asked) => get_grab::run(&desk, asked).await,
        Asked::ListGrabs(asked) => list_grabs::run(&desk, asked).await,
        Asked::GetUsage => get_usage::run(&desk).await,
        Asked::GetPricing(asked) => get_pricing::run(&desk, asked).await,
        Asked::Unacceptable(message) => {
            let metadata = desk.take_request().await?;
            let mut failure = Failure::new(ErrorCode::BadRequest, message);
            failure.headers.extend(metadata);
            Err(failure)
        }
    }
}

impl Desk {
    /// Counts a call that no other service counts; what the core tells of the caller's limits.
    async fn take_request(&self) -> Result<HeaderMap, Failure> {
        let mut core = AccessServiceClient::new(self.mcp.transport.clone());
        let sent = call::request(&self.headers, TakeRequestRequest {}, call::PROMPT);
        let Answer { message: _, metadata } =
            call::answer(&self.headers, call::PROMPT, core.take_request(sent)).await?;
        Ok(metadata)
    }

    fn internal(&self, cause: &'static str) -> Failure {
        Failure::internal(cause, call::request_id(&self.headers))
    }
}

/// The result of a call that went well: the structured content, and the same as text for those who read nothing else.
pub(super) fn succeeded(era: Era, success: Success) -> CallToolResult {
    let Success { structured, mut blocks, metadata: _ } = success;
    blocks.push(ContentBlock::text(structured.to_string()));
    let mut result = CallToolResult::success(blocks);
    result.structured_content = Some(structured);
    let mut result = of_era(era, result);
    // Only the picture is ever large.
    if size(&result) > RESULT_BYTES {
        result.content.retain(|block| block.as_image().is_none());
    }
    result
}

/// The result of a call that did not: the contract's code and message, and what an agent does about it.
pub(super) fn failed(era: Era, failure: &Failure) -> CallToolResult {
    let (_, code) = row(failure.code);
    let error = json!({
        "error": { "code": code, "message": failure.message },
        "hint": hints::of(failure.code),
    });
    of_era(era, CallToolResult::error(vec![ContentBlock::text(error.to_string())]))
}

fn of_era(era: Era, mut result: CallToolResult) -> CallToolResult {
    match era {
        Era::Modern => result.meta = signed(),
        Era::Legacy => result.result_type = None,
    }
    result
}

fn size(result: &CallToolResult) -> usize {
    serde_json::to_vec(result).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests;
