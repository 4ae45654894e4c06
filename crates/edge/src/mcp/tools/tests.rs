use grabd_options::TABLE;
use http::HeaderMap;
use rmcp::model::ContentBlock;
use serde_json::json;
use serde_json::value::RawValue;

use super::super::era::Era;
use super::list::TOOLS_JSON;
use super::output::{TOO_LARGE, ToolOutput};
use super::*;

fn parse_args(tool: &str, arguments: &str) -> ToolArgs {
    let tools = Tools::read();
    find(&tools, tool).unwrap().parse_args(crate::rest::json::object(arguments.as_bytes()).unwrap())
}

fn rejected(tool: &str, arguments: &str) -> String {
    let ToolArgs::Invalid(message) = parse_args(tool, arguments) else { panic!("{arguments} was accepted") };
    message
}

#[test]
fn every_tool_has_a_description_and_an_argument_parser() {
    let tools = Tools::read();
    let names: Vec<&str> = tools.0.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ARGS_PARSERS.map(|(name, _)| name));
    assert!(find(&tools, "create_grab ").is_none());
    // The list must equal tools.json, capture options and what can be read aside: no member may be lost by parsing.
    let mut served: Value = serde_json::to_value(tools.list()).unwrap();
    let arguments = served[0]["inputSchema"]["properties"].as_object_mut().unwrap();
    assert_eq!(arguments.keys().next().unwrap(), "url");
    for option in TABLE {
        assert!(arguments.shift_remove(option.name).is_some(), "{}", option.name);
    }
    let readable = arguments["read"]["items"].as_object_mut().unwrap().shift_remove("enum").unwrap();
    assert_eq!((&readable[0], readable.as_array().unwrap().last().unwrap()), (&json!("markdown"), &json!("marks")));
    assert_eq!(served, serde_json::from_str::<Value>(TOOLS_JSON).unwrap());
    for tool in &tools.0 {
        assert_eq!(tool.input_schema.get("additionalProperties"), Some(&json!(false)), "{}", tool.name);
        assert!(tool.output_schema.is_some() && tool.annotations.is_some() && tool.title.is_some(), "{}", tool.name);
    }
}

/// It is part of every conversation, and may take 3,500 tokens of it. 13,292 bytes were 3,084 tokens of o200k_base.
#[test]
fn list_of_tools_is_short() {
    let bytes = serde_json::to_string(&Tools::read().list()).unwrap().len();
    assert!(bytes <= 15_000, "{bytes} bytes");
}

#[test]
fn schema_of_the_monitor_tool_is_short_and_requires_what_it_needs() {
    let tools = Tools::read();
    let tool = tools.get("monitor").unwrap();
    let bytes = serde_json::to_string(tool).unwrap().len();
    assert!(bytes <= 450, "{bytes} bytes");
    assert_eq!(tool.input_schema.get("required"), Some(&json!(["do"])));
}

#[test]
fn monitor_that_is_created_is_read_as_by_rest() {
    let ToolArgs::Monitor(args) = parse_args(
        "monitor",
        r#"{"do": "create", "monitor": {"capture": {"url": "https://example.com"}, "every": "1h", "keep": "5"}}"#,
    ) else {
        panic!("not a monitor")
    };
    let args = format!("{args:?}");
    assert!(args.contains("every: Some(\"1h\")") && args.contains("field: \"keep\""), "{args}");
}

