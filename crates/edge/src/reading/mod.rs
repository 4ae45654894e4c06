//! Files of grabs as texts: read from the router of their public URLs, made readable, and cut to a number of tokens.
//!
//! `kind` names what can be read, `file` reads a file, `json_text` and `changes` make text of the files that are JSON, `tokens`
//! estimates, and `cut` finds where a text can be cut. `reader` puts them together. REST and MCP use it alike.

mod changes;
mod cut;
mod file;
mod json_text;
mod kind;
mod reader;
mod tokens;

pub(crate) use cut::cut;
pub(crate) use file::{FileError, LoadedFile};
pub(crate) use kind::Readable;
pub(crate) use reader::{Document, ReadError, Reader, file_of};
pub(crate) use tokens::tokens_estimate;

/// The tokens of an answer, unless a caller asks for another number.
pub(crate) const DEFAULT_TOKENS: u32 = 8000;
/// The least that can be asked for.
pub(crate) const MIN_TOKENS: u32 = 100;
/// The most that can be asked for.
pub(crate) const MAX_TOKENS: u32 = 50_000;
