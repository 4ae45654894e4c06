//! The capture options: one table, from which every interface is derived.
//!
//! [`TABLE`] has a row for each option: its type and bounds, its default, and its texts. Derived from it are the parsing and
//! its errors, the OpenAPI and MCP schemas, the form of the web pages, the flags of the command line, and `docs/OPTIONS.md`.
//! `docs/ADDING-AN-OPTION.md` is the checklist for a new one.

mod kind;
mod labels;
pub mod reference;
mod table;
mod text;
mod value;

pub use kind::{FAILURE_STATUSES, Kind, Member, Problem, RECTANGLE_MAX_SIDE, RECTANGLE_MAX_START, STATUS_CLASSES};
pub use table::{CaptureRequest, TABLE, find};
pub use value::{HIDDEN, Object, OptionType, Rectangle, Secret, Value};

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

/// One capture option.
#[derive(Clone, Copy, Debug)]
pub struct CaptureOption {
    /// The name in REST, gRPC, MCP and stored requests. The command line writes it with hyphens.
    pub name: &'static str,
    /// Type and bounds.
    pub kind: Kind,
    /// The value of a request that leaves the option out, as JSON text. Empty if there is none.
    pub default: &'static str,
    /// Where the option stands in forms and references.
    pub group: Group,
    /// Its name for people.
    pub label: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// What else there is to know. May be empty.
    pub description: &'static str,
    /// A useful value, as JSON text.
    pub example: &'static str,
    /// Options that cannot be used together with it.
    pub excludes: &'static [&'static str],
    /// The option that it makes no sense without. May be empty.
    pub requires: &'static str,
    /// Do agents get it over MCP? The description of each option costs every conversation some of its context.
    pub in_mcp: bool,
    /// Is its value encrypted while the grab is open, forgotten afterwards, and never shown? Its type is a
    /// [`Secret`].
    pub is_secret: bool,
    /// The version that it came with.
    pub since: &'static str,
}

impl CaptureOption {
    /// Is it the value of a request that leaves the option out?
    pub fn is_default(&self, value: &Value) -> bool {
        value.to_string() == self.default
    }

    /// Is it a flag that is on unless it is turned off?
    pub fn is_on_by_default(&self) -> bool {
        self.kind == Kind::Flag && self.default == "true"
    }
}
