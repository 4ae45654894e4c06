//! Conversions between capture options as a message and as a [`CaptureRequest`].
//!
//! They are generated from the table of options: an option without a field in `CaptureOptions`, a field without an option,
//! and a field of another type do not compile.

use std::collections::HashMap;

use grabd_options::{CaptureRequest, Object, OptionType, Rectangle, Secret, Value, for_each_option};

use crate::v1::{
    self, BasicAuth, CaptureOptions, Cookie, Geolocation, Highlight, Pdf, RequestRule, Step, StepDrag, StepSelect,
    StepType, Thumbnail, Unparsed, Viewport,
};

/// The type of an option, with the type `W` of its field in the message.
trait WireField<W>: Sized {
    /// The field. `Err` with the value if the field cannot hold it.
    fn encode(&self) -> Result<W, String>;
    /// The option. None if the field is not set.
    fn decode(field: W) -> Option<Self>;
}

impl WireField<Option<i32>> for i64 {
    fn encode(&self) -> Result<Option<i32>, String> {
        i32::try_from(*self).map(Some).map_err(|_| self.to_string())
    }

    fn decode(field: Option<i32>) -> Option<Self> {
        field.map(Self::from)
    }
}

/// Types that the message has as well.
macro_rules! same {
    ($($type:ty),*) => {
        $(impl WireField<Option<$type>> for $type {
            fn encode(&self) -> Result<Option<$type>, String> {
                Ok(Some(self.clone()))
            }

            fn decode(field: Option<$type>) -> Option<Self> {
                field
            }
        })*
    };
}
same!(bool, f64, String);

/// Lists are empty where they are not set.
impl WireField<Self> for Vec<String> {
    fn encode(&self) -> Result<Self, String> {
        Ok(self.clone())
    }

    fn decode(field: Self) -> Option<Self> {
        (!field.is_empty()).then_some(field)
    }
}

/// Headers are empty where they are not set.
impl WireField<HashMap<String, String>> for Object {
    fn encode(&self) -> Result<HashMap<String, String>, String> {
        let header = |(name, value): (&String, &Value)| Some((name.clone(), String::from_value(value.clone())?));
        self.iter().map(header).collect::<Option<_>>().ok_or_else(|| self.to_value().to_string())
    }

    fn decode(field: HashMap<String, String>) -> Option<Self> {
        let headers: Self = field.into_iter().map(|(name, value)| (name, Value::Text(value))).collect();
        (!headers.is_empty()).then_some(headers)
    }
}

/// A message for objects of one kind.
trait ObjectMessage: Sized {
    /// None if the message cannot hold the object: it has another member, or one of another type.
    fn of_object(object: &Object) -> Option<Self>;
    /// The members that are set.
    fn into_object(self) -> Object;
}

