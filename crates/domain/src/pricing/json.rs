//! Any JSON value, so that unknown members are preserved.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Any JSON value. Integers beyond 64 bits become the nearest floating-point number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the types of JSON")]
pub enum Json {
    Null,
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    Array(Vec<Json>),
    Object(BTreeMap<String, Json>),
}
