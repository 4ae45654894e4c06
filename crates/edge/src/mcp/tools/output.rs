//! Results of tools, and what clients get of them.

use std::pin::Pin;

use http::HeaderMap;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::super::era::Era;
use super::super::methods::result_meta;
use super::hints;
use crate::rest::error::ApiError;

/// Maximum size of a result in bytes. The rest of the response stays within the documented 900,000 bytes.
pub(super) const MAX_RESULT_BYTES: usize = 890_000;

/// What is sent instead of texts that would exceed it.
pub(super) const TOO_LARGE: &str = "The texts are too large for one answer. Ask for fewer tokens with max_tokens.";

/// Output of a tool.
#[derive(Debug)]
pub(in super::super) struct ToolOutput {
    /// Content that matches the output schema.
    pub(super) structured: Value,
    /// What is shown beside it: images, texts and links.
    pub(super) blocks: Vec<ContentBlock>,
    /// Metadata of the core's response.
    pub(in super::super) metadata: HeaderMap,
}

/// Result of a tool.
pub(in super::super) type ToolResult = Result<ToolOutput, ApiError>;

/// A running tool.
pub(in super::super) type ToolFuture = Pin<Box<dyn Future<Output = ToolResult> + Send>>;

/// The result of a successful call: the structured content, and the same as text for clients that only read text.
pub(in super::super) fn success_result(era: Era, success: ToolOutput) -> CallToolResult {
    let ToolOutput { structured, mut blocks, metadata: _ } = success;
    blocks.push(ContentBlock::text(structured.to_string()));
    let mut result = CallToolResult::success(blocks);
    result.structured_content = Some(structured);
    let mut result = for_era(era, result);
    if size(&result) > MAX_RESULT_BYTES {
        result.content.retain(|block| block.as_image().is_none());
        // Texts are limited by their tokens. Only control characters, which take six bytes each, make them too large.
        let others = result.content.len().saturating_sub(1);
        if others > 0 && size(&result) > MAX_RESULT_BYTES {
            drop(result.content.splice(..others, [ContentBlock::text(TOO_LARGE)]));
        }
    }
    result
}

/// The result of a failed call: the error code and message, and beside them a hint for the agent and whose fault it is.
pub(in super::super) fn error_result(era: Era, failure: &ApiError) -> CallToolResult {
    let error = json!({
        "error": failure.body(),
        "hint": hints::for_code(failure.code),
        "cause": failure.cause_name(),
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

/// The size of a result as JSON.
pub(super) fn size(result: &CallToolResult) -> usize {
    serde_json::to_vec(result).map_or(usize::MAX, |text| text.len())
}
