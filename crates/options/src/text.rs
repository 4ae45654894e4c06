//! Values as text: in forms, queries and on the command line.

use crate::{Kind, Member, Object, Rectangle, Value, choices, sizes};

impl Kind {
    /// Reads a value from the text of a form, a query or a command line. None if it is not of this kind. Lists have one
    /// element on each line.
    pub fn parse(&self, text: &str) -> Option<Value> {
        match self {
            Self::Integer { .. } => text.trim().parse().ok().map(Value::Integer),
            Self::Number { .. } => {
                text.trim().parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Number)
            }
            Self::Flag => match text.trim() {
                "true" | "1" => Some(Value::Flag(true)),
                "false" | "0" => Some(Value::Flag(false)),
                _ => None,
            },
            Self::Word(_)
            | Self::Url
            | Self::Selector
            | Self::TimeZone
            | Self::Locale
            | Self::RequestFailure
            | Self::PageRanges
            | Self::GrabId
            | Self::ProxyId => Some(Value::Text(text.trim().to_owned())),
            Self::Text { .. } => Some(Value::Text(text.to_owned())),
            Self::Statuses { .. } => {
                let statuses = text.split([',', '\n', ' ', '\r']).filter(|status| !status.is_empty());
                Some(Value::Texts(statuses.map(str::to_owned).collect()))
            }
            Self::Rectangle => Rectangle::parse(text).map(Value::Rectangle),
            Self::Selectors { .. } | Self::Patterns { .. } => {
                Some(Value::Texts(lines(text).map(str::to_owned).collect()))
            }
            Self::Words(_) => {
                let words = text.split([',', '\n']).map(str::trim).filter(|word| !word.is_empty());
                Some(Value::Texts(words.map(str::to_owned).collect()))
            }
            Self::Chars { .. } => Some(Value::Text(text.to_owned())),
            Self::Object { members, separator } => parse_object(members, *separator, text).map(Value::Object),
            Self::Objects { members, .. } => parse_objects(members, text).map(Value::Objects),
            Self::Sizes { members, .. } => sizes::parse(members, text).map(Value::Objects),
            Self::Choices { .. } => choices::parse(text).map(Value::Objects),
            Self::Headers { .. } | Self::Labels { .. } => parse_headers(text).map(Value::Object),
        }
    }

    /// Writes a value as the text that [`Kind::parse`] reads.
    pub fn to_text(&self, value: &Value) -> String {
        match (self, value) {
            (_, Value::Text(text)) => text.clone(),
            (Self::Words(_), Value::Texts(words)) => words.join(", "),
            (_, Value::Texts(texts)) => texts.join("\n"),
            (Self::Object { members, separator }, Value::Object(object)) => write_object(members, *separator, object),
            (Self::Objects { members, .. }, Value::Objects(objects)) => write_objects(members, objects),
            (Self::Sizes { members, .. }, Value::Objects(objects)) => sizes::write(members, objects),
            (Self::Choices { .. }, Value::Objects(objects)) => choices::write(objects),
            (_, Value::Object(headers)) => write_headers(headers),
            (_, Value::Rectangle(rectangle)) => rectangle.to_text(),
            (_, Value::Flag(_) | Value::Integer(_) | Value::Number(_) | Value::Objects(_)) => value.to_string(),
        }
    }

    /// Whether the first two members of each object are written as a pair, `name=value`.
    pub fn is_of_pairs(&self) -> bool {
        if let Self::Objects { members, .. } = self { is_pair(members) } else { false }
    }

    /// How values of this kind are written as text, for those where it is not obvious.
    pub fn syntax(&self) -> Option<String> {
        let names = |members: &[Member], separator: &str| {
            members.iter().map(|member| member.name).collect::<Vec<_>>().join(separator)
        };
        match self {
            Self::Words(words) => Some(format!("Separated by commas: {}.", words.join(", "))),
            Self::Patterns { max } => Some(format!("One on each line, at most {max}.")),
            Self::Object { members, .. } if is_named(members) => Some("Written as name=value; flag.".to_owned()),
            Self::Object { members, separator } => {
                Some(format!("Written as {}.", names(members, &separator.to_string())))
            }
            Self::Objects { max, members } if is_pair(members) => {
                Some(format!("One on each line, at most {max}, such as name=value; path=/; secure."))
            }
            Self::Objects { max, members } => Some(format!(
                "One on each line, at most {max}, written as {}=….",
                names(members, "=…; ").replacen("=…", "", 1)
            )),
            Self::Sizes { max, .. } => Some(format!("Written as 390x844, separated by commas, at most {max}.")),
            Self::Choices { max, .. } => Some(format!("One JSON object on each line, at most {max}.")),
            Self::Headers { max, .. } => Some(format!("One Name: value on each line, at most {max}.")),
            Self::Labels { max, .. } => Some(format!("One name: value on each line, at most {max}.")),
            Self::Statuses { max } => Some(format!("4xx, 5xx or a number, one on each line, at most {max}.")),
            Self::Rectangle => Some("Written as x,y,width,height.".to_owned()),
            Self::Integer { .. }
            | Self::Number { .. }
            | Self::Flag
            | Self::Word(_)
            | Self::Url
            | Self::Selector
            | Self::TimeZone
            | Self::Locale
            | Self::Selectors { .. }
            | Self::Text { .. }
            | Self::RequestFailure
            | Self::PageRanges
            | Self::GrabId
            | Self::ProxyId
            | Self::Chars { .. } => None,
        }
    }
}

