//! Our scripts in the page.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::CreateIsolatedWorldParams;
use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::Tab;
use super::watch::World;
use crate::cdp::CallError;

#[derive(Deserialize)]
struct Evaluated<T> {
    result: Value<T>,
}

#[derive(Deserialize)]
struct Value<T> {
    value: Option<T>,
}

/// Calls a function expression and waits for what it returns. It sees the page's document, but runs in a world of its
/// own: nothing the page did to `Promise`, `document.fonts` or any other word a script stands on is there. `None` when it
/// threw all the same, which takes a page that has no document element, for one.
///
/// # Errors
/// [`CallError::Refused`] also when the document goes away meanwhile.
pub(super) async fn call<T: DeserializeOwned>(
    tab: &Tab,
    limit: Duration,
    function: &str,
    arguments: &impl Serialize,
) -> Result<Option<T>, CallError> {
    let until = Instant::now() + limit;
    let world = world(tab, limit).await?;
    let limit = until.saturating_duration_since(Instant::now());
    let arguments = serde_json::to_string(arguments).unwrap_or_else(|_| "{}".into());
    let params = EvaluateParams {
        context_id: Some(world),
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

/// The world of our scripts in the shown document, made when it is first asked for.
async fn world(tab: &Tab, limit: Duration) -> Result<World, CallError> {
    if let Some(world) = tab.watch.world() {
        return Ok(world);
    }
    let (frame, loader) = tab.watch.place();
    let create = CreateIsolatedWorldParams::new(frame);
    let world = tab.client.call_within(limit, Some(&tab.session), create).await?.execution_context_id;
    if let Some(loader) = loader {
        tab.watch.set_world(loader, world);
    }
    Ok(world)
}
