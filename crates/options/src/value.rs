//! Values of options, whatever their type.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A rectangle on a page, in CSS pixels from its top left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rectangle {
    /// The left edge.
    pub x: i64,
    /// The top edge.
    pub y: i64,
    /// The width.
    pub width: i64,
    /// The height.
    pub height: i64,
}

impl Rectangle {
    /// Reads `x,y,width,height`. None for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers: Option<Vec<i64>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
        match numbers?.as_slice() {
            &[x, y, width, height] => Some(Self { x, y, width, height }),
            _ => None,
        }
    }

    /// The form that `parse` reads.
    pub fn to_text(&self) -> String {
        let Self { x, y, width, height } = self;
        format!("{x},{y},{width},{height}")
    }
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// Texts.
    Texts(Vec<String>),
    /// Objects.
    Objects(Vec<Object>),
    /// A rectangle. It is read before other objects, because every rectangle is also one of those.
    Rectangle(Rectangle),
    /// An object.
    Object(Object),
}

impl Value {
    /// The number, which may be written without a fraction. None for anything else.
    pub const fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            #[expect(clippy::cast_precision_loss, reason = "no option has a bound beyond 2^53")]
            Self::Integer(number) => Some(*number as f64),
            Self::Flag(_)
            | Self::Text(_)
            | Self::Texts(_)
            | Self::Objects(_)
            | Self::Object(_)
            | Self::Rectangle(_) => None,
        }
    }
}

/// The members of an object.
pub type Object = BTreeMap<String, Value>;

/// What errors show instead of the value of a secret option.
pub const HIDDEN: &str = "a value that is not shown";

/// A value that is not written to logs.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret<T>(pub T);

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The value as JSON, for error messages.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Texts(texts) => {
                f.write_str("[")?;
                for (at, text) in texts.iter().enumerate() {
                    write!(f, "{}\"{text}\"", if at == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Objects(objects) => {
                f.write_str("[")?;
                for (at, object) in objects.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    write_object(object, f)?;
                }
                f.write_str("]")
            }
            Self::Object(object) => write_object(object, f),
            Self::Rectangle(Rectangle { x, y, width, height }) => {
                write!(f, "{{\"x\": {x}, \"y\": {y}, \"width\": {width}, \"height\": {height}}}")
            }
        }
    }
}

fn write_object(object: &Object, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("{")?;
    for (at, (name, value)) in object.iter().enumerate() {
        write!(f, "{}\"{name}\": {value}", if at == 0 { "" } else { ", " })?;
    }
    f.write_str("}")
}

/// The type of an option's field in [`crate::CaptureRequest`].
pub trait OptionType: Sized {
    /// From a value. None if it is of another type.
    fn from_value(value: Value) -> Option<Self>;
    /// As a value.
    fn to_value(&self) -> Value;
}

impl OptionType for bool {
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Flag(value) = value { Some(value) } else { None }
    }

    fn to_value(&self) -> Value {
        Value::Flag(*self)
    }
}

impl OptionType for i64 {
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Integer(value) = value { Some(value) } else { None }
    }

    fn to_value(&self) -> Value {
        Value::Integer(*self)
    }
}

impl OptionType for f64 {
    fn from_value(value: Value) -> Option<Self> {
        value.as_f64()
    }

    fn to_value(&self) -> Value {
        Value::Number(*self)
    }
}

impl OptionType for String {
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Text(value) = value { Some(value) } else { None }
    }

    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }
}

impl OptionType for Vec<String> {
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Texts(value) = value { Some(value) } else { None }
    }

    fn to_value(&self) -> Value {
        Value::Texts(self.clone())
    }
}

impl OptionType for Object {
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Object(value) = value { Some(value) } else { None }
    }

    fn to_value(&self) -> Value {
        Value::Object(self.clone())
    }
}

impl OptionType for Vec<Object> {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Objects(value) => Some(value),
            // An empty list may have been read as one of texts.
            Value::Texts(texts) if texts.is_empty() => Some(Self::new()),
            Value::Texts(_)
            | Value::Text(_)
            | Value::Flag(_)
            | Value::Integer(_)
            | Value::Number(_)
            | Value::Object(_)
            | Value::Rectangle(_) => None,
        }
    }

    fn to_value(&self) -> Value {
        Value::Objects(self.clone())
    }
}

impl<T: OptionType> OptionType for Secret<T> {
    fn from_value(value: Value) -> Option<Self> {
        T::from_value(value).map(Self)
    }

    fn to_value(&self) -> Value {
        self.0.to_value()
    }
}

impl OptionType for Rectangle {
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Rectangle(rectangle) = value { Some(rectangle) } else { None }
    }

    fn to_value(&self) -> Value {
        Value::Rectangle(*self)
    }
}
