//! Types of options, their bounds, and the check of a value.

use std::ops::RangeInclusive;

use crate::{Object, Rectangle, Value, labels};

/// The most characters of a CSS selector, far beyond any that a person writes.
const SELECTOR_CHARS: usize = 1024;

/// The most characters of a URL pattern.
const PATTERN_CHARS: usize = 512;

/// Headers that describe the connection, that the browser sets itself, that have an option of their own, or by which a service
/// names itself to sites. The browser takes a referrer along to other origins.
const REFUSED_HEADERS: [&str; 12] = [
    "host",
    "content-length",
    "connection",
    "transfer-encoding",
    "upgrade",
    "te",
    "trailer",
    "cookie",
    "referer",
    "signature",
    "signature-agent",
    "signature-input",
];

/// Beginnings of the names of such headers.
const REFUSED_PREFIXES: [&str; 2] = ["proxy-", "sec-"];

/// The most characters of a time zone or a language tag.
const NAME_CHARS: usize = 64;

/// The classes of HTTP statuses that stand for all their statuses.
pub const STATUS_CLASSES: [&str; 2] = ["4xx", "5xx"];

/// How a request failed that got no answer.
pub const NO_ANSWER: &str = "failed";

/// HTTP statuses of failures.
pub const FAILURE_STATUSES: RangeInclusive<u16> = 400..=599;

/// The largest distance of a rectangle from the corner of the page. Few pages are longer.
pub const RECTANGLE_MAX_START: i64 = 100_000;

/// The largest side of a rectangle, which is that of an image.
pub const RECTANGLE_MAX_SIDE: i64 = 16_384;

/// The most characters of page ranges, and the largest page number in them.
const PAGES_CHARS: usize = 100;
const MAX_PAGE: u16 = 9999;

/// The characters of the id of a grab: a UUID (RFC 9562, section 4) with its hyphens.
const ID_CHARS: usize = 36;

/// The type of an option, with its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number between two bounds, inclusive.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
        /// What is counted, for people. May be empty.
        unit: &'static str,
    },
    /// A number between two bounds, inclusive.
    Number {
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// True or false.
    Flag,
    /// One of some words.
    Word(&'static [&'static str]),
    /// An absolute http or https URL.
    Url,
    /// A CSS selector. JSON `null` is none.
    Selector,
    /// The name of a time zone in the IANA database. Names are checked by who has the database.
    TimeZone,
    /// A language tag (BCP 47), such as `de-AT`.
    Locale,
    /// CSS selectors.
    Selectors {
        /// The most of them.
        max: usize,
    },
    /// Text without NUL, which neither CSS nor PostgreSQL can hold. A single line has no control characters either: it may
    /// become a header.
    Text {
        /// The most characters.
        max: usize,
        /// Whether it is shown and written in several lines.
        is_multiline: bool,
    },
    /// Some of some words, each at most once.
    Words(&'static [&'static str]),
    /// Patterns of URLs, in which `*` stands for any characters.
    Patterns {
        /// The most of them.
        max: usize,
    },
    /// Text without control characters, which may be empty.
    Chars {
        /// The fewest characters.
        min: usize,
        /// The most characters.
        max: usize,
        /// Characters that it cannot contain.
        except: &'static str,
    },
    /// An object.
    Object {
        /// Its members.
        members: &'static [Member],
        /// What is between them where the object is written as text.
        separator: char,
    },
    /// Objects, of which each is written as a line of text like that of a `Set-Cookie` header.
    Objects {
        /// The most of them.
        max: usize,
        /// Their members. The first two are a pair if both are required.
        members: &'static [Member],
    },
    /// Sizes, each of which is written as `390x844`.
    Sizes {
        /// The most of them.
        max: usize,
        /// Width and height.
        members: &'static [Member],
    },
    /// Objects, each of which has exactly one of some members, and is written as a line of JSON.
    Choices {
        /// The most of them.
        max: usize,
        /// Their members. None of them is required.
        members: &'static [Member],
    },
    /// Headers of a request: their values by name.
    Headers {
        /// The most of them.
        max: usize,
        /// The most characters of a value.
        max_chars: usize,
    },
    /// Texts by name, which mean something to the caller only.
    Labels {
        /// The most of them.
        max: usize,
        /// The most characters of a text.
        max_chars: usize,
    },
    /// HTTP statuses of failures, and classes of them. Their values are texts.
    Statuses {
        /// The most of them.
        max: usize,
    },
    /// How a request failed: the HTTP status of a failure, a class of them, or [`NO_ANSWER`]. Its value is a text.
    RequestFailure,
    /// A rectangle on the page.
    Rectangle,
    /// Numbers and ranges of pages of a document, such as `1-3, 5`.
    PageRanges,
    /// The id of a grab. Whether there is such a grab is checked by who has the grabs.
    GrabId,
    /// The id of a proxy. Whether there is such a proxy is checked by who has the proxies.
    ProxyId,
}

