//! Steps on the loaded page.

use std::fmt;

use grabd_options::{CaptureRequest, HIDDEN, Object, Secret, Value};

use super::StepImageNumber;
use crate::faults::{Fault, Field};

/// The most bytes of all steps together, in UTF-8.
const MAX_BYTES: usize = 64 << 10;

/// Keys that have a name.
const NAMED_KEYS: [&str; 27] = [
    "Enter",
    "Tab",
    "Escape",
    "Backspace",
    "Delete",
    "Space",
    "ArrowUp",
    "ArrowDown",
    "ArrowLeft",
    "ArrowRight",
    "Home",
    "End",
    "PageUp",
    "PageDown",
    "Insert",
    "F1",
    "F2",
    "F3",
    "F4",
    "F5",
    "F6",
    "F7",
    "F8",
    "F9",
    "F10",
    "F11",
    "F12",
];

/// One step on the loaded page. Elements are named by selectors, whose syntax the browser checks.
#[derive(Clone, PartialEq, Eq)]
pub enum Step {
    /// Click an element.
    Click(String),
    /// Replace the content of a field.
    Type {
        /// The field.
        into: String,
        /// The new content.
        text: String,
        /// Whether the text is left out of error messages.
        is_secret: bool,
    },
    /// Press a key.
    Press(KeyPress),
    /// Move the mouse over an element.
    Hover(String),
    /// Choose an option of a list.
    Select {
        /// The list.
        list: String,
        /// The value or the label of the option.
        option: String,
    },
    /// Scroll the page.
    ScrollTo(ScrollTarget),
    /// Wait until an element is visible.
    WaitFor(String),
    /// Wait until the page shows a text.
    WaitForText(String),
    /// Run JavaScript: the body of an async function.
    Script(String),
    /// Drag an element with the mouse.
    Drag {
        /// The element.
        from: String,
        /// The element on which it is dropped.
        to: String,
    },
    /// Take a further image, which has this name.
    Capture(String),
}

/// Where a page is scrolled to.
#[derive(Clone, PartialEq, Eq)]
pub enum ScrollTarget {
    /// The beginning of the page.
    Top,
    /// Its end.
    Bottom,
    /// An element.
    Element(String),
}

/// A key that is held while another one is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the keys")]
pub enum HeldKey {
    Alt,
    Control,
    Meta,
    Shift,
}

impl HeldKey {
    const ALL: [Self; 4] = [Self::Alt, Self::Control, Self::Meta, Self::Shift];

    const fn name(self) -> &'static str {
        match self {
            Self::Alt => "Alt",
            Self::Control => "Control",
            Self::Meta => "Meta",
            Self::Shift => "Shift",
        }
    }
}

/// A key that is pressed, with the keys that are held meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPress {
    /// The name of a key, a letter or a digit.
    pub key: String,
    /// The keys that are held, each at most once.
    pub held: Vec<HeldKey>,
}

impl KeyPress {
    /// Reads a key such as `Enter`, or a combination such as `Control+A`. `None` for anything else.
    fn parse(text: &str) -> Option<Self> {
        let mut parts: Vec<&str> = text.split('+').collect();
        let key = parts.pop()?;
        let is_char = key.len() == 1 && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !(is_char || NAMED_KEYS.contains(&key)) {
            return None;
        }
        let mut held = Vec::new();
        for name in parts {
            let other = HeldKey::ALL.into_iter().find(|other| other.name() == name)?;
            if held.contains(&other) {
                return None;
            }
            held.push(other);
        }
        Some(Self { key: key.to_owned(), held })
    }

    fn to_text(&self) -> String {
        let names = self.held.iter().map(|held| held.name()).chain([self.key.as_str()]);
        names.collect::<Vec<_>>().join("+")
    }

    /// What is accepted, as the end of "… is".
    fn allowed() -> String {
        format!(
            "a letter, a digit or one of {}, each with any of `Control+`, `Alt+`, `Shift+` and `Meta+` before it",
            NAMED_KEYS.join(", ")
        )
    }
}

/// Only which kind of step it is.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Step({})", self.name())
    }
}