/// Whether an object with these members is written with their names, because each of them may be left out.
fn is_named(members: &[Member]) -> bool {
    members.iter().all(|member| !member.is_required)
}

/// Whether the first two members of an object are written as a pair, without their names.
fn is_pair(members: &[Member]) -> bool {
    members.get(1).is_some_and(|second| second.is_required)
}

/// Reads `a,b,c`: the members in their order. Those at the end may be left out if they are not required. If none is
/// required, reads `name=value; flag`.
fn parse_object(members: &[Member], separator: char, text: &str) -> Option<Object> {
    if is_named(members) {
        let mut object = Object::new();
        parse_named(members, text.split(separator).map(str::trim).filter(|part| !part.is_empty()), &mut object)?;
        return Some(object);
    }
    let mut parts = text.trim().splitn(members.len().max(1), separator);
    let mut object = Object::new();
    for member in members {
        match parts.next() {
            Some(part) => _ = object.insert(member.name.to_owned(), member.kind.parse(part)?),
            None if member.is_required => return None,
            None => {}
        }
    }
    Some(object)
}

/// Writes what [`parse_object`] reads.
fn write_object(members: &[Member], separator: char, object: &Object) -> String {
    if is_named(members) {
        let parts = members.iter().filter_map(|member| {
            let value = object.get(member.name)?;
            Some(match *value == Value::Flag(true) {
                true => member.name.to_owned(),
                false => format!("{}={}", member.name, member.kind.to_text(value)),
            })
        });
        return parts.collect::<Vec<_>>().join(&format!("{separator} "));
    }
    let values = members.iter().map_while(|member| Some(member.kind.to_text(object.get(member.name)?)));
    values.collect::<Vec<_>>().join(&separator.to_string())
}

/// Reads lines like those of `Set-Cookie`: `first=second; member=value; flag`, or `first; member=value; flag` if the second
/// member is not required.
fn parse_objects(members: &[Member], text: &str) -> Option<Vec<Object>> {
    lines(text).map(|line| parse_attributes(members, line)).collect()
}

fn parse_attributes(members: &[Member], line: &str) -> Option<Object> {
    let [first, others @ ..] = members else { return None };
    let mut parts = line.split(';').map(str::trim).filter(|part| !part.is_empty());
    let beginning = parts.next()?;
    let mut object = Object::new();
    let others = match others {
        [second, others @ ..] if second.is_required => {
            let (name, value) = beginning.split_once('=')?;
            object.insert(first.name.to_owned(), first.kind.parse(name.trim())?);
            object.insert(second.name.to_owned(), second.kind.parse(value.trim())?);
            others
        }
        others => {
            object.insert(first.name.to_owned(), first.kind.parse(beginning)?);
            others
        }
    };
    parse_named(others, parts, &mut object)?;
    Some(object)
}