/// A member of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Type and bounds.
    pub kind: Kind,
    /// Whether the object is invalid without it.
    pub is_required: bool,
    /// What it is, in one line.
    pub help: &'static str,
}

impl Kind {
    /// What is accepted, as the end of "must be …".
    pub fn allowed(&self) -> String {
        match self {
            Self::Integer { min, max, .. } => format!("an integer from {min} to {max}"),
            Self::Number { min, max } => format!("a number from {min} to {max}"),
            Self::Flag => "true or false".to_owned(),
            Self::Word(words) => format!("one of {}", quoted(words)),
            Self::Url => "a string with an absolute http(s) URL".to_owned(),
            Self::Selector => format!("a CSS selector of 1 to {SELECTOR_CHARS} characters, or null"),
            Self::TimeZone => "the name of an IANA time zone such as \"Europe/Vienna\"".to_owned(),
            Self::Locale => "a language tag such as \"de-AT\"".to_owned(),
            Self::Selectors { max } => {
                format!("an array of at most {max} CSS selectors, each of 1 to {SELECTOR_CHARS} characters")
            }
            Self::Text { max, is_multiline: true } => format!("a string of 1 to {max} characters"),
            Self::Text { max, is_multiline: false } => {
                format!("a string of 1 to {max} characters without control characters")
            }
            Self::Words(words) => format!("an array of some of {}", quoted(words)),
            Self::Patterns { max } => {
                format!("an array of at most {max} URL patterns, each of 1 to {PATTERN_CHARS} characters")
            }
            Self::Chars { min, max, except: "" } => {
                format!("a string of {min} to {max} characters without control characters")
            }
            Self::Chars { min, max, except } => {
                format!("a string of {min} to {max} characters without control characters and `{except}`")
            }
            Self::Object { members, .. } => format!("an object with {}", described(members)),
            Self::Objects { max, members } | Self::Sizes { max, members } => {
                format!("an array of at most {max} objects, each with {}", described(members))
            }
            Self::Choices { max, members } => {
                let members = members.iter().map(|member| format!("`{}` ({})", member.name, member.kind.allowed()));
                let members = members.collect::<Vec<_>>().join(", ");
                format!("an array of at most {max} objects, each with exactly one of {members}")
            }
            Self::Headers { max, max_chars } => {
                format!(
                    "an object of at most {max} headers with values of at most {max_chars} ASCII characters; not {}",
                    refused_headers()
                )
            }
            Self::Labels { max, max_chars } => labels::allowed(*max, *max_chars),
            Self::Statuses { max } => {
                let (first, last) = (FAILURE_STATUSES.start(), FAILURE_STATUSES.end());
                format!("an array of at most {max} of \"4xx\", \"5xx\" and integers from {first} to {last}")
            }
            Self::RequestFailure => {
                let (first, last) = (FAILURE_STATUSES.start(), FAILURE_STATUSES.end());
                format!("\"4xx\", \"5xx\", an integer from {first} to {last}, or \"{NO_ANSWER}\"")
            }
            Self::PageRanges => format!(
                "page numbers from 1 to {MAX_PAGE} and ranges of them, such as \"1-3, 5\", of at most {PAGES_CHARS} \
                 characters"
            ),
            Self::Rectangle => format!(
                "an object with the integers `x` and `y` from 0 to {RECTANGLE_MAX_START}, and `width` and `height` from 1 \
                 to {RECTANGLE_MAX_SIDE}"
            ),
            Self::GrabId => "the id of a grab, such as \"01993e1c-7b1a-7000-8000-0123456789ab\"".to_owned(),
            Self::ProxyId => "the id of a proxy, such as \"01993e1c-7b1a-7000-8000-0123456789ab\"".to_owned(),
        }
    }

