//! A short summary of the elements in which two captures differ.

use serde::{Deserialize, Serialize};

/// The most changes that are kept of a run.
pub const MAX_ELEMENT_CHANGES: usize = 20;
/// The longest text of a change, in characters. Longer ones are cut.
pub const ELEMENT_CHANGE_CHARS: usize = 200;

/// What has happened to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElementChangeKind {
    /// The baseline does not have it.
    Added,
    /// The run does not have it.
    Removed,
    /// Its name, state or target is another one.
    Changed,
    /// It is in another place, or has another size.
    Moved,
}

impl ElementChangeKind {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 4] = [Self::Added, Self::Removed, Self::Changed, Self::Moved];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
            Self::Moved => "moved",
        }
    }
}

/// An element that was added, removed, changed or moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElementChange {
    /// What has happened.
    pub kind: ElementChangeKind,
    /// Its role, such as `button`.
    pub role: String,
    /// Its name in the run, or in the baseline if it was removed.
    pub name: String,
    /// What it was: its name, its state, or its place. `None` if it was added or removed.
    pub before: Option<String>,
    /// What it is now. `None` if it was added or removed.
    pub after: Option<String>,
}

impl ElementChange {
    /// An element that the baseline does not have.
    pub fn added(role: &str, name: &str) -> Self {
        Self::new(ElementChangeKind::Added, role, name)
    }

    /// An element that the run does not have.
    pub fn removed(role: &str, name: &str) -> Self {
        Self::new(ElementChangeKind::Removed, role, name)
    }

    /// An element whose name, state or target is another one.
    pub fn changed(role: &str, name: &str, before: &str, after: &str) -> Self {
        Self::new(ElementChangeKind::Changed, role, name).with(before, after)
    }

    /// An element that is in another place, or has another size.
    pub fn moved(role: &str, name: &str, before: &str, after: &str) -> Self {
        Self::new(ElementChangeKind::Moved, role, name).with(before, after)
    }

    fn new(kind: ElementChangeKind, role: &str, name: &str) -> Self {
        Self { kind, role: cut(role), name: cut(name), before: None, after: None }
    }

    fn with(self, before: &str, after: &str) -> Self {
        Self { before: Some(cut(before)), after: Some(cut(after)), ..self }
    }
}

/// A text in one line, of which the end is left out if it is too long.
fn cut(text: &str) -> String {
    let mut short: String = text.chars().filter(|letter| !letter.is_control()).take(ELEMENT_CHANGE_CHARS).collect();
    if text.chars().nth(ELEMENT_CHANGE_CHARS).is_some() {
        short.pop();
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_stay_in_one_line() {
        let long = "n".repeat(300);
        let change = ElementChange::changed("button", &long, "a\nb", &long);
        assert_eq!(change.name.chars().count(), ELEMENT_CHANGE_CHARS);
        assert!(change.name.ends_with('…') && change.after == Some(change.name.clone()));
        assert_eq!(change.before.as_deref(), Some("ab"));
        assert_eq!(ElementChange::added("link", "Home").before, None);
    }

    #[test]
    fn stored_form_has_the_names_of_the_api() {
        for kind in ElementChangeKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{}\"", kind.as_str()));
        }
    }
}
