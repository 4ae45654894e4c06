//! Schemas of the capture options for agents. The list of tools is part of every conversation, so each option has its type, the
//! bounds of numbers and one line. The error for another value says what is allowed.

use grabd_options::{CaptureOption, Kind};
use serde_json::{Map, Value};

use crate::rest::options;

/// Members of schemas that agents do without.
const LEFT_OUT: [&str; 14] = [
    "additionalProperties",
    "default",
    "description",
    "examples",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "minProperties",
    "pattern",
    "required",
    "uniqueItems",
];

/// The schema of an option.
pub(super) fn option_schema(option: &CaptureOption) -> Value {
    let whole = serde_json::to_value(options::schema(option)).expect("a schema is JSON");
    let mut short = shortened(whole);
    let members = short.as_object_mut().expect("a schema is an object");
    // Names and texts of the caller's own: their schema says nothing more.
    if matches!(option.kind, Kind::Headers { .. } | Kind::Labels { .. }) {
        members.insert("additionalProperties".to_owned(), serde_json::json!({ "type": "string" }));
    }
    members.insert("description".to_owned(), first_sentence(option.help).into());
    short
}

fn shortened(schema: Value) -> Value {
    let Value::Object(members) = schema else { return schema };
    let kept = members.into_iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()));
    let short = kept.map(|(name, value)| match (name.as_str(), value) {
        // Here the members are names of properties.
        ("properties", Value::Object(properties)) => {
            let properties: Map<_, _> =
                properties.into_iter().map(|(name, schema)| (name, shortened(schema))).collect();
            (name, properties.into())
        }
        (_, Value::Array(schemas)) => (name, schemas.into_iter().map(shortened).collect()),
        (_, value) => (name, shortened(value)),
    });
    Value::Object(short.collect())
}

fn first_sentence(help: &str) -> String {
    help.split_once(". ").map_or_else(|| help.to_owned(), |(first, _)| format!("{first}."))
}
