//! Lists of objects of which each has exactly one of some members: what is wrong with them, and how they are written.

use crate::{Kind, Member, Object, Value};

impl Kind {
    /// Where a list of objects with one member each is invalid, such as `[2].type.into`. `None` if nothing is, if it has too many
    /// objects, or if the value or the kind is another one.
    pub fn invalid_part(&self, value: &Value) -> Option<String> {
        let (Self::Choices { max, members }, Value::Objects(objects)) = (self, value) else { return None };
        if objects.len() > *max {
            return None;
        }
        let part = |(at, object): (usize, &Object)| Some(format!("[{at}]{}", invalid_choice(members, object)?));
        objects.iter().enumerate().find_map(part)
    }

    /// What is accepted at a part that [`Kind::invalid_part`] returns, as the end of "must be …". `name` is that of the option.
    /// `None` if there is no such part.
    pub fn allowed_at(&self, name: &str, part: &str) -> Option<String> {
        let Self::Choices { members, .. } = self else { return None };
        let (index, path) = part.strip_prefix('[')?.split_once(']')?;
        let index: usize = index.parse().ok()?;
        let mut allowed = format!("an object with exactly one of {}", names(members));
        let mut members: &[Member] = members;
        for part in path.split('.').skip(1) {
            let member = members.iter().find(|member| member.name == part)?;
            allowed = member.kind.allowed();
            members = if let Kind::Object { members, .. } = member.kind { members } else { &[] };
        }
        Some(format!("an array whose `{name}[{index}]{path}` is {allowed}"))
    }
}

fn names(members: &[Member]) -> String {
    members.iter().map(|member| format!("`{}`", member.name)).collect::<Vec<_>>().join(", ")
}

/// The invalid member of an object that must have one of these; empty if it is the object itself. `None` if it is valid.
fn invalid_choice(members: &[Member], object: &Object) -> Option<String> {
    let mut given = object.iter();
    let (Some((name, value)), None) = (given.next(), given.next()) else { return Some(String::new()) };
    let Some(member) = members.iter().find(|member| member.name == name.as_str()) else { return Some(String::new()) };
    match (member.kind, value) {
        (Kind::Object { members, .. }, Value::Object(inner)) => {
            invalid_member(members, inner).map(|part| format!(".{name}{part}"))
        }
        (kind, value) => (!kind.accepts(value)).then(|| format!(".{name}")),
    }
}

/// The invalid member of an object within another one; empty if it has a member too many. `None` if it is valid.
fn invalid_member(members: &[Member], object: &Object) -> Option<String> {
    if !object.keys().all(|name| members.iter().any(|member| member.name == name.as_str())) {
        return Some(String::new());
    }
    let is_invalid = |member: &&Member| match object.get(member.name) {
        Some(value) => !member.kind.accepts(value),
        None => member.is_required,
    };
    members.iter().find(is_invalid).map(|member| format!(".{}", member.name))
}

/// Reads JSON objects, one on each line, or one array of them. `None` for anything else.
pub(crate) fn parse(text: &str) -> Option<Vec<Object>> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).ok();
    }
    serde_json::Deserializer::from_str(text).into_iter::<Object>().collect::<Result<_, _>>().ok()
}

/// Writes what [`parse`] reads.
pub(crate) fn write(objects: &[Object]) -> String {
    let lines = objects.iter().filter_map(|object| serde_json::to_string(object).ok());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use crate::find;

    fn check(text: &str) -> Result<(), String> {
        let option = find("steps").unwrap();
        let value = option.kind.parse(text).unwrap_or_else(|| panic!("{text}"));
        option.check(&value).map_err(|problem| {
            assert_eq!(problem.seen, crate::HIDDEN);
            problem.allowed
        })
    }

    #[test]
    fn objects_have_exactly_one_member_and_the_invalid_one_is_named() {
        let one_of = "an object with exactly one of `click`, `type`, `press`, `hover`, `select`, `scroll_to`, `wait_for`, \
                      `wait_for_text`, `script`, `drag`, `capture`";
        assert_eq!(check(r##"{"click": "#a"} {"type": {"into": "#b", "text": "c", "secret": true}}"##), Ok(()));
        assert_eq!(check(""), Ok(()));
        for (text, part, allowed) in [
            (r#"{"tap": "a"}"#, "steps[0]", one_of),
            (r#"{"click": "a"} {}"#, "steps[1]", one_of),
            (r#"{"click": "a", "hover": "b"}"#, "steps[0]", one_of),
            (r#"{"click": 5}"#, "steps[0].click", "a string of 1 to 1024 characters without control characters"),
            (
                r#"{"press": "Tab"} {"hover": "b"} {"type": {"into": " ", "text": "c"}}"#,
                "steps[2].type.into",
                "a string of 1 to 1024 characters without control characters",
            ),
            (r#"{"type": {"into": "a"}}"#, "steps[0].type.text", "a string of 1 to 4096 characters"),
            (r#"{"type": {"into": "a", "text": "b", "secret": 1}}"#, "steps[0].type.secret", "true or false"),
            (
                r#"{"drag": {"from": "a"}}"#,
                "steps[0].drag.to",
                "a string of 1 to 1024 characters without control characters",
            ),
        ] {
            assert_eq!(check(text), Err(format!("an array whose `{part}` is {allowed}")), "{text}");
        }
        let other = check(r#"{"select": {"in": "a", "value": "b"}}"#).unwrap_err();
        assert!(other.starts_with("an array whose `steps[0].select` is an object with `in` ("), "{other}");
        let many = check(&"{\"press\": \"Tab\"}\n".repeat(21)).unwrap_err();
        assert!(many.starts_with("an array of at most 20 objects, each with exactly one of `click` ("), "{many}");
        assert_eq!(check(&"{\"press\": \"Tab\"}\n".repeat(20)), Ok(()));
    }

    #[test]
    fn parts_that_do_not_exist_have_no_text() {
        let kind = find("steps").unwrap().kind;
        for part in ["", "[x]", "[1", "[0].tap", "[0].click.x", "[-1]"] {
            assert_eq!(kind.allowed_at("steps", part), None, "{part}");
        }
    }

    #[test]
    fn objects_are_read_from_lines_or_an_array_and_written_as_lines() {
        let kind = find("steps").unwrap().kind;
        let lines = "{\"click\":\"a\"}\n{\"select\":{\"in\":\"b\",\"option\":\"c\"}}";
        let value = kind.parse(lines).unwrap();
        assert_eq!(kind.to_text(&value), lines);
        assert_eq!(kind.parse(r#"[{"click": "a"}, {"select": {"in": "b", "option": "c"}}]"#), Some(value));
        for text in ["#a", "{", "[1]", "{\"click\": null}", "{\"click\": \"a\"} b"] {
            assert_eq!(kind.parse(text), None, "{text}");
        }
    }
}
