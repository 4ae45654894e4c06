//! Labels: short texts by name, which mean something to the caller only.

use crate::{Object, Value};

/// The most characters of a name.
const NAME_CHARS: usize = 64;

/// What is accepted, as the end of "must be …".
pub(crate) fn allowed(max: usize, max_chars: usize) -> String {
    format!(
        "an object of at most {max} strings of at most {max_chars} characters without control characters, with keys of \
         1 to {NAME_CHARS} letters, digits, `_`, `-` and `.`"
    )
}

/// Whether there are at most `max` labels, with valid names and texts of at most `max_chars` characters.
pub(crate) fn accepts(max: usize, max_chars: usize, labels: &Object) -> bool {
    let is_text = |text: &String| text.chars().count() <= max_chars && !text.chars().any(char::is_control);
    let is_value = |value: &Value| matches!(value, Value::Text(text) if is_text(text));
    labels.len() <= max && labels.iter().all(|(name, value)| is_name(name) && is_value(value))
}

fn is_name(name: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=NAME_CHARS).contains(&name.len()) && name.bytes().all(is_name_byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn object(members: &[(&str, Value)]) -> Object {
        members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn labels_have_plain_names_and_short_values() {
        let accepts = |labels: &[(&str, Value)]| accepts(2, 3, &object(labels));
        assert!(accepts(&[]) && accepts(&[("Order.id-1_a", text("äöü")), ("b", text(""))]));
        assert!(accepts(&[(&"n".repeat(64), text(""))]));
        for name in ["", "a b", "a:b", "ä", &"n".repeat(65)] {
            assert!(!accepts(&[(name, text("a"))]), "{name}");
        }
        for value in [text("abcd"), text("a\nb"), Value::Integer(1), Value::Flag(true)] {
            assert!(!accepts(&[("a", value.clone())]), "{value:?}");
        }
        assert!(!accepts(&[("a", text("")), ("b", text("")), ("c", text(""))]));
    }

    #[test]
    fn labels_are_read_from_lines_and_written_as_lines() {
        let kind = Kind::Labels { max: 2, max_chars: 3 };
        let labels = Value::Object(object(&[("a", text("b: c")), ("d", text(""))]));
        assert_eq!(kind.parse("a: b: c\n d:\n"), Some(labels.clone()));
        assert_eq!(kind.parse(&kind.to_text(&labels)), Some(labels));
        assert_eq!(kind.parse("no label"), None);
    }
}
