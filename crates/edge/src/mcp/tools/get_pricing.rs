//! `get_pricing`: prices and comparison, as a summary unless `detail` is set.

use grabd_proto::v1::GetPricingRequest;
use grabd_proto::v1::pricing_service_client::PricingServiceClient;
use serde_json::value::RawValue;

use super::context::ToolContext;
use super::output::{ToolOutput, ToolResult};
use crate::rest::call::{self, CoreResponse};
use crate::rest::fields::Fields;
use crate::rest::{json, wire};

const DEFAULT_DETAIL: &str = "summary";

pub(super) fn read(fields: &mut Fields<'_>) -> GetPricingRequest {
    // Values that are not strings are forwarded as source text; the core rejects them as unknown.
    let text = |value: &RawValue| Some(json::string(value).unwrap_or_else(|| value.get().to_owned()));
    let provider = fields.read("provider", text);
    let detail = fields.read("detail", text).unwrap_or_else(|| DEFAULT_DETAIL.to_owned());
    GetPricingRequest { provider, detail: Some(detail) }
}

/// Counts the call explicitly, because the core does not count pricing requests, which are public.
pub(super) async fn run(context: &ToolContext, request: GetPricingRequest) -> ToolResult {
    let metadata = context.take_request().await?;
    let mut core = PricingServiceClient::new(context.mcp.transport.clone());
    let sent = call::request(&context.headers, request, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata: _ } =
        call::send(&context.headers, call::QUERY_DEADLINE, core.get_pricing(sent)).await.map_err(|mut failure| {
            failure.headers.extend(metadata.clone());
            failure
        })?;
    let packet = message.packet.ok_or_else(|| context.internal("the core returned no pricing"))?;
    let structured = serde_json::to_value(wire::PricingPacket(&packet))
        .map_err(|_| context.internal("the pricing cannot be serialized"))?;
    Ok(ToolOutput { structured, blocks: Vec::new(), metadata })
}