/// Only the kind of target.
impl fmt::Debug for ScrollTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Top => "Top",
            Self::Bottom => "Bottom",
            Self::Element(_) => "Element(…)",
        })
    }
}

impl Step {
    /// The name of its member in requests.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Click(_) => "click",
            Self::Type { .. } => "type",
            Self::Press(_) => "press",
            Self::Hover(_) => "hover",
            Self::Select { .. } => "select",
            Self::ScrollTo(_) => "scroll_to",
            Self::WaitFor(_) => "wait_for",
            Self::WaitForText(_) => "wait_for_text",
            Self::Script(_) => "script",
            Self::Drag { .. } => "drag",
            Self::Capture(_) => "capture",
        }
    }

    /// The name of the image that it takes, if it takes one.
    pub fn image_name(&self) -> Option<&str> {
        if let Self::Capture(name) = self { Some(name) } else { None }
    }

    /// Its text, if that must not be in error messages.
    pub(super) fn hidden_text(&self) -> Option<&str> {
        if let Self::Type { text, is_secret: true, .. } = self { Some(text) } else { None }
    }

    /// The step of a valid object. `None` if it has another member, or one of another type.
    fn of(object: &Object) -> Option<Self> {
        let (name, value) = object.iter().next().filter(|_| object.len() == 1)?;
        match (name.as_str(), value) {
            ("click", Value::Text(selector)) => Some(Self::Click(selector.clone())),
            ("type", Value::Object(members)) => Some(Self::Type {
                into: text(members, "into")?,
                text: text(members, "text")?,
                is_secret: members.get("secret") == Some(&Value::Flag(true)),
            }),
            ("press", Value::Text(key)) => KeyPress::parse(key).map(Self::Press),
            ("hover", Value::Text(selector)) => Some(Self::Hover(selector.clone())),
            ("select", Value::Object(members)) => {
                Some(Self::Select { list: text(members, "in")?, option: text(members, "option")? })
            }
            ("scroll_to", Value::Text(target)) => Some(Self::ScrollTo(match target.as_str() {
                "top" => ScrollTarget::Top,
                "bottom" => ScrollTarget::Bottom,
                selector => ScrollTarget::Element(selector.to_owned()),
            })),
            ("wait_for", Value::Text(selector)) => Some(Self::WaitFor(selector.clone())),
            ("wait_for_text", Value::Text(text)) => Some(Self::WaitForText(text.clone())),
            ("script", Value::Text(script)) => Some(Self::Script(script.clone())),
            ("drag", Value::Object(members)) => {
                Some(Self::Drag { from: text(members, "from")?, to: text(members, "to")? })
            }
            ("capture", Value::Text(name)) => is_image_name(name).then(|| Self::Capture(name.clone())),
            (_, _) => None,
        }
    }

    /// The object that [`Self::of`] reads.
    pub(super) fn to_object(&self) -> Object {
        let text = |text: &str| Value::Text(text.to_owned());
        let value = match self {
            Self::Click(selector) | Self::Hover(selector) | Self::WaitFor(selector) => text(selector),
            Self::Type { into, text: content, is_secret } => {
                let mut members = Object::from([("into".to_owned(), text(into)), ("text".to_owned(), text(content))]);
                if *is_secret {
                    members.insert("secret".to_owned(), Value::Flag(true));
                }
                Value::Object(members)
            }
            Self::Press(press) => Value::Text(press.to_text()),
            Self::Select { list, option } => {
                Value::Object(Object::from([("in".to_owned(), text(list)), ("option".to_owned(), text(option))]))
            }
            Self::ScrollTo(ScrollTarget::Top) => text("top"),
            Self::ScrollTo(ScrollTarget::Bottom) => text("bottom"),
            Self::ScrollTo(ScrollTarget::Element(selector)) => text(selector),
            Self::WaitForText(shown) => text(shown),
            Self::Script(script) => text(script),
            Self::Drag { from, to } => {
                Value::Object(Object::from([("from".to_owned(), text(from)), ("to".to_owned(), text(to))]))
            }
            Self::Capture(name) => text(name),
        };
        Object::from([(self.name().to_owned(), value)])
    }
}

