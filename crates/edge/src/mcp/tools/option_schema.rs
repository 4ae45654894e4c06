//! Schemas of the capture options for agents. The list of tools is part of every conversation, so each option has its type, its
//! bounds if it is a number, and one line. The error for another value says what is allowed.

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

/// Members that are left out of the schemas of what an option consists of, too.
const BOUNDS: [&str; 2] = ["maximum", "minimum"];

/// Members that are also left out of the schemas of the members of an object.
const WORDS: [&str; 1] = ["enum"];

/// Of objects with more members than this, agents get the names of the members only.
const MOST_MEMBERS: usize = 7;

/// An option with more words than this has none of them in its schema. Its text says what they are like.
const MOST_WORDS: usize = 12;

/// The schema of an option.
pub(super) fn option_schema(option: &CaptureOption) -> Value {
    let whole = serde_json::to_value(options::schema(option)).expect("a schema is JSON");
    let mut short = shortened(whole, &LEFT_OUT);
    let mut about = first_sentence(option.help);
    if let Kind::Object { members, .. } | Kind::Objects { members, .. } = option.kind
        && members.len() > MOST_MEMBERS
    {
        let names: Vec<&str> = members.iter().map(|member| member.name).collect();
        about = format!("{about} Members: {}.", names.join(", "));
        for path in ["", "/items"] {
            if let Some(Value::Object(object)) = short.pointer_mut(path) {
                object.shift_remove("properties");
            }
        }
    }
    let members = short.as_object_mut().expect("a schema is an object");
    if matches!(option.kind, Kind::Word(words) if words.len() > MOST_WORDS) {
        members.shift_remove("enum");
    }
    // Names and texts of the caller's own: their schema says nothing more.
    if matches!(option.kind, Kind::Headers { .. } | Kind::Labels { .. }) {
        members.insert("additionalProperties".to_owned(), serde_json::json!({ "type": "string" }));
    }
    members.insert("description".to_owned(), about.into());
    short
}

fn shortened(schema: Value, left_out: &[&str]) -> Value {
    let Value::Object(members) = schema else { return schema };
    let kept = members.into_iter().filter(|(name, _)| !left_out.contains(&name.as_str()));
    let of_parts = &[&LEFT_OUT[..], &BOUNDS].concat();
    let of_members = &[&LEFT_OUT[..], &BOUNDS, &WORDS].concat();
    let short = kept.map(|(name, value)| match (name.as_str(), value) {
        // Here the members are names of properties.
        ("properties", Value::Object(properties)) => {
            let properties: Map<_, _> =
                properties.into_iter().map(|(name, schema)| (name, shortened(schema, of_members))).collect();
            (name, properties.into())
        }
        (_, Value::Array(schemas)) => (name, schemas.into_iter().map(|schema| shortened(schema, of_parts)).collect()),
        (_, value) => (name, shortened(value, of_parts)),
    });
    Value::Object(short.collect())
}

fn first_sentence(help: &str) -> String {
    help.split_once(". ").map_or_else(|| help.to_owned(), |(first, _)| format!("{first}."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(name: &str) -> Value {
        option_schema(grabd_options::find(name).unwrap())
    }

    #[test]
    fn numbers_have_their_bounds_and_members_do_not() {
        assert_eq!(schema("padding")["maximum"], json!(200));
        let size = json!({ "type": "object", "properties": { "width": { "type": "integer" }, "height": { "type": "integer" } } });
        assert_eq!(schema("viewports")["items"], size);
        let words = json!(["light", "dark"]);
        assert_eq!(
            (&schema("color_scheme")["enum"], schema("thumbnail")["properties"]["fit"].get("enum")),
            (&words, None)
        );
    }

    #[test]
    fn options_with_many_words_have_examples_of_them_in_their_text() {
        let device = schema("device");
        assert_eq!((&device["type"], device.get("enum")), (&json!("string"), None));
        assert!(
            device["description"].as_str().unwrap().contains("a `phone`, a `tablet`, or a model such as"),
            "{device}"
        );
    }

    #[test]
    fn objects_with_many_members_have_their_names_only() {
        let (pdf, cookies) = (schema("pdf"), schema("cookies"));
        assert_eq!((pdf.get("properties"), &cookies["items"]), (None, &json!({ "type": "object" })));
        for (schema, names) in [(&pdf, "Members: format, landscape, "), (&cookies, "Members: name, value, domain, ")] {
            assert!(schema["description"].as_str().unwrap().contains(names), "{schema}");
        }
    }
}
