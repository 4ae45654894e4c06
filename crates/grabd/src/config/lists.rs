//! Lists that may be written as comma-separated text, as environment variables require.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrList {
    Text(String),
    List(Vec<String>),
}

/// Deserializes a list of `T` from an array of strings or from comma-separated text.
pub(super) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    let items = match TextOrList::deserialize(deserializer)? {
        TextOrList::Text(text) => text.split(',').map(|item| item.trim().to_owned()).collect(),
        TextOrList::List(items) => items,
    };
    items
        .iter()
        .filter(|item| !item.is_empty())
        .map(|item| item.parse().map_err(|error| D::Error::custom(format!("`{item}` in the list: {error}"))))
        .collect()
}
