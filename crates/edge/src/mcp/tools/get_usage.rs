//! `get_usage`: remaining credits and usage.

use grabd_proto::v1::GetUsageRequest;
use grabd_proto::v1::usage_service_client::UsageServiceClient;

use super::context::ToolContext;
use super::output::{ToolOutput, ToolResult};
use crate::rest::call::{self, CoreResponse};
use crate::rest::wire;

pub(super) async fn run(context: &ToolContext) -> ToolResult {
    let mut core = UsageServiceClient::new(context.mcp.transport.clone());
    let sent = call::request(&context.headers, GetUsageRequest {}, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } =
        call::send(&context.headers, call::QUERY_DEADLINE, core.get_usage(sent)).await?;
    let shown = wire::usage(&message).ok_or_else(|| context.internal("the core returned an incomplete usage"))?;
    let structured = serde_json::to_value(shown).map_err(|_| context.internal("the usage cannot be serialized"))?;
    Ok(ToolOutput { structured, blocks: Vec::new(), metadata })
}
