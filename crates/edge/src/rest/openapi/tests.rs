//! Tests that the OpenAPI document is complete and consistent.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::error;
use super::errors::{ERROR_CODES, meaning};
use super::*;

fn json() -> Value {
    serde_json::to_value(document("https://grabd.example", "https://auth.grabd.example")).unwrap()
}

#[test]
fn document_describes_exactly_the_routes() {
    let document = json();
    let paths = document["paths"].as_object().unwrap();
    let described: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(move |method| (format!("{ROOT}{path}"), method.to_uppercase()))
        })
        .collect();
    let routed: BTreeSet<(String, String)> = super::super::routes::routes()
        .into_iter()
        .filter(|(path, ..)| path.starts_with("/v1/"))
        .flat_map(|(path, allowed, _)| allowed.split(", ").map(move |method| (path.to_owned(), method.to_owned())))
        .filter(|(_, method)| !["HEAD", "OPTIONS"].contains(&method.as_str()))
        .collect();
    assert_eq!(described, routed);
}

#[test]
fn references_have_targets() {
    let document = json();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 50, "{}", references.len());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            into.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|value| collect(value, into));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn operations_have_unique_ids_descriptions_and_common_responses() {
    let document = json();
    let mut ids = BTreeSet::new();
    let tags: BTreeSet<_> = TAGS.iter().map(|(name, _)| *name).collect();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{method} {path}");
            assert!(tags.contains(operation["tags"][0].as_str().unwrap()), "{method} {path}");
            assert!(operation["description"].as_str().is_some_and(|text| text.ends_with('.')), "{method} {path}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                let headers = &response["headers"];
                assert!(headers["X-Request-Id"].is_object(), "{method} {path} {status}");
                let is_error = status.starts_with(['4', '5']);
                assert_eq!(headers["Error-Cause"].is_object(), is_error, "{method} {path} {status}");
            }
            let open = operation["security"] == serde_json::json!([{}]);
            assert_eq!(open, operation["responses"]["401"].is_null(), "{method} {path}");
        }
    }
}

#[test]
fn error_objects_have_a_code_and_a_message_only() {
    let document = json();
    let schemas = &document["components"]["schemas"];
    let envelope = &schemas["Error"];
    let in_batch = &schemas["Batch"]["properties"]["results"]["items"]["properties"]["error"]["oneOf"][0];
    let members = serde_json::json!(["code", "message"]);
    for error in [&envelope["properties"]["error"], in_batch] {
        assert_eq!((&error["required"], &error["additionalProperties"]), (&members, &Value::Bool(false)), "{error}");
        assert!(error["properties"].as_object().unwrap().keys().eq(members.as_array().unwrap()), "{error}");
    }
    assert_eq!(envelope["additionalProperties"], Value::Bool(false));
}

#[test]
fn webhooks_proxies_and_deletion_of_grabs_need_the_scope_manage_and_everything_else_grabs() {
    let document = json();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let schemes = operation["security"].as_array().unwrap();
            let Some(scopes) = schemes.iter().find_map(|scheme| scheme.get(OAUTH)) else { continue };
            let is_managed = ["/webhooks", "/proxies"].into_iter().any(|managed| path.starts_with(managed));
            let manages = is_managed || (path.starts_with("/grabs") && method == "delete");
            assert_eq!(*scopes, serde_json::json!([if manages { "manage" } else { "grabs" }]), "{method} {path}");
        }
    }
    let flow = &document["components"]["securitySchemes"][OAUTH]["flows"]["authorizationCode"];
    assert_eq!(flow["scopes"].as_object().unwrap().keys().collect::<Vec<_>>(), ["grabs", "manage"]);
}

#[test]
fn grabs_may_have_a_file_of_each_kind() {
    let document = json();
    let files = &document["components"]["schemas"]["Grab"]["properties"]["files"];
    let kinds = &document["components"]["schemas"]["CreateGrabRequest"]["properties"]["also"]["items"]["enum"];
    // Of each kind one, the image of a difference, a thumbnail, evidence, up to 64 slices, up to 6 images in further viewports, and up to 5 of
    // steps.
    assert_eq!(
        files["maxItems"].as_u64(),
        kinds.as_array().map(|kinds| kinds.len() as u64 + 3 + 64 + 6 + 5),
        "{files}"
    );
    let mut kinds = kinds.clone();
    let others = ["slice", "viewport", "capture", "difference", "thumbnail", "evidence"];
    kinds.as_array_mut().unwrap().extend(others.map(Value::from));
    assert_eq!(files["items"]["properties"]["kind"]["enum"], kinds, "{files}");
}

#[test]
fn error_codes_are_unique_and_documented() {
    let words: BTreeSet<_> = ERROR_CODES.iter().map(|code| error::status_and_code(*code).1).collect();
    assert_eq!(words.len(), 14);
    assert!(ERROR_CODES.iter().all(|code| meaning(*code).ends_with('.')));
}