    /// The most characters of one text of this kind, where texts are of limited length.
    pub const fn max_chars(&self) -> Option<usize> {
        match self {
            Self::Selector | Self::Selectors { .. } => Some(SELECTOR_CHARS),
            Self::Text { max, .. } => Some(*max),
            Self::TimeZone | Self::Locale => Some(NAME_CHARS),
            Self::PageRanges => Some(PAGES_CHARS),
            Self::GrabId | Self::ProxyId => Some(ID_CHARS),
            Self::Patterns { .. } => Some(PATTERN_CHARS),
            Self::Chars { max, .. } => Some(*max),
            Self::Headers { max_chars, .. } | Self::Labels { max_chars, .. } => Some(*max_chars),
            Self::Integer { .. }
            | Self::Number { .. }
            | Self::Flag
            | Self::Word(_)
            | Self::Url
            | Self::Words(_)
            | Self::Object { .. }
            | Self::Objects { .. }
            | Self::Sizes { .. }
            | Self::Choices { .. }
            | Self::Statuses { .. }
            | Self::RequestFailure
            | Self::Rectangle => None,
        }
    }

    /// Whether the value is within the bounds. URLs are checked by whoever knows which addresses are public.
    pub(crate) fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Integer { min, max, .. }, Value::Integer(value)) => (min..=max).contains(&value),
            (Self::Number { min, max }, Value::Number(_) | Value::Integer(_)) => {
                value.as_f64().is_some_and(|number| (*min..=*max).contains(&number))
            }
            (Self::Flag, Value::Flag(_)) | (Self::Url, Value::Text(_)) => true,
            (Self::Word(words), Value::Text(word)) => words.contains(&word.as_str()),
            (Self::Selector, Value::Text(text)) => is_text(text, SELECTOR_CHARS),
            (Self::Text { max, is_multiline }, Value::Text(text)) => {
                is_text(text, *max) && (*is_multiline || !text.chars().any(char::is_control))
            }
            (Self::TimeZone, Value::Text(text)) => is_text(text, NAME_CHARS),
            (Self::Locale, Value::Text(text)) => is_language_tag(text),
            (Self::Selectors { max }, Value::Texts(texts)) => {
                texts.len() <= *max && texts.iter().all(|text| is_text(text, SELECTOR_CHARS))
            }
            (Self::Words(words), Value::Texts(texts)) => {
                let is_first = |at: usize, text: &String| !texts.iter().take(at).any(|other| other == text);
                texts.iter().enumerate().all(|(at, text)| words.contains(&text.as_str()) && is_first(at, text))
            }
            (Self::Patterns { max }, Value::Texts(texts)) => {
                texts.len() <= *max && texts.iter().all(|text| is_text(text, PATTERN_CHARS))
            }
            (Self::Chars { min, max, except }, Value::Text(text)) => {
                (min..=max).contains(&&text.chars().count())
                    && !text.chars().any(|char| char.is_control() || except.contains(char))
            }
            (Self::Object { members, .. }, Value::Object(object)) => is_object(members, object),
            (Self::Objects { max, members } | Self::Sizes { max, members }, Value::Objects(objects)) => {
                objects.len() <= *max && objects.iter().all(|object| is_object(members, object))
            }
            (Self::Choices { max, members }, Value::Objects(objects)) => {
                objects.len() <= *max && objects.iter().all(|object| object.len() == 1 && is_object(members, object))
            }
            (Self::Headers { max, max_chars }, Value::Object(headers)) => {
                headers.len() <= *max && are_headers(headers, *max_chars)
            }
            (Self::Labels { max, max_chars }, Value::Object(labels)) => labels::accepts(*max, *max_chars, labels),
            (Self::Statuses { max }, Value::Texts(texts)) => {
                texts.len() <= *max && texts.iter().all(|text| is_failure_status(text))
            }
            (Self::RequestFailure, Value::Text(text)) => text == NO_ANSWER || is_failure_status(text),
            (Self::PageRanges, Value::Text(text)) => are_page_ranges(text),
            (Self::GrabId | Self::ProxyId, Value::Text(text)) => is_id(text),
            (Self::Rectangle, Value::Rectangle(Rectangle { x, y, width, height })) => {
                [x, y].into_iter().all(|start| (0..=RECTANGLE_MAX_START).contains(start))
                    && [width, height].into_iter().all(|side| (1..=RECTANGLE_MAX_SIDE).contains(side))
            }
            (_, _) => false,
        }
    }
}

