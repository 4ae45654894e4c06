//! Selectors of the caller that are none of CSS: by text, and by role and name.

use std::sync::LazyLock;

use serde_json::Value;

use crate::cdp::CallError;
use crate::page::context::{CaptureContext, SCRIPT_GRACE};
use crate::page::error::CaptureError;
use crate::page::script::{self, without_comments};

/// What such selectors begin with. No selector of CSS does.
const PREFIXES: [&str; 2] = ["text=", "role="];

/// An expression whose value has the functions of `locate.js`. They are too large to be sent to each page. Their key is a symbol:
/// an element with the same id would be a property of the window.
pub(super) static LIBRARY: LazyLock<String> = LazyLock::new(|| {
    let files = [include_str!("scripts/common.js"), include_str!("scripts/locate.js")];
    format!("(globalThis[Symbol.for('grabd-steps')] ??= (() => {{\n{}return steps;\n}})())", without_comments(&files))
});

/// Lets our scripts in the document find what a selector names, if it is none of CSS. It is called before each of them that
/// takes a selector.
///
/// # Errors
/// If the page does not answer.
pub(super) async fn prepare(context: &CaptureContext<'_>, selector: &str) -> Result<(), CaptureError> {
    if !PREFIXES.iter().any(|prefix| selector.starts_with(prefix)) {
        return Ok(());
    }
    let limit = context.remaining() + SCRIPT_GRACE;
    match script::call_in::<Value>(context.tab, limit, &LIBRARY, "element", &()).await {
        // The document was replaced, which the caller notices by itself.
        Ok(_) | Err(CallError::Refused { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_one_expression_without_comments() {
        assert!(
            LIBRARY.starts_with("(globalThis[Symbol.for('grabd-steps')] ??= (() => {") && LIBRARY.ends_with("})())")
        );
        assert!(!LIBRARY.lines().any(|line| line.starts_with("//")));
        assert!(!LIBRARY.contains("globalThis.steps"), "an element can have this id");
        for function in [
            "target",
            "field",
            "setValue",
            "list",
            "choose",
            "scrollToElement",
            "scrollToEnd",
            "wait",
            "waitForText",
            "frame",
            "element",
            "framePoint",
            "pause",
            "search",
        ] {
            assert!(LIBRARY.contains(&format!("steps.{function} =")), "{function}");
        }
    }
}
