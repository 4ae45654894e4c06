//! Texts of the caller: as an object of a request, and by name.

use std::collections::BTreeMap;

use grabd_options::{Object, OptionType as _, Value};

/// The texts of an object. None if one of its members is something else.
pub(super) fn texts(object: &Object) -> Option<BTreeMap<String, String>> {
    let text = |(name, value): (&String, &Value)| Some((name.clone(), String::from_value(value.clone())?));
    object.iter().map(text).collect()
}

/// The option for texts. None if there are none.
pub(super) fn labels(texts: &BTreeMap<String, String>) -> Option<Object> {
    let label = |(name, text): (&String, &String)| (name.clone(), Value::Text(text.clone()));
    (!texts.is_empty()).then(|| texts.iter().map(label).collect())
}
