//! `get_pricing`: what grabs cost, in short unless asked for more.

use grabd_proto::v1::GetPricingRequest;
use grabd_proto::v1::pricing_service_client::PricingServiceClient;
use serde_json::value::RawValue;

use super::{Desk, Outcome, Success};
use crate::rest::call::{self, Answer};
use crate::rest::fields::Fields;
use crate::rest::{json, wire};

const SHORT: &str = "summary";

pub(super) fn read(fields: &mut Fields<'_>) -> super::Asked {
    // What is no text is no word that the core knows either, and is told as it was written.
    let word = |value: &RawValue| Some(json::string(value).unwrap_or_else(|| value.get().to_owned()));
    let provider = fields.read("provider", word);
    let detail = fields.read("detail", word).unwrap_or_else(|| SHORT.to_owned());
    super::Asked::GetPricing(GetPricingRequest { provider, detail: Some(detail) })
}

/// The prices are public and the core counts nobody who asks for them, so the call is counted first.
pub(super) async fn run(desk: &Desk, asked: GetPricingRequest) -> Outcome {
    let metadata = desk.take_request().await?;
    let mut core = PricingServiceClient::new(desk.mcp.transport.clone());
    let sent = call::request(&desk.headers, asked, call::PROMPT);
    let Answer { message, metadata: _ } =
        call::answer(&desk.headers, call::PROMPT, core.get_pricing(sent)).await.map_err(|mut failure| {
            failure.headers.extend(metadata.clone());
            failure
        })?;
    let packet = message.packet.ok_or_else(|| desk.internal("the core told no pricing"))?;
    let structured = serde_json::to_value(wire::Packet(&packet)).map_err(|_| desk.internal("pricing is no JSON"))?;
    Ok(Success { structured, blocks: Vec::new(), metadata })
}