fn text(members: &Object, name: &str) -> Option<String> {
    if let Value::Text(text) = members.get(name)? { Some(text.clone()) } else { None }
}

/// The steps of valid objects. `None` if one is none.
pub(super) fn read<'a>(objects: impl Iterator<Item = &'a Object>) -> Option<Vec<Step>> {
    objects.map(Step::of).collect()
}

/// Whether this may be the name of an image: files are named after it, and a number is never the beginning of one.
fn is_image_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Checks the names of the images that steps take, and how many there are. The error is what is accepted.
fn check_images(steps: &[Object]) -> Result<(), String> {
    let mut names = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let Some(Value::Text(name)) = step.get("capture") else { continue };
        if !is_image_name(name) {
            return Err(format!(
                "an array whose `steps[{at}].capture` is a letter, followed by letters, digits, `-` and `_`"
            ));
        }
        // Files are named after them, and some systems do not distinguish cases.
        if names.contains(&name.to_ascii_lowercase()) {
            return Err(format!("an array whose `steps[{at}].capture` is not the name of another step's image"));
        }
        names.push(name.to_ascii_lowercase());
    }
    let most = StepImageNumber::MAX;
    match names.len() <= usize::from(most) {
        true => Ok(()),
        false => Err(format!("an array of steps of which at most {most} are `capture`")),
    }
}

/// Checks the names of keys and images, how long all steps are, and that scripts may run.
pub(super) fn check(request: &CaptureRequest) -> Result<(), Fault> {
    let bad = |allowed: String| Err(Fault::BadRequest(Field::new("steps", HIDDEN, allowed)));
    let Some(Secret(steps)) = &request.steps else { return Ok(()) };
    for (at, step) in steps.iter().enumerate() {
        if let Some(Value::Text(key)) = step.get("press")
            && KeyPress::parse(key).is_none()
        {
            return bad(format!("an array whose `steps[{at}].press` is {}", KeyPress::allowed()));
        }
        if step.contains_key("script") && request.javascript == Some(false) {
            return bad(format!("an array whose `steps[{at}]` has no `script` where `javascript` is false"));
        }
    }
    if let Err(allowed) = check_images(steps) {
        return bad(allowed);
    }
    let bytes: usize = steps.iter().flat_map(Object::values).map(text_bytes).sum();
    match bytes <= MAX_BYTES {
        true => Ok(()),
        false => bad(format!("an array of steps whose texts have at most {MAX_BYTES} bytes in UTF-8 together")),
    }
}

