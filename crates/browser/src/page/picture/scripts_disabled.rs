//! Disables the scripts of the page while its image is taken.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;
use serde_json::Value;

use crate::cdp::CallError;
use crate::page::script;
use crate::page::tab::Tab;

/// The time limit of a call. A page whose scripts keep it busy is captured as it is.
const LIMIT: Duration = Duration::from_secs(2);

/// The page's scripts are disabled until this is ended or dropped, also when taking the image is cancelled.
///
/// The browser lays out `<noscript>` as soon as it computes styles while scripts are disabled, so these elements are hidden. A
/// larger window may match other media queries for a moment, so transitions are off.
pub(in crate::page) struct ScriptsDisabled<'a>(&'a Tab);

impl<'a> ScriptsDisabled<'a> {
    /// Waits for the response: this command and the screenshot reach the page on different paths.
    pub(in crate::page) async fn for_tab(tab: &'a Tab) -> Result<Self, CallError> {
        call(tab, "beginShot").await;
        let disabled = Self(tab);
        tab.client.call(Some(&tab.session), SetScriptExecutionDisabledParams::new(true)).await?;
        Ok(disabled)
    }

    /// Enables the scripts again.
    pub(in crate::page) async fn end(disabled: Option<Self>) {
        if let Some(disabled) = disabled {
            let tab = disabled.0;
            drop(disabled);
            // After the scripts are enabled, since both go to the page in order.
            call(tab, "endShot").await;
        }
    }
}

impl Drop for ScriptsDisabled<'_> {
    fn drop(&mut self) {
        self.0.client.tell(Some(&self.0.session), &SetScriptExecutionDisabledParams::new(false));
    }
}

async fn call(tab: &Tab, function: &str) {
    if let Err(error) = script::call::<Value>(tab, LIMIT, function, &()).await {
        tracing::debug!(%error, function, "a script ended early");
    }
}
