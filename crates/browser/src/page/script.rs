//! Our scripts in the page.

use std::time::Duration;

use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Tab;
use crate::cdp::CallError;

#[derive(Deserialize)]
struct Evaluated<T> {
    result: Value<T>,
}

#[derive(Deserialize)]
struct Value<T> {
    value: Option<T>,
}

/// Calls a function expression in the page and waits for what it returns. `None` when the page made it throw: it may
/// have changed whatever the script stands on.
pub(super) async fn call<T: DeserializeOwned>(
    tab: &Tab,
    limit: Duration,
    function: &str,
    arguments: &impl Serialize,
) -> Result<Option<T>, CallError> {
    let arguments = serde_json::to_string(arguments).unwrap_or_else(|_| "{}".into());
    let params = EvaluateParams {
        await_promise: Some(true),
        return_by_value: Some(true),
        silent: Some(true),
        ..EvaluateParams::new(format!("({function})({arguments})"))
    };
    match tab.client.call_as::<_, Evaluated<T>>(limit, Some(&tab.session), params).await {
        Ok(evaluated) => Ok(evaluated.result.value),
        Err(CallError::Unreadable(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
