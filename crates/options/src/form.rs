//! What forms and lists of captures say about an option, in plain words.

/// How an option is shown to people who do not know its name in the APIs.
#[derive(Clone, Copy, Debug)]
pub struct FormDetails {
    /// Where it stands among the options that forms show first, beginning with 1. 0: it is in its group.
    pub rank: u8,
    /// What it is called in forms. Empty: its label.
    pub label: &'static str,
    /// What its words are called, in their order. Empty: they are shown as they are.
    pub words: &'static [&'static str],
    /// What is used while the field is empty, if it has no default: a few words. May be empty.
    pub if_empty: &'static str,
    /// Defaults that differ from that of the option: values of the option that brings them, and what they bring.
    pub defaults: &'static [(&'static str, &'static str)],
    /// The tag of captures with another value than the default; `{}` stands for the value. Empty: they have none.
    pub tag: &'static str,
}

impl FormDetails {
    /// An option that is shown as it is described.
    pub const NONE: Self = Self { rank: 0, label: "", words: &[], if_empty: "", defaults: &[], tag: "" };
}