#[test]
fn unknown_arguments_and_invalid_local_values_are_rejected() {
    for (tool, arguments, expected) in [
        ("get_usage", r#"{"a":1}"#, "`a` is no argument of get_usage, which takes no arguments."),
        (
            "get_pricing",
            r#"{"z":1,"currency":"EUR"}"#,
            "`currency` is no argument of get_pricing, which takes provider, detail.",
        ),
        ("monitor", "{}", "`do` must be create, list or runs."),
        ("monitor", r#"{"do":"stop"}"#, "`do` must be create, list or runs; got \"stop\"."),
        ("monitor", r#"{"do":"runs"}"#, "`id` must be the id of a monitor, as text."),
        (
            "monitor",
            r#"{"do":"create","monitor":5}"#,
            "`monitor` must be an object, as POST /v1/monitors takes it; got 5.",
        ),
        ("get_grab", "{}", "`id` must be the id of a grab, as text."),
        ("get_grab", r#"{"id":7}"#, "`id` must be the id of a grab, as text; got 7."),
        ("get_grab", r#"{"id":"a","include_image":"yes"}"#, "`include_image` must be true or false; got \"yes\"."),
        ("get_grab", r#"{"id":"a","from_row":-1}"#, "`from_row` must be an integer from 0 to 16383; got -1."),
        ("get_grab", r#"{"id":"a","from_row":16384}"#, "`from_row` must be an integer from 0 to 16383; got 16384."),
        ("create_grab", r#"{"url":"x","include_image":null}"#, "`include_image` must be true or false; got null."),
    ] {
        assert_eq!(rejected(tool, arguments), expected, "{arguments}");
    }
    let long = rejected("get_usage", &format!("{{\"{}\":1}}", "é".repeat(1000)));
    assert!(long.chars().count() < 200, "{long}");
}

#[test]
fn other_invalid_values_are_forwarded_to_the_core() {
    let ToolArgs::CreateGrab(args) =
        parse_args("create_grab", r#"{"url":5,"width":"1","async":"yes","idempotency_key":7}"#)
    else {
        panic!("not a create")
    };
    let args = format!("{args:?}");
    for field in ["url", "width", "async", "Idempotency-Key"] {
        assert!(args.contains(&format!("field: \"{field}\"")), "{field} in {args}");
    }
    let ToolArgs::ListGrabs(args) = parse_args("list_grabs", r#"{"limit":1.5,"status":"lost","starting_after":1}"#)
    else {
        panic!("not a list")
    };
    let fields: Vec<&str> = args.unparsed.iter().map(|unparsed| unparsed.field.as_str()).collect();
    assert_eq!(fields, ["limit", "status", "starting_after"]);
    let ToolArgs::GetPricing(args) = parse_args("get_pricing", r#"{"provider":5}"#) else {
        panic!("not a pricing request")
    };
    assert_eq!((args.provider.as_deref(), args.detail.as_deref()), (Some("5"), Some("summary")));
}

#[test]
fn results_that_are_too_large_omit_the_image() {
    let with_image = |bytes: usize| {
        let blocks = vec![ContentBlock::image("A".repeat(bytes), "image/png"), ContentBlock::text("link")];
        success_result(Era::Modern, ToolOutput { structured: json!({ "id": "x" }), blocks, metadata: HeaderMap::new() })
    };
    assert_eq!(with_image(800_000).content.len(), 3);
    assert_eq!(with_image(900_000).content.len(), 2);
}

#[test]
fn results_that_are_too_large_without_images_omit_their_texts() {
    let blocks = vec![ContentBlock::text("\u{1}".repeat(200_000)), ContentBlock::text("link")];
    let success = ToolOutput { structured: json!({ "id": "x" }), blocks, metadata: HeaderMap::new() };
    let result = success_result(Era::Modern, success);
    let texts: Vec<&str> = result.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str())).collect();
    assert_eq!(texts, [TOO_LARGE, r#"{"id":"x"}"#]);
}

#[test]
fn only_modern_results_have_a_type_and_server_info() {
    let failure = ApiError::new(ErrorCode::CreditsExhausted, "No live credits left.");
    let modern = serde_json::to_value(error_result(Era::Modern, &failure)).unwrap();
    assert_eq!((&modern["resultType"], &modern["isError"]), (&json!("complete"), &json!(true)));
    assert_eq!(modern["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "grabd");
    assert!(modern.get("structuredContent").is_none());
    let text = modern["content"][0]["text"].as_str().unwrap();
    let error: &RawValue = serde_json::from_str(text).unwrap();
    assert_eq!(
        error.get(),
        r#"{"error":{"code":"credits_exhausted","message":"No live credits left."},"hint":"Call get_usage; the user can top up at its top_up address.","cause":"request"}"#
    );
    let legacy = serde_json::to_value(error_result(Era::Legacy, &failure)).unwrap();
    assert!(legacy.get("resultType").is_none() && legacy.get("_meta").is_none());
}
