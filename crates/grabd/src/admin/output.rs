//! What a command prints.

use serde_json::Value;

use crate::output::print_line;

/// The output of a command, as text and as JSON.
pub(super) struct CommandOutput {
    pub(super) text: String,
    pub(super) json: Value,
    /// Whether the exit code is zero.
    pub(super) success: bool,
}

impl CommandOutput {
    pub(super) fn ok(text: String, json: Value) -> Self {
        Self { text, json, success: true }
    }

    /// The output of a command that has printed its result itself.
    pub(super) fn silent() -> Self {
        Self { text: String::new(), json: Value::Null, success: true }
    }

    /// Prints the output, and returns whether the command found no problem.
    pub(super) fn print(self, as_json: bool) -> bool {
        let Self { text, json, success } = self;
        if text.is_empty() && json.is_null() {
            return success;
        }
        match as_json {
            true => print_line!("{json}"),
            false => print_line!("{text}"),
        }
        success
    }
}
