//! Schemas as HTML tables, and headers as lists.

use serde_json::{Map, Value};

use super::text::{escape, inline};

/// An OpenAPI document whose references can be resolved.
#[derive(Clone, Copy)]
pub(super) struct Document<'a>(pub(super) &'a Value);

impl<'a> Document<'a> {
    /// Resolves a reference. Returns any other value unchanged.
    pub(super) fn resolve(self, value: &'a Value) -> &'a Value {
        let target = value["$ref"].as_str().and_then(|reference| self.0.pointer(reference.strip_prefix('#')?));
        target.unwrap_or(value)
    }
}

/// The name of a component that a schema refers to.
pub(super) fn component(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// The members of an object, including those of nested objects.
pub(super) fn members(schema: &Value) -> String {
    let mut rows = String::new();
    collect(schema, "", &mut rows);
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<div class=\"wide\"><table><thead><tr><th scope=\"col\">Member</th><th scope=\"col\">Type</th>\
         <th scope=\"col\">Meaning</th></tr></thead><tbody>{rows}</tbody></table></div>\n"
    )
}

fn collect(schema: &Value, prefix: &str, rows: &mut String) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in properties {
        let path = format!("{prefix}{name}");
        rows.push_str(&row(&path, property, required.contains(&name.as_str())));
        let inner = if property["type"] == "array" { &property["items"] } else { property };
        if component(inner).is_none() {
            let mark = if property["type"] == "array" { "[]." } else { "." };
            collect(inner, &format!("{path}{mark}"), rows);
        }
    }
}

/// The row of a member, with the description in its schema.
pub(super) fn row(name: &str, schema: &Value, required: bool) -> String {
    let about = schema["description"].as_str().unwrap_or_default();
    row_with_description(name, schema, required, about)
}

/// The row of a member or parameter.
pub(super) fn row_with_description(name: &str, schema: &Value, required: bool, about: &str) -> String {
    let mark = if required { " <span class=\"required\">required</span>" } else { "" };
    // Lines may break after a dot or an underscore.
    let name = escape(name).replace('.', ".<wbr>").replace('_', "_<wbr>");
    format!(
        "<tr><th scope=\"row\"><code>{name}</code>{mark}</th><td>{}</td><td>{}{}</td></tr>\n",
        type_of(schema),
        inline(about),
        bounds(schema)
    )
}

/// The name of the type.
fn type_of(schema: &Value) -> String {
    if let Some(name) = component(schema) {
        return format!("<a href=\"#schema-{}\">{}</a>", name.to_ascii_lowercase(), escape(name));
    }
    if schema["type"] == "array" {
        return format!("array of {}", type_of(&schema["items"]));
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        return choices.iter().map(type_of).collect::<Vec<_>>().join(" or ");
    }
    let name = |value: &Value| escape(value.as_str().unwrap_or("any"));
    let names = match schema["type"].as_array() {
        Some(types) => types.iter().map(name).collect::<Vec<_>>().join(" or "),
        None => name(&schema["type"]),
    };
    match schema["format"].as_str().filter(|format| ["uuid", "uri", "date-time"].contains(format)) {
        Some(format) => format!("{names}, {format}"),
        None => names,
    }
}

/// The allowed values and the default.
fn bounds(schema: &Value) -> String {
    let code = |value: &Value| {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("<code>{}</code>", escape(&shown))
    };
    let mut parts = Vec::new();
    if let Some(words) = schema["enum"].as_array() {
        parts.push(format!("One of {}.", words.iter().map(code).collect::<Vec<_>>().join(", ")));
    }
    if let (Some(least), Some(most)) = (whole(&schema["minimum"]), whole(&schema["maximum"])) {
        parts.push(format!("{least} to {most}."));
    }
    if !schema["default"].is_null() {
        parts.push(format!("Default: {}.", code(&schema["default"])));
    }
    parts.into_iter().map(|part| format!(" <span class=\"bound\">{part}</span>")).collect()
}

fn whole(number: &Value) -> Option<i64> {
    number.as_i64().or_else(|| number.as_f64().map(|number| number as i64))
}

/// The headers of a response.
pub(super) fn headers(document: Document<'_>, headers: &Map<String, Value>) -> String {
    let items = headers.iter().map(|(name, header)| {
        let about = document.resolve(header)["description"].as_str().unwrap_or_default();
        format!("<li><code>{}</code>: {}</li>", escape(name), inline(about))
    });
    format!("<ul class=\"headers\">{}</ul>\n", items.collect::<String>())
}