impl Kind {
    /// The first member of an object whose value is not within its bounds, and that value.
    pub(crate) fn invalid_member<'a>(&self, value: &'a Value) -> Option<(&'static Member, &'a Value)> {
        let (Self::Object { members, .. }, Value::Object(object)) = (*self, value) else { return None };
        members.iter().find_map(|member| {
            let value = object.get(member.name)?;
            (!member.kind.accepts(value)).then_some((member, value))
        })
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

fn described(members: &[Member]) -> String {
    let list = |is_required: bool| {
        let members = members.iter().filter(|member| member.is_required == is_required);
        members.map(|member| format!("`{}` ({})", member.name, member.kind.allowed())).collect::<Vec<_>>().join(", ")
    };
    let optional = list(false);
    match (list(true).as_str(), optional.as_str()) {
        (required, "") => required.to_owned(),
        ("", optional) => format!("optionally {optional}"),
        (required, optional) => format!("{required}, and optionally {optional}"),
    }
}

fn is_object(members: &[Member], object: &Object) -> bool {
    let is_complete = members.iter().all(|member| match object.get(member.name) {
        Some(value) => member.kind.accepts(value),
        None => !member.is_required,
    });
    is_complete && object.keys().all(|name| members.iter().any(|member| member.name == name))
}

fn refused_headers() -> String {
    let names = REFUSED_HEADERS.map(str::to_owned).into_iter();
    let names: Vec<String> = names.chain(REFUSED_PREFIXES.map(|prefix| format!("{prefix}*"))).collect();
    names.join(", ")
}

fn are_headers(headers: &Object, max_chars: usize) -> bool {
    let is_printable = |byte: u8| (b' '..=b'~').contains(&byte) || byte == b'\t';
    let is_value =
        |value: &Value| matches!(value, Value::Text(text) if text.len() <= max_chars && text.bytes().all(is_printable));
    let names: Vec<String> = headers.keys().map(|name| name.to_ascii_lowercase()).collect();
    headers.values().all(is_value)
        && names
            .iter()
            .enumerate()
            .all(|(at, name)| is_header(name) && !names.iter().take(at).any(|other| other == name))
}

/// Whether it is the name of a header that can be set. Names are tokens (RFC 9110, section 5.6.2), in lower case here.
fn is_header(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=NAME_CHARS).contains(&name.len())
        && name.bytes().all(is_token)
        && !REFUSED_HEADERS.contains(&name)
        && !REFUSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn is_text(text: &str, max_chars: usize) -> bool {
    !text.trim().is_empty() && !text.contains('\0') && text.chars().count() <= max_chars
}

/// Whether it is the number or the class of a failure status. Numbers have exactly three digits.
fn is_failure_status(text: &str) -> bool {
    let number = || text.parse().ok().filter(|status| FAILURE_STATUSES.contains(status));
    STATUS_CLASSES.contains(&text) || (text.len() == 3 && number().is_some())
}

/// Whether they are numbers and ascending ranges, separated by commas.
fn are_page_ranges(text: &str) -> bool {
    let number = |text: &str| {
        let text = text.trim();
        let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| is_number && (1..=MAX_PAGE).contains(number))
    };
    let is_range = |part: &str| match part.split_once('-') {
        Some((first, last)) => number(first).zip(number(last)).is_some_and(|(first, last)| first <= last),
        None => number(part).is_some(),
    };
    text.len() <= PAGES_CHARS && text.split(',').all(is_range)
}

/// Whether it has the form of the id of a grab.
fn is_id(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == ID_CHARS && text.bytes().enumerate().all(is_right)
}

/// Whether it has the form of a language tag. A language of two or three letters, and further parts of up to eight letters and
/// digits (RFC 5646, section 2.1).
fn is_language_tag(text: &str) -> bool {
    let mut parts = text.split('-');
    let language = parts.next().unwrap_or_default();
    (2..=3).contains(&language.len())
        && language.bytes().all(|byte| byte.is_ascii_alphabetic())
        && text.len() <= NAME_CHARS
        && parts.all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests;