/// Reads `name=value` and `flag`. None if a name is not known or given twice, or a value is not of its kind.
fn parse_named<'a>(members: &[Member], parts: impl Iterator<Item = &'a str>, object: &mut Object) -> Option<()> {
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, "true"));
        let member = members.iter().find(|member| plain(member.name) == plain(name.trim()))?;
        if object.insert(member.name.to_owned(), member.kind.parse(value.trim())?).is_some() {
            return None;
        }
    }
    Some(())
}

/// Writes what [`parse_objects`] reads.
fn write_objects(members: &[Member], objects: &[Object]) -> String {
    let line = |object: &Object| {
        let parts = members.iter().filter_map(|member| match (member.kind, object.get(member.name)?) {
            (Kind::Flag, Value::Flag(true)) => Some(member.name.to_owned()),
            (Kind::Flag, _) => None,
            (kind, value) => Some(format!("{}={}", member.name, kind.to_text(value))),
        });
        let text = parts.collect::<Vec<_>>().join("; ");
        // The first member is written without its name, and so is the second of a pair.
        let [first, others @ ..] = members else { return text };
        let text = text.strip_prefix(&format!("{}=", first.name)).unwrap_or(&text);
        match others {
            [second, ..] if second.is_required => text.replacen(&format!("; {}=", second.name), "=", 1),
            _ => text.to_owned(),
        }
    };
    objects.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Reads lines of `Name: value`.
fn parse_headers(text: &str) -> Option<Object> {
    let mut headers = Object::new();
    for line in lines(text) {
        let (name, value) = line.split_once(':')?;
        if headers.insert(name.trim().to_owned(), Value::Text(value.trim().to_owned())).is_some() {
            return None;
        }
    }
    Some(headers)
}

/// Writes what [`parse_headers`] reads.
fn write_headers(headers: &Object) -> String {
    let lines = headers.iter().map(|(name, value)| {
        let text = if let Value::Text(text) = value { text.clone() } else { value.to_string() };
        format!("{name}: {text}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Lines that are not blank.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::find;

    #[test]
    fn texts_of_objects_are_read_and_written() {
        for (name, text) in [
            ("geolocation", "48.2,16.37"),
            ("geolocation", "-48.2,16,100"),
            ("basic_auth", "me:pass:word"),
            ("thumbnail", "400,300"),
            ("thumbnail", "400,300,cover"),
            ("headers", "accept: text/html\nx-test: a:b"),
            ("cookies", "a=b\nsid=x=y; domain=example.com; path=/; secure; http_only; same_site=Lax; expires=1"),
            ("highlight", "h1\na[href='x=y'] > b; label=A = b; color=blue"),
            ("fail_on_request", "*/api/*; status=5xx\nhttps://a.example/?b=c"),
            ("block_types", "image, font"),
            ("block_urls", "https://a.example/*\n*.mp4"),
            ("also", "html, pdf"),
            ("pdf", "format=a5; landscape; background=false; margin_mm=0; pages=1-3, 5"),
            ("pdf", "margin_top_mm=12.5; scale=0.8; header={title}|{date}; footer=a=b {page}; tagged=false; outline"),
        ] {
            let kind = find(name).unwrap().kind;
            let value = kind.parse(text).unwrap_or_else(|| panic!("{name}: {text}"));
            assert_eq!(kind.to_text(&value), text, "{name}");
            assert_eq!(find(name).unwrap().check(&value), Ok(()), "{name}: {text}");
        }
        let cookies = find("cookies").unwrap().kind;
        assert_eq!(cookies.parse("a=b; HttpOnly; SameSite=Lax"), cookies.parse("a=b; same_site=Lax; http_only"));
    }

    #[test]
    fn texts_that_are_no_objects_are_not_read() {
        for (name, text) in [
            ("geolocation", "48.2"),
            ("geolocation", "north,16"),
            ("basic_auth", "me"),
            ("headers", "no header"),
            ("headers", "a: 1\na: 2"),
            ("cookies", "a"),
            ("cookies", "a=b; colour=red"),
            ("cookies", "a=b; path=/; path=/a"),
            ("highlight", "h1; size=2"),
            ("fail_on_request", "*/api/*; colour=red"),
            ("pdf", "format=a5; colour"),
            ("pdf", "margin_mm=wide"),
            ("pdf", "scale=NaN"),
        ] {
            assert_eq!(find(name).unwrap().kind.parse(text), None, "{name}: {text}");
        }
    }
}