/// The name of a member. Fields that are named like a keyword of Rust have a prefix.
fn member_name(ident: &'static str) -> &'static str {
    ident.strip_prefix("r#").unwrap_or(ident)
}

macro_rules! object_message {
    ($message:ident { $($member:ident: $type:ty),* }) => {
        impl ObjectMessage for $message {
            fn of_object(object: &Object) -> Option<Self> {
                let is_member = |name: &String| [$(member_name(stringify!($member))),*].contains(&name.as_str());
                if !object.keys().all(is_member) {
                    return None;
                }
                $(let $member = match object.get(member_name(stringify!($member))) {
                    Some(value) => Some(<$type as OptionType>::from_value(value.clone())?),
                    None => None,
                };)*
                Some(Self { $($member),* })
            }

            fn into_object(self) -> Object {
                let members = [$((member_name(stringify!($member)), self.$member.as_ref().map(OptionType::to_value))),*];
                members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
            }
        }
    };
}
object_message!(Cookie {
    name: String,
    value: String,
    domain: String,
    path: String,
    secure: bool,
    http_only: bool,
    same_site: String,
    expires: i64
});
object_message!(BasicAuth { username: String, password: String });
object_message!(Geolocation { latitude: f64, longitude: f64, accuracy: f64 });
object_message!(Viewport { width: i64, height: i64 });
object_message!(Thumbnail { width: i64, height: i64, fit: String });
object_message!(Highlight { selector: String, label: String, color: String });
object_message!(RequestRule { url: String, status: String });
object_message!(Pdf {
    format: String,
    landscape: bool,
    single_page: bool,
    background: bool,
    margin_mm: i64,
    pages: String,
    width_mm: f64,
    height_mm: f64,
    margin_top_mm: f64,
    margin_right_mm: f64,
    margin_bottom_mm: f64,
    margin_left_mm: f64,
    scale: f64,
    header: String,
    footer: String,
    css_page_size: bool,
    tagged: bool,
    outline: bool,
    first_page_header: String,
    first_page_footer: String
});
object_message!(StepType { into: String, text: String, secret: bool });
object_message!(StepSelect { r#in: String, option: String });
object_message!(StepDrag { from: String, to: String });
object_message!(Step {
    click: String,
    r#type: StepType,
    press: String,
    hover: String,
    select: StepSelect,
    scroll_to: String,
    wait_for: String,
    wait_for_text: String,
    script: String,
    drag: StepDrag,
    capture: String
});

/// Messages of objects within objects.
macro_rules! inner_message {
    ($($message:ty),*) => {
        $(impl OptionType for $message {
            fn from_value(value: Value) -> Option<Self> {
                if let Value::Object(object) = value { Self::of_object(&object) } else { None }
            }

            fn to_value(&self) -> Value {
                Value::Object(self.clone().into_object())
            }
        })*
    };
}
inner_message!(StepType, StepSelect, StepDrag);

impl<M: ObjectMessage> WireField<Option<M>> for Object {
    fn encode(&self) -> Result<Option<M>, String> {
        M::of_object(self).map(Some).ok_or_else(|| self.to_value().to_string())
    }

    fn decode(field: Option<M>) -> Option<Self> {
        field.map(M::into_object)
    }
}

impl<M: ObjectMessage> WireField<Vec<M>> for Vec<Object> {
    fn encode(&self) -> Result<Vec<M>, String> {
        self.iter().map(M::of_object).collect::<Option<_>>().ok_or_else(|| self.to_value().to_string())
    }

    fn decode(field: Vec<M>) -> Option<Self> {
        (!field.is_empty()).then(|| field.into_iter().map(M::into_object).collect())
    }
}

impl<W, T: WireField<W>> WireField<W> for Secret<T> {
    fn encode(&self) -> Result<W, String> {
        self.0.encode().map_err(|_| grabd_options::HIDDEN.to_owned())
    }

    fn decode(field: W) -> Option<Self> {
        T::decode(field).map(Self)
    }
}

impl WireField<Option<v1::Rectangle>> for Rectangle {
    fn encode(&self) -> Result<Option<v1::Rectangle>, String> {
        let side = |number: i64| i32::try_from(number).map_err(|_| self.to_value().to_string());
        let Self { x, y, width, height } = *self;
        Ok(Some(v1::Rectangle { x: side(x)?, y: side(y)?, width: side(width)?, height: side(height)? }))
    }

    fn decode(field: Option<v1::Rectangle>) -> Option<Self> {
        let v1::Rectangle { x, y, width, height } = field?;
        Some(Self { x: x.into(), y: y.into(), width: width.into(), height: height.into() })
    }
}

macro_rules! convert {
    ($($name:ident: $type:ty),*) => {
        /// The message of a request, and the fields that it cannot hold: those of another type, and integers that are out
        /// of every range.
        pub fn encode(request: &CaptureRequest) -> (CaptureOptions, Vec<Unparsed>) {
            let unparsed = request.unparsed.iter().map(|(field, seen)| Unparsed { field: field.clone(), seen: seen.clone() });
            let mut unparsed: Vec<Unparsed> = unparsed.collect();
            let mut options = CaptureOptions::default();
            $(if let Some(value) = &request.$name {
                match WireField::encode(value) {
                    Ok(field) => options.$name = field,
                    Err(seen) => unparsed.push(Unparsed { field: stringify!($name).to_owned(), seen }),
                }
            })*
            (options, unparsed)
        }

        /// The request of a message.
        pub fn decode(options: CaptureOptions, unparsed: Vec<Unparsed>) -> CaptureRequest {
            let CaptureOptions { $($name),* } = options;
            let unparsed = unparsed.into_iter().map(|Unparsed { field, seen }| (field, seen)).collect();
            CaptureRequest { $($name: <$type as WireField<_>>::decode($name),)* unparsed, unknown: Vec::new() }
        }
    };
}
for_each_option!(convert);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_the_wire() {
        let request = CaptureRequest {
            url: Some("https://example.com/".to_owned()),
            width: Some(800),
            full_page: Some(true),
            clip: Some(Rectangle { x: 0, y: 1, width: 2, height: 3 }),
            fail_on_status: Some(vec!["4xx".to_owned(), "503".to_owned()]),
            unparsed: vec![("height".to_owned(), "\"tall\"".to_owned())],
            ..CaptureRequest::default()
        };
        let (options, unparsed) = encode(&request);
        assert_eq!(decode(options, unparsed), request);
    }

    #[test]
    fn integers_beyond_32_bits_are_reported_with_their_value() {
        let request = CaptureRequest { width: Some(99_999_999_999), ..CaptureRequest::default() };
        let (options, unparsed) = encode(&request);
        assert_eq!(options, CaptureOptions::default());
        assert_eq!(unparsed, [Unparsed { field: "width".to_owned(), seen: "99999999999".to_owned() }]);
    }

    fn object(members: &[(&str, Value)]) -> Object {
        members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn objects_survive_the_wire() {
        let text = |text: &str| Value::Text(text.to_owned());
        let cookie = object(&[("name", text("a")), ("value", text("")), ("secure", Value::Flag(true))]);
        let request = CaptureRequest {
            geolocation: Some(object(&[("latitude", Value::Number(1.5)), ("longitude", Value::Number(-2.0))])),
            headers: Some(Secret(object(&[("x-a", text("1"))]))),
            cookies: Some(Secret(vec![cookie])),
            basic_auth: Some(Secret(object(&[("username", text("me")), ("password", text("p"))]))),
            steps: Some(Secret(vec![
                object(&[("type", Value::Object(object(&[("into", text("a")), ("text", text("b"))])))]),
                object(&[("select", Value::Object(object(&[("in", text("a")), ("option", text("b"))])))]),
                object(&[("scroll_to", text("bottom"))]),
                object(&[("drag", Value::Object(object(&[("from", text("a")), ("to", text("b"))])))]),
                object(&[("capture", text("menu"))]),
            ])),
            ..CaptureRequest::default()
        };
        let (options, unparsed) = encode(&request);
        assert_eq!(unparsed, []);
        assert_eq!(decode(options, unparsed), request);
    }

    #[test]
    fn objects_with_other_members_are_reported_and_secrets_are_not_shown() {
        let other = object(&[("token", Value::Text("abc".to_owned()))]);
        let request = CaptureRequest {
            geolocation: Some(other.clone()),
            basic_auth: Some(Secret(other)),
            ..CaptureRequest::default()
        };
        let (options, unparsed) = encode(&request);
        assert_eq!(options, CaptureOptions::default());
        let seen: Vec<(&str, &str)> = unparsed.iter().map(|of| (of.field.as_str(), of.seen.as_str())).collect();
        assert_eq!(seen, [("basic_auth", grabd_options::HIDDEN), ("geolocation", r#"{"token": "abc"}"#)]);
    }
}
