//! `get_usage`: what is left to spend.

use grabd_proto::v1::GetUsageRequest;
use grabd_proto::v1::usage_service_client::UsageServiceClient;

use super::{Desk, Outcome, Success};
use crate::rest::call::{self, Answer};
use crate::rest::fields::Fields;
use crate::rest::wire;

pub(super) fn read(_: &mut Fields<'_>) -> super::Asked {
    super::Asked::GetUsage
}

pub(super) async fn run(desk: &Desk) -> Outcome {
    let mut core = UsageServiceClient::new(desk.mcp.transport.clone());
    let sent = call::request(&desk.headers, GetUsageRequest {}, call::PROMPT);
    let Answer { message, metadata } = call::answer(&desk.headers, call::PROMPT, core.get_usage(sent)).await?;
    let shown = wire::usage(&message).ok_or_else(|| desk.internal("the core told an incomplete usage"))?;
    let structured = serde_json::to_value(shown).map_err(|_| desk.internal("a usage is no JSON"))?;
    Ok(Success { structured, blocks: Vec::new(), metadata })
}
