//! The capture options: one table, from which every interface is derived.
//!
//! [`TABLE`] has a row for each option: its type and bounds, its default, and its texts. Derived from it are the parsing and
//! its errors, the OpenAPI and MCP schemas, the form of the web pages, the flags of the command line, and `docs/OPTIONS.md`.
//! `docs/ADDING-AN-OPTION.md` is the checklist for a new one.

mod choices;
mod form;
mod kind;
mod labels;
mod links;
mod option;
pub mod plain;
pub mod reference;
mod sizes;
mod table;
mod text;
pub mod unknown;
mod value;

pub use form::FormDetails;
pub use kind::{FAILURE_STATUSES, Kind, Member, NO_ANSWER, RECTANGLE_MAX_SIDE, RECTANGLE_MAX_START, STATUS_CLASSES};
pub use option::{CaptureOption, Group, LinkBar, Problem};
pub use table::{CaptureRequest, TABLE, find};
pub use value::{HIDDEN, Object, OptionType, Rectangle, Secret, Value};
