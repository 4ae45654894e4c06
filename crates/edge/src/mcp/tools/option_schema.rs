//! Schemas of the capture options for agents. The list of tools is part of every conversation, so each option has its type, its
//! bounds if it is a number, and one line. Members of objects are only named. The error for another value says what is allowed.

use grabd_options::{CaptureOption, Kind, Member};
use serde_json::{Map, Value, json};

use crate::rest::options;

/// Members of schemas that agents do without.
const LEFT_OUT: [&str; 15] = [
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
    "properties",
    "required",
    "uniqueItems",
];

/// An option with more words than this has none of them in its schema. Its text says what they are like.
const MOST_WORDS: usize = 12;

/// The schema of an option.
pub(super) fn option_schema(option: &CaptureOption) -> Value {
    let whole = serde_json::to_value(options::schema(option)).expect("a schema is JSON");
    let mut short = shortened(whole);
    let mut about = if option.brief.is_empty() { first_sentence(option.help) } else { option.brief.to_owned() };
    if let Some(names) = member_names(option.kind) {
        about = format!("{about} {names}");
    }
    let members = short.as_object_mut().expect("a schema is an object");
    if matches!(option.kind, Kind::Word(words) if words.len() > MOST_WORDS) {
        members.shift_remove("enum");
    }
    // Names and texts of the caller's own: their schema says nothing more.
    if matches!(option.kind, Kind::Headers { .. } | Kind::Labels { .. }) {
        members.insert("additionalProperties".to_owned(), json!({ "type": "string" }));
    }
    // An agent leaves out an option rather than sending null.
    if option.kind == Kind::Selector {
        members.insert("type".to_owned(), json!("string"));
    }
    if matches!(option.kind, Kind::Statuses { .. }) {
        members.insert("items".to_owned(), json!({ "type": ["string", "integer"] }));
    }
    members.insert("description".to_owned(), about.into());
    short
}

/// The schema without [`LEFT_OUT`], and so are the schemas of its parts.
fn shortened(schema: Value) -> Value {
    let Value::Object(members) = schema else { return schema };
    let kept = members.into_iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()));
    Value::Object(kept.map(|(name, value)| (name, shortened(value))).collect::<Map<_, _>>())
}

/// A sentence with the names of the members, for options that are objects or lists of them.
fn member_names(kind: Kind) -> Option<String> {
    if let Kind::Object { members, .. } | Kind::Objects { members, .. } | Kind::Sizes { members, .. } = kind {
        Some(format!("Members: {}.", names(members)))
    } else if let Kind::Choices { members, .. } = kind {
        Some(format!("Each is an object with one of: {}.", names(members)))
    } else if kind == Kind::Rectangle {
        Some("Members: x, y, width, height.".to_owned())
    } else {
        None
    }
}

/// The names of members. Those of an object within the object are in parentheses.
fn names(members: &[Member]) -> String {
    let name = |member: &Member| {
        if let Kind::Object { members, .. } = member.kind {
            format!("{} ({})", member.name, names(members))
        } else {
            member.name.to_owned()
        }
    };
    members.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn first_sentence(help: &str) -> String {
    help.split_once(". ").map_or_else(|| help.to_owned(), |(first, _)| format!("{first}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(name: &str) -> Value {
        option_schema(grabd_options::find(name).unwrap())
    }

    #[test]
    fn options_have_their_type_bounds_words_and_one_line() {
        let about = "Space around the captured element, in CSS pixels.";
        let padding = json!({ "type": "integer", "minimum": 0, "maximum": 200, "description": about });
        assert_eq!(schema("padding"), padding);
        assert_eq!(schema("color_scheme")["enum"], json!(["light", "dark"]));
        assert_eq!(schema("block")["items"]["enum"], json!(["ads", "trackers", "cookie_banners", "chats", "social"]));
        assert_eq!(schema("wait_for")["type"], "string");
        assert_eq!(schema("fail_on_status")["items"], json!({ "type": ["string", "integer"] }));
        assert_eq!(schema("headers")["additionalProperties"], json!({ "type": "string" }));
        assert_eq!(schema("transparent")["description"], "Leave out the browser's white background.");
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
    fn members_of_objects_are_named() {
        let thumbnail = "Also make a smaller copy of the image, at most of this size. Members: width, height, fit.";
        assert_eq!(schema("thumbnail"), json!({ "type": "object", "description": thumbnail }));
        assert_eq!(schema("viewports")["items"], json!({ "type": "object" }));
        for (name, part) in [
            ("pdf", "Members: format, landscape, "),
            ("cookies", "Members: name, value, domain, "),
            ("clip", "Members: x, y, width, height."),
            ("steps", "with one of: click, type (into, text, secret), press, "),
        ] {
            let schema = schema(name);
            let about = schema["description"].as_str().unwrap();
            assert!(about.contains(part) && schema.pointer("/items/properties").is_none(), "{schema}");
        }
    }
}
