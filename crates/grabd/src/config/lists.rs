//! Lists that may be written as one text with commas, as the environment needs it.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    List(Vec<String>),
}

/// A list of `T`, from an array of texts or from one text with commas.
pub(super) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    let items = match Written::deserialize(deserializer)? {
        Written::Text(text) => text.split(',').map(|item| item.trim().to_owned()).collect(),
        Written::List(items) => items,
    };
    items
        .iter()
        .filter(|item| !item.is_empty())
        .map(|item| item.parse().map_err(|error| D::Error::custom(format!("`{item}` in the list: {error}"))))
        .collect()
}
