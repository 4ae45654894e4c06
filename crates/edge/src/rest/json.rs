//! Strict JSON parsing: one object, no duplicate members, limited nesting. Members keep their source text for error
//! messages.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Deepest nesting of objects and arrays.
const MAX_DEPTH: usize = 32;

/// 2^53. Larger integers are not exact as `f64`, which is how `1280.0` is read.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// The members of an object with their source text.
pub(crate) type Members<'a> = HashMap<String, &'a RawValue>;

/// Parses a body that must be one object.
///
/// # Errors
/// With a description of what was received, to follow "must be a JSON object; got …".
pub(crate) fn object(body: &[u8]) -> Result<Members<'_>, String> {
    let text =
        std::str::from_utf8(body).map_err(|error| format!("bytes that are not UTF-8 at {}", error.valid_up_to()))?;
    let value: &RawValue = serde_json::from_str(text).map_err(|error| malformed(&error))?;
    if !value.get().starts_with('{') {
        return Err(value.get().to_owned());
    }
    let object: Object<'_> = parse_object(value)?;
    check_nested(value, 1)?;
    Ok(object.members)
}

/// A JSON string.
pub(crate) fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// A JSON string or `null`.
pub(crate) fn nullable_string(value: &RawValue) -> Option<Option<String>> {
    serde_json::from_str(value.get()).ok()
}

/// An array of JSON strings.
pub(crate) fn strings(value: &RawValue) -> Option<Vec<String>> {
    serde_json::from_str(value.get()).ok()
}

/// A JSON object whose members are no `null`.
pub(crate) fn members(value: &RawValue) -> Option<grabd_options::Object> {
    serde_json::from_str(value.get()).ok()
}

/// An array of such objects.
pub(crate) fn objects(value: &RawValue) -> Option<Vec<grabd_options::Object>> {
    serde_json::from_str(value.get()).ok()
}

/// An array of JSON strings and integers, which become strings.
pub(crate) fn strings_and_integers(value: &RawValue) -> Option<Vec<String>> {
    let members: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
    members.into_iter().map(|member| string(member).or_else(|| Some(integer(member)?.to_string()))).collect()
}

/// `true` or `false`.
pub(crate) fn boolean(value: &RawValue) -> Option<bool> {
    serde_json::from_str(value.get()).ok()
}

/// A JSON number without a fraction, in any notation.
pub(crate) fn integer(value: &RawValue) -> Option<i64> {
    let text = value.get();
    if let Ok(integer) = text.parse() {
        return Some(integer);
    }
    let number: f64 = serde_json::from_str(text).ok()?;
    (number.fract() == 0.0 && number.abs() < MAX_EXACT).then_some(number as i64)
}

/// A finite JSON number.
pub(crate) fn number(value: &RawValue) -> Option<f64> {
    serde_json::from_str(value.get()).ok()
}

/// An object and the name of its first duplicate member.
struct Object<'a> {
    members: Members<'a>,
    duplicate: Option<String>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut object = Object { members: Members::new(), duplicate: None };
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            match object.members.entry(name) {
                Entry::Vacant(free) => _ = free.insert(value),
                Entry::Occupied(taken) => _ = object.duplicate.get_or_insert_with(|| taken.key().clone()),
            }
        }
        Ok(object)
    }
}

fn parse_object(value: &RawValue) -> Result<Object<'_>, String> {
    let object: Object<'_> = serde_json::from_str(value.get()).map_err(|error| malformed(&error))?;
    match object.duplicate {
        Some(name) => Err(format!("the member {name:?} twice")),
        None => Ok(object),
    }
}

/// Checks a well-formed value for duplicate members and excessive nesting.
fn check_nested(value: &RawValue, depth: usize) -> Result<(), String> {
    let text = value.get();
    let nested: Vec<&RawValue> = match text.as_bytes().first() {
        Some(b'{' | b'[') if depth > MAX_DEPTH => return Err(format!("JSON nested deeper than {MAX_DEPTH} levels")),
        Some(b'{') => parse_object(value)?.members.into_values().collect(),
        Some(b'[') => serde_json::from_str(text).map_err(|error| malformed(&error))?,
        _ => return Ok(()),
    };
    nested.into_iter().try_for_each(|value| check_nested(value, depth + 1))
}

