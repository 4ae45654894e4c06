//! `list_grabs`: a page of earlier grabs, without pictures.

use grabd_proto::v1::ListGrabsRequest;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use serde_json::{Value, json};

use super::super::era::Era;
use super::{Desk, Outcome, RESULT_BYTES, Success, shown, size, succeeded};
use crate::rest::call::{self, Answer};
use crate::rest::fields::Fields;
use crate::rest::{json as read_json, wire};

pub(super) fn read(fields: &mut Fields<'_>) -> super::Asked {
    let limit = fields.read("limit", read_json::integer);
    let status = fields.read("status", |value| wire::parse_status(&read_json::string(value)?));
    let starting_after = fields.read("starting_after", read_json::string);
    super::Asked::ListGrabs(ListGrabsRequest {
        limit,
        status: status.unwrap_or_default().into(),
        starting_after,
        ending_before: None,
        unparsed: std::mem::take(&mut fields.unparsed),
    })
}

pub(super) async fn run(desk: &Desk, asked: ListGrabsRequest) -> Outcome {
    let mut core = GrabServiceClient::new(desk.mcp.transport.clone());
    let sent = call::request(&desk.headers, asked, call::PROMPT);
    let Answer { message, metadata } = call::answer(&desk.headers, call::PROMPT, core.list_grabs(sent)).await?;
    let mut data = Vec::with_capacity(message.grabs.len());
    for mut grab in message.grabs {
        shown::complete(desk, &mut grab);
        data.push(shown::structured(desk, &grab)?);
    }
    Ok(Success { structured: fitting(data, message.has_more), blocks: Vec::new(), metadata })
}

/// The page, or as much from its beginning as a result may hold: the rest is the next page.
fn fitting(mut data: Vec<Value>, mut has_more: bool) -> Value {
    loop {
        let structured = json!({ "data": data, "has_more": has_more });
        let success = Success { structured: structured.clone(), blocks: Vec::new(), metadata: http::HeaderMap::new() };
        if data.len() < 2 || size(&succeeded(Era::Modern, success)) <= RESULT_BYTES {
            return structured;
        }
        data.truncate(data.len() / 2);
        has_more = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_too_large_is_cut_and_goes_on() {
        let grab = |at: usize| json!({ "id": at, "target_url": "a".repeat(8000) });
        let whole = fitting((0..50).map(grab).collect(), false);
        assert_eq!((whole["data"].as_array().map(Vec::len), &whole["has_more"]), (Some(50), &json!(false)));
        let cut = fitting((0..100).map(grab).collect(), false);
        assert_eq!((cut["data"].as_array().map(Vec::len), &cut["has_more"]), (Some(50), &json!(true)));
        assert_eq!(cut["data"][49]["id"], 49, "the next page begins after the last one");
    }
}
