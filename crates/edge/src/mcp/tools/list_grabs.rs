//! `list_grabs`: a page of earlier grabs, without images.

use grabd_proto::v1::ListGrabsRequest;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use serde_json::{Value, json};

use super::super::era::Era;
use super::context::ToolContext;
use super::grab_output;
use super::output::{MAX_RESULT_BYTES, ToolOutput, ToolResult, size, success_result};
use crate::rest::call::{self, CoreResponse};
use crate::rest::fields::Fields;
use crate::rest::{json as read_json, wire};

pub(super) fn read(fields: &mut Fields<'_>) -> ListGrabsRequest {
    let limit = fields.read("limit", |value| i32::try_from(read_json::integer(value)?).ok());
    let status = fields.read("status", |value| wire::parse_status(&read_json::string(value)?));
    let [starting_after, url, from, until] =
        ["starting_after", "url", "from", "until"].map(|name| fields.read(name, read_json::string));
    ListGrabsRequest {
        limit,
        status: status.unwrap_or_default().into(),
        starting_after,
        ending_before: None,
        url,
        from,
        until,
        ids: Vec::new(),
        unparsed: std::mem::take(&mut fields.unparsed),
    }
}

pub(super) async fn run(context: &ToolContext, request: ListGrabsRequest) -> ToolResult {
    let mut core = GrabServiceClient::new(context.mcp.transport.clone());
    let sent = call::request(&context.headers, request, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } =
        call::send(&context.headers, call::QUERY_DEADLINE, core.list_grabs(sent)).await?;
    let mut data = Vec::with_capacity(message.grabs.len());
    for mut grab in message.grabs {
        grab_output::complete_urls(context, &mut grab);
        data.push(grab_output::structured_content(context, &grab)?);
    }
    Ok(ToolOutput {
        structured: fit_page(data, message.has_more, message.next.as_deref()),
        blocks: Vec::new(),
        metadata,
    })
}

/// Shortens the page to the maximum size of a result. The rest is on the next page.
fn fit_page(mut data: Vec<Value>, mut has_more: bool, mut next: Option<&str>) -> Value {
    loop {
        let mut structured = json!({ "data": data, "has_more": has_more });
        if let Some(next) = next {
            structured["next"] = next.into();
        }
        let success =
            ToolOutput { structured: structured.clone(), blocks: Vec::new(), metadata: http::HeaderMap::new() };
        if data.len() < 2 || size(&success_result(Era::Modern, success)) <= MAX_RESULT_BYTES {
            return structured;
        }
        data.truncate(data.len() / 2);
        // From the last of those that are left.
        (has_more, next) = (true, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_too_large_are_cut_and_have_more() {
        let grab = |at: usize| json!({ "id": at, "target_url": "a".repeat(8000) });
        let whole = fit_page((0..50).map(grab).collect(), false, None);
        assert_eq!((whole["data"].as_array().map(Vec::len), &whole["has_more"]), (Some(50), &json!(false)));
        let cut = fit_page((0..100).map(grab).collect(), false, None);
        assert_eq!((cut["data"].as_array().map(Vec::len), &cut["has_more"]), (Some(50), &json!(true)));
        assert_eq!(cut["data"][49]["id"], 49, "the page must keep its first items");
    }
}
