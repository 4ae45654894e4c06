//! Schemas as HTML tables, and headers as lists.

use serde_json::{Map, Value};

use super::text::{escape, inline};

/// The name of a component that a schema refers to.
pub(super) fn component(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// The number of members of an object, without those of nested objects.
pub(super) fn count_members(schema: &Value) -> usize {
    schema["properties"].as_object().map_or(0, Map::len)
}

/// A table with a name, which can be scrolled if it is wider than the page.
pub(super) fn table(name: &str, columns: [&str; 3], rows: &str) -> String {
    let columns = columns.map(|column| format!("<th scope=\"col\">{column}</th>")).concat();
    format!(
        "<div class=\"scroll\" role=\"region\" aria-label=\"{}\" tabindex=\"0\"><table>\
         <thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>\n",
        escape(name)
    )
}

/// The members of an object, including those of nested objects. `place` returns the address of a schema.
pub(super) fn members(name: &str, schema: &Value, place: Place<'_>) -> String {
    let mut rows = String::new();
    collect(schema, "", place, &mut rows);
    if rows.is_empty() {
        return String::new();
    }
    table(&format!("Members of {name}"), ["Member", "Type", "Meaning"], &rows)
}

/// Returns the address of the schema with a name.
pub(super) type Place<'a> = &'a dyn Fn(&str) -> String;

fn collect(schema: &Value, prefix: &str, place: Place<'_>, rows: &mut String) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in properties {
        let path = format!("{prefix}{name}");
        rows.push_str(&row(&path, property, required.contains(&name.as_str()), place));
        let inner = if property["type"] == "array" { &property["items"] } else { property };
        if component(inner).is_none() {
            let mark = if property["type"] == "array" { "[]." } else { "." };
            collect(inner, &format!("{path}{mark}"), place, rows);
        }
    }
}

/// The row of a member, with the description in its schema.
fn row(name: &str, schema: &Value, required: bool, place: Place<'_>) -> String {
    let about = schema["description"].as_str().unwrap_or_default();
    row_with_description(name, schema, required, about, place)
}

/// The row of a member or parameter.
pub(super) fn row_with_description(
    name: &str,
    schema: &Value,
    required: bool,
    about: &str,
    place: Place<'_>,
) -> String {
    let mark = if required { " <span class=\"required\">required</span>" } else { "" };
    // Lines may break after a dot or an underscore.
    let name = escape(name).replace('.', ".<wbr>").replace('_', "_<wbr>");
    format!(
        "<tr><th scope=\"row\"><code>{name}</code>{mark}</th><td>{}</td><td>{}{}</td></tr>\n",
        type_of(schema, place),
        inline(about),
        bounds(schema)
    )
}

/// The name of the type.
fn type_of(schema: &Value, place: Place<'_>) -> String {
    if let Some(name) = component(schema) {
        return format!("<a href=\"{}\">{}</a>", escape(&place(name)), escape(name));
    }
    if schema["type"] == "array" {
        return format!("array of {}", type_of(&schema["items"], place));
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        return choices.iter().map(|choice| type_of(choice, place)).collect::<Vec<_>>().join(" or ");
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

/// The headers of a response. `resolve` follows references.
pub(super) fn headers<'a>(headers: &'a Map<String, Value>, resolve: impl Fn(&'a Value) -> &'a Value) -> String {
    let items = headers.iter().map(|(name, header)| {
        let about = resolve(header)["description"].as_str().unwrap_or_default();
        format!("<li><code>{}</code>: {}</li>", escape(name), inline(about))
    });
    format!("<ul class=\"headers\">{}</ul>\n", items.collect::<String>())
}
