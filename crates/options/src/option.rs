//! A capture option: the row of the table that describes it, and the check of a value.

use crate::{FormDetails, HIDDEN, Kind, Member, Value};

/// The part of a form or reference that an option belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// What is captured.
    Page,
    /// The window that the page is laid out in.
    Window,
    /// What the page learns about its visitor.
    Appearance,
    /// When the image is taken.
    Timing,
    /// What is changed in the page before.
    Changes,
    /// What is sent and what is loaded.
    Network,
    /// The image itself.
    Image,
    /// What is made beside the image.
    Files,
}

impl Group {
    /// Every group, in the order of forms and references.
    pub const ALL: [Self; 8] = [
        Self::Page,
        Self::Window,
        Self::Appearance,
        Self::Timing,
        Self::Changes,
        Self::Network,
        Self::Image,
        Self::Files,
    ];

    /// The heading of the group.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Page => "Page",
            Self::Window => "Window",
            Self::Appearance => "Appearance",
            Self::Timing => "Timing",
            Self::Changes => "Changes to the page",
            Self::Network => "Network",
            Self::Image => "Image",
            Self::Files => "Files",
        }
    }
}

/// Why signed links cannot have an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkBar {
    /// Links are made to be published, and the option is a secret, belongs to one, is a program, or names a proxy.
    Published,
    /// The answer of a link is only an image, to which the option adds nothing.
    OnlyImage,
}

/// One capture option.
#[derive(Clone, Copy, Debug)]
pub struct CaptureOption {
    /// The name in REST, gRPC, MCP and stored requests. The command line writes it with hyphens.
    pub name: &'static str,
    /// Type and bounds.
    pub kind: Kind,
    /// The value of a request that leaves the option out, as JSON text. Empty if there is none.
    pub default: &'static str,
    /// The option whose value may bring another default. May be empty.
    pub default_of: &'static str,
    /// Where the option stands in forms and references.
    pub group: Group,
    /// Its name for people.
    pub label: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// What it does, for agents, whose list of tools has to be short. Empty: the first sentence of `help`.
    pub brief: &'static str,
    /// What else there is to know. May be empty.
    pub description: &'static str,
    /// A useful value, as JSON text.
    pub example: &'static str,
    /// Options that cannot be used together with it.
    pub excludes: &'static [&'static str],
    /// The option that it makes no sense without. May be empty.
    pub requires: &'static str,
    /// Whether its value is encrypted while the grab is open, forgotten afterwards, and never shown. Its type is a
    /// [`Secret`](crate::Secret).
    pub is_secret: bool,
    /// Why signed links cannot have it, if that is not because of secrets. [`CaptureOption::refused_in_links`] is the whole rule.
    pub link_bar: Option<LinkBar>,
    /// How it is shown in forms and lists.
    pub form: FormDetails,
    /// The version that it came with.
    pub since: &'static str,
}

impl CaptureOption {
    /// Whether it is the value of a request that leaves the option out.
    pub fn is_default(&self, value: &Value) -> bool {
        value.to_string() == self.default
    }

    /// Whether it is a flag that is on unless it is turned off.
    pub fn is_on_by_default(&self) -> bool {
        self.kind == Kind::Flag && self.default == "true"
    }

    /// Checks a value against the bounds.
    ///
    /// # Errors
    /// The option, the value, and what is allowed.
    pub fn check(&self, value: &Value) -> Result<(), Problem> {
        if self.kind.accepts(value) { Ok(()) } else { Err(self.problem(value)) }
    }

    /// The error for a value that the option cannot have. For an object, it names the first member with such a value.
    pub fn problem(&self, value: &Value) -> Problem {
        if let Some((member, value)) = self.kind.invalid_member(value) {
            return self.member_problem(member, &value.to_string());
        }
        let allowed = self.kind.invalid_part(value).and_then(|part| self.kind.allowed_at(self.name, &part));
        let allowed = allowed.unwrap_or_else(|| self.kind.allowed());
        Problem { name: self.name, member: None, seen: self.seen(&value.to_string()), allowed }
    }

    /// The error for a value that a member of the option cannot have.
    pub fn member_problem(&self, member: &Member, seen: &str) -> Problem {
        Problem { name: self.name, member: Some(member.name), seen: self.seen(seen), allowed: member.kind.allowed() }
    }

    /// The member with this name, if the option is an object.
    pub fn member(&self, name: &str) -> Option<&'static Member> {
        let Kind::Object { members, .. } = self.kind else { return None };
        members.iter().find(|member| member.name == name)
    }

    /// A value as it may be shown in an error: not that of a secret option.
    pub fn seen(&self, value: &str) -> String {
        if self.is_secret { HIDDEN } else { value }.to_owned()
    }
}

/// A value that an option cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The option.
    pub name: &'static str,
    /// The member of the option with the value. None if it is the value of the whole option.
    pub member: Option<&'static str>,
    /// The value as JSON.
    pub seen: String,
    /// What would have been accepted, as the end of "must be …".
    pub allowed: String,
}
