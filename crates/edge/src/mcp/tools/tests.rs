use serde_json::value::RawValue;

use super::*;

fn ask(tool: &str, arguments: &str) -> Asked {
    let tools = Tools::read();
    tools.find(tool).unwrap().ask(crate::rest::json::object(arguments.as_bytes()).unwrap())
}

fn refused(tool: &str, arguments: &str) -> String {
    let Asked::Unacceptable(message) = ask(tool, arguments) else { panic!("{arguments} is acceptable") };
    message
}

#[test]
fn every_tool_is_described_and_has_its_reader() {
    let tools = Tools::read();
    let names: Vec<&str> = tools.0.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, READERS.map(|(name, _)| name));
    assert!(tools.find("create_grab ").is_none());
    // What is served is what was written, with nothing lost on the way through the types.
    let served: Value = serde_json::to_value(tools.list()).unwrap();
    assert_eq!(served, serde_json::from_str::<Value>(DESCRIBED).unwrap());
    for tool in &tools.0 {
        assert_eq!(tool.input_schema.get("additionalProperties"), Some(&json!(false)), "{}", tool.name);
        assert!(tool.output_schema.is_some() && tool.annotations.is_some() && tool.title.is_some(), "{}", tool.name);
    }
}

#[test]
fn arguments_that_no_service_could_judge_are_named() {
    for (tool, arguments, expected) in [
        ("get_usage", r#"{"a":1}"#, "`a` is no argument of get_usage, which takes no arguments."),
        (
            "get_pricing",
            r#"{"z":1,"currency":"EUR"}"#,
            "`currency` is no argument of get_pricing, which takes provider, detail.",
        ),
        ("get_grab", "{}", "`id` must be the id of a grab, as text."),
        ("get_grab", r#"{"id":7}"#, "`id` must be the id of a grab, as text; got 7."),
        ("get_grab", r#"{"id":"a","include_image":"yes"}"#, "`include_image` must be true or false; got \"yes\"."),
        ("create_grab", r#"{"url":"x","include_image":null}"#, "`include_image` must be true or false; got null."),
    ] {
        assert_eq!(refused(tool, arguments), expected, "{arguments}");
    }
    let long = refused("get_usage", &format!("{{\"{}\":1}}", "é".repeat(1000)));
    assert!(long.chars().count() < 200, "{long}");
}

#[test]
fn everything_else_is_the_cores_to_judge() {
    let Asked::CreateGrab(asked) = ask("create_grab", r#"{"url":5,"width":"1","async":"yes","idempotency_key":7}"#)
    else {
        panic!("a create")
    };
    let asked = format!("{asked:?}");
    for field in ["url", "width", "async", "Idempotency-Key"] {
        assert!(asked.contains(&format!("field: \"{field}\"")), "{field} in {asked}");
    }
    let Asked::ListGrabs(asked) = ask("list_grabs", r#"{"limit":1.5,"status":"lost","starting_after":1}"#) else {
        panic!("a list")
    };
    let fields: Vec<&str> = asked.unparsed.iter().map(|unparsed| unparsed.field.as_str()).collect();
    assert_eq!(fields, ["limit", "status", "starting_after"]);
    let Asked::GetPricing(asked) = ask("get_pricing", r#"{"provider":5}"#) else { panic!("prices") };
    assert_eq!((asked.provider.as_deref(), asked.detail.as_deref()), (Some("5"), Some("summary")));
}

#[test]
fn a_result_that_is_too_large_goes_without_its_picture() {
    let with_picture = |bytes: usize| {
        let blocks = vec![ContentBlock::image("A".repeat(bytes), "image/png"), ContentBlock::text("link")];
        succeeded(Era::Modern, Success { structured: json!({ "id": "x" }), blocks, metadata: HeaderMap::new() })
    };
    assert_eq!(with_picture(800_000).content.len(), 3);
    assert_eq!(with_picture(900_000).content.len(), 2);
}

#[test]
fn only_modern_results_say_what_they_are_and_whose() {
    let failure = Failure::new(ErrorCode::CreditsExhausted, "No live credits left.");
    let modern = serde_json::to_value(failed(Era::Modern, &failure)).unwrap();
    assert_eq!((&modern["resultType"], &modern["isError"]), (&json!("complete"), &json!(true)));
    assert_eq!(modern["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "grabd");
    assert!(modern.get("structuredContent").is_none());
    let text = modern["content"][0]["text"].as_str().unwrap();
    let error: &RawValue = serde_json::from_str(text).unwrap();
    assert_eq!(
        error.get(),
        r#"{"error":{"code":"credits_exhausted","message":"No live credits left."},"hint":"Call get_usage; the user can top up at its top_up address."}"#
    );
    let legacy = serde_json::to_value(failed(Era::Legacy, &failure)).unwrap();
    assert!(legacy.get("resultType").is_none() && legacy.get("_meta").is_none());
}