/// The bytes of a text, or of the texts of an object.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Object(members) => members.values().map(text_bytes).sum(),
        Value::Texts(_)
        | Value::Objects(_)
        | Value::Rectangle(_)
        | Value::Flag(_)
        | Value::Integer(_)
        | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::CaptureSpec;

    fn parse(json: &str) -> Result<CaptureSpec, Fault> {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        assert!(request.set("steps", serde_json::from_str(json).unwrap()), "{json}");
        CaptureSpec::parse(&request)
    }

    const ALL: &str = r##"[
        {"wait_for": "form"},
        {"type": {"into": "#user", "text": "guest"}},
        {"type": {"into": "#password", "text": "hidden-1\nhidden-2", "secret": true}},
        {"press": "Control+Shift+A"}, {"press": "Enter"}, {"hover": "nav"}, {"click": "text=Log in"},
        {"select": {"in": "select", "option": "Österreich"}},
        {"scroll_to": "bottom"}, {"scroll_to": "top"}, {"scroll_to": "iframe >> #a"},
        {"wait_for_text": "Welcome"}, {"script": "await 1"},
        {"drag": {"from": "#a", "to": "iframe >> #b"}}, {"capture": "menu"}
    ]"##;

    #[test]
    fn steps_are_restored_and_neither_stored_nor_logged() {
        let spec = parse(ALL).unwrap();
        let names: Vec<&str> = spec.secrets.steps.iter().map(Step::name).collect();
        assert_eq!(names[..5], ["wait_for", "type", "type", "press", "press"]);
        let stored = serde_json::to_string(&spec).unwrap();
        assert!(stored.ends_with(r#""steps":true}"#), "{stored}");
        assert!(!format!("{spec:?}{:?}{stored}", spec.secrets.steps).contains("hidden"), "{spec:?}");
        let read: CaptureSpec = serde_json::from_str(&stored).unwrap();
        assert_eq!((read.secrets.given(), read.secrets.steps.len()), (&["steps"][..], 0));
        let sealed = serde_json::to_string(&spec.secret_options()).unwrap();
        assert_eq!(read.with_secrets(serde_json::from_str(&sealed).unwrap()), Some(spec.clone()));
        // As a renderer gets it.
        assert_eq!(CaptureSpec::restore(&spec.to_request()), Some(spec));
        let none = parse("[]").unwrap();
        assert!(!serde_json::to_string(&none).unwrap().contains("steps"));
    }

    #[test]
    fn invalid_part_is_named_and_its_value_is_not_shown() {
        let long = format!(r#"[{{"script": "{0}"}}, {{"script": "{0}"}}, {{"script": "{0}"}}]"#, "é".repeat(11_000));
        for (json, part) in [
            (r#"[{"click": "a"}, {"tap": "hidden"}]"#, "`steps[1]` is an object with exactly one of"),
            (r#"[{"type": {"into": "hidden", "text": ""}}]"#, "`steps[0].type.text` is a string of 1 to 4096"),
            (r#"[{"press": "hidden"}]"#, "`steps[0].press` is a letter, a digit or one of Enter, Tab"),
            (r#"[{"drag": {"from": "hidden"}}]"#, "`steps[0].drag.to` is a string of 1 to 1024"),
            (r#"[{"press": "A"}, {"capture": "hidden/a"}]"#, "`steps[1].capture` is a letter, followed by letters"),
            (r#"[{"capture": "1hidden"}]"#, "`steps[0].capture` is a letter, followed by letters"),
            (r#"[{"capture": "hidden"}, {"capture": "Hidden"}]"#, "`steps[1].capture` is not the name of another"),
            (
                r#"[{"capture": "a"}, {"capture": "b"}, {"capture": "c"}, {"capture": "d"}, {"capture": "e"}, {"capture": "f"}]"#,
                "of which at most 5 are `capture`",
            ),
            (&long, "whose texts have at most 65536 bytes"),
        ] {
            let fault = parse(json).unwrap_err();
            assert_eq!(fault.field().unwrap().name, "steps", "{fault}");
            assert!(fault.to_string().contains(part) && !fault.to_string().contains("hidden"), "{fault}");
        }
        let unparsed = vec![("steps[2].type.into".to_owned(), "hidden".to_owned())];
        let request =
            CaptureRequest { url: Some("https://example.com/".into()), unparsed, ..CaptureRequest::default() };
        let fault = CaptureSpec::parse(&request).unwrap_err().to_string();
        assert!(
            fault.contains("`steps[2].type.into` is a string of 1 to 1024") && !fault.contains("hidden"),
            "{fault}"
        );
        let mut request = CaptureRequest { unparsed: Vec::new(), javascript: Some(false), ..request };
        assert!(request.set("steps", serde_json::from_str(r#"[{"script": "1"}]"#).unwrap()));
        let fault = CaptureSpec::parse(&request).unwrap_err().to_string();
        assert!(fault.contains("`steps[0]` has no `script`"), "{fault}");
    }

    #[test]
    fn keys_are_known_and_held_keys_are_named_once() {
        for text in ["Enter", "a", "Z", "7", "Control+A", "Control+Alt+Shift+Meta+F12", "Shift+Tab"] {
            assert_eq!(KeyPress::parse(text).map(|press| press.to_text()).as_deref(), Some(text));
        }
        for text in ["", "+", "enter", "Control", "Control+", "Control+Control+A", "Ctrl+A", "A+B", "é", "AB"] {
            assert_eq!(KeyPress::parse(text), None, "{text}");
        }
    }
}
