//! Values of the API's JSON: objects to send, and texts to show.

use serde_json::Value;

use crate::output;

/// An object of the members that have a value.
pub(crate) fn members<const N: usize>(all: [(&str, Option<Value>); N]) -> Value {
    Value::Object(all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

/// A time, or `-` if there is none.
pub(crate) fn moment(time: &Value) -> String {
    output::or_dash(time.as_str().map(output::moment))
}

/// A value as text, or `-` if there is none.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