fn malformed(error: &serde_json::Error) -> String {
    format!("malformed JSON at line {} column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn object_accepts_one_object_and_describes_everything_else() {
        let nested = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        let deep = nested(33);
        let very_deep = format!("{{\"a\":{}", "[".repeat(60_000));
        let cases: [(&[u8], Result<usize, &str>); 24] = [
            (b"{}", Ok(0)),
            (b" \r\n\t{ \"a\" : 1 , \"b\" : [ { } ] } \n", Ok(2)),
            (br#"{"a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":1}]}"#, Ok(3)),
            (br#"{"a":1e400}"#, Ok(1)),
            (b"", Err("malformed JSON at line 1 column 0")),
            (b"{", Err("malformed JSON at line 1 column 1")),
            (b"{\"url\"", Err("malformed JSON at line 1 column 6")),
            (b"{\n  'url': 1}", Err("malformed JSON at line 2 column 3")),
            (br#"{"a":1,}"#, Err("malformed JSON at line 1 column 8")),
            (br#"{"a":01}"#, Err("malformed JSON at line 1 column 7")),
            (br#"{"a":NaN}"#, Err("malformed JSON at line 1 column 6")),
            (b"{\"a\":\"\n\"}", Err("malformed JSON at line 1 column 6")),
            (br#"{"\ud800":1}"#, Err("malformed JSON at line 1 column 9")),
            (b"{} {}", Err("malformed JSON at line 1 column 4")),
            (b"{}x", Err("malformed JSON at line 1 column 3")),
            (b"\xef\xbb\xbf{}", Err("malformed JSON at line 1 column 1")),
            (b"{\"a\":\"\xff\"}", Err("bytes that are not UTF-8 at 6")),
            (b"[1, 2]", Err("[1, 2]")),
            (b" \"{}\" ", Err("\"{}\"")),
            (b"null", Err("null")),
            (br#"{"a":1,"b":2,"a":1}"#, Err("the member \"a\" twice")),
            (br#"{"x":[{"y":{"a":1,"\u0061":1}}]}"#, Err("the member \"a\" twice")),
            (deep.as_bytes(), Err("JSON nested deeper than 32 levels")),
            (very_deep.as_bytes(), Err("malformed JSON at line 1 column 60005")),
        ];
        for (body, expected) in cases {
            let seen = object(body).map(|members| members.len());
            assert_eq!(seen, expected.map_err(str::to_owned), "{}", String::from_utf8_lossy(body));
        }
        assert!(object(nested(32).as_bytes()).is_ok());
    }

    #[test]
    fn deep_and_wide_bodies_are_parsed_in_bounded_time() {
        let levels = 30_000;
        let body = format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(object(body.as_bytes()).err().as_deref(), Some("JSON nested deeper than 32 levels"));
        let wide = format!("{{{}\"z\":1}}", (0..6000).map(|n| format!("\"{n}\":[],")).collect::<String>());
        assert_eq!(object(wide.as_bytes()).map(|members| members.len()), Ok(6001));
    }

    #[test]
    fn integers_are_numbers_without_a_fraction() {
        for (text, expected) in [
            ("1280", Some(1280)),
            ("1280.0", Some(1280)),
            ("1.28e3", Some(1280)),
            ("128E1", Some(1280)),
            ("-0", Some(0)),
            ("-0.0", Some(0)),
            ("-5", Some(-5)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("1e400", None),
            ("1e300", None),
            ("1.5", None),
            ("1e-1", None),
            ("\"1280\"", None),
            ("\"abc\"", None),
            ("null", None),
            ("true", None),
            ("[1]", None),
        ] {
            assert_eq!(integer(raw(text)), expected, "{text}");
        }
    }

    #[test]
    fn strings_and_booleans_are_not_coerced() {
        assert_eq!(string(raw(r#""a\u00e9\n""#)), Some("aé\n".to_owned()));
        assert_eq!(nullable_string(raw("null")), Some(None));
        assert_eq!(nullable_string(raw("\"#a\"")), Some(Some("#a".to_owned())));
        assert_eq!((boolean(raw("true")), boolean(raw("false"))), (Some(true), Some(false)));
        assert_eq!(strings(raw(r#"["a", "*"]"#)), Some(vec!["a".to_owned(), "*".to_owned()]));
        for wrong in ["1", "\"a\"", "[1]", "[\"a\", null]", "null", "{}"] {
            assert_eq!(strings(raw(wrong)), None, "{wrong}");
        }
        for wrong in ["1", "[]", "{}", "\"\\ud800\""] {
            assert_eq!((string(raw(wrong)), nullable_string(raw(wrong)), boolean(raw(wrong))), (None, None, None));
        }
        assert_eq!((string(raw("null")), boolean(raw("null")), boolean(raw("\"yes\""))), (None, None, None));
    }
}
