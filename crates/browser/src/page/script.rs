//! Calls our scripts in the page. Each file below `scripts` defines functions. Functions that are set on `page` can be
//! called from here.

use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::CreateIsolatedWorldParams;
use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::cdp::CallError;
use crate::page::frame_calls::Evaluated;
use crate::page::load::watch::World;
use crate::page::tab::Tab;

/// The source of the functions that every capture calls. It is sent once to each document. Reading it takes the browser up to a
/// fifth of a millisecond for each kilobyte, so that the others are apart.
///
/// It is not in a function of its own: the files see each other's names, also those of [`MORE`], which is sent later. Names of the
/// isolated world are visible to nobody else.
static CORE: LazyLock<String> = LazyLock::new(|| {
    let files = [
        include_str!("scripts/common.js"),
        include_str!("scripts/animations.js"),
        include_str!("scripts/state.js"),
        include_str!("scripts/outside.js"),
        include_str!("scripts/ready.js"),
        include_str!("scripts/glyphs.js"),
        include_str!("scripts/about.js"),
    ];
    // Scripts that are in a function of their own find the object by the window.
    format!("const page = {{}};\nglobalThis.page = page;\n{}", without_comments(&files))
});

/// The source of the other functions. It is sent to a document before the first call of one of them.
static MORE: LazyLock<String> = LazyLock::new(|| {
    without_comments(&[
        include_str!("scripts/expand.js"),
        include_str!("scripts/sweep.js"),
        include_str!("scripts/full_page.js"),
        include_str!("scripts/frames.js"),
        include_str!("scripts/element.js"),
        include_str!("scripts/clip.js"),
        include_str!("scripts/changes.js"),
        include_str!("scripts/hiding.js"),
        include_str!("scripts/looks.js"),
        include_str!("scripts/clipping.js"),
        include_str!("scripts/shown_text.js"),
        include_str!("scripts/conditions.js"),
        include_str!("scripts/interact.js"),
        include_str!("scripts/freeze.js"),
        include_str!("scripts/vitals.js"),
    ])
});

/// The object that has these functions.
const PAGE: &str = "page";

/// Calls a function of our scripts and waits for its result. It runs in an isolated world: it sees the document, but
/// not what the page did to globals such as `Promise` or `document.fonts`. Returns `None` if the function throws, for
/// example because the page has no document element.
///
/// # Errors
/// [`CallError::Refused`] also when the document is replaced meanwhile.
pub(crate) async fn call<T: DeserializeOwned>(
    tab: &Tab,
    limit: Duration,
    function: &str,
    arguments: &impl Serialize,
) -> Result<Option<T>, CallError> {
    call_in(tab, limit, PAGE, function, arguments).await
}

/// Calls a function of an object in the same way. `object` is an expression, which may define it.
///
/// # Errors
/// As [`call`].
pub(super) async fn call_in<T: DeserializeOwned>(
    tab: &Tab,
    limit: Duration,
    object: &str,
    function: &str,
    arguments: &impl Serialize,
) -> Result<Option<T>, CallError> {
    let until = Instant::now() + limit;
    let (world, is_new) = world(tab, limit).await?;
    let limit = until.saturating_duration_since(Instant::now());
    let arguments = serde_json::to_string(arguments).unwrap_or_else(|_| "{}".into());
    let mut expression = if is_new { CORE.clone() } else { String::new() };
    if object == PAGE && !defines(&CORE, function) && tab.watch.lacks_scripts(world) {
        expression.push_str(&MORE);
    }
    // Writing to a `String` cannot fail.
    let _ = write!(expression, "{}.{function}({arguments})", object.trim_end());
    let params = EvaluateParams {
        context_id: Some(world),
        await_promise: Some(true),
        return_by_value: Some(true),
        silent: Some(true),
        ..EvaluateParams::new(expression)
    };
    match tab.client.call_as::<_, Evaluated<T>>(limit, Some(&tab.session), params).await {
        Ok(evaluated) => Ok(evaluated.into_value()),
        Err(CallError::InvalidResponse(_) | CallError::TooLarge { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the source has this function.
fn defines(source: &str, function: &str) -> bool {
    source.contains(&format!("\npage.{function} ="))
}

/// The lines of scripts without comments and indentation, which makes them a third smaller.
pub(super) fn without_comments(files: &[&str]) -> String {
    let lines = files.iter().flat_map(|file| file.lines()).map(str::trim_start);
    lines.filter(|line| !line.starts_with("//")).flat_map(|line| [line, "\n"]).collect()
}

/// A time in milliseconds, as scripts get it.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The milliseconds that are left until then.
pub(super) fn millis_until(until: Instant) -> u64 {
    millis(until.saturating_duration_since(Instant::now()))
}

/// The isolated world of our scripts in the current document, and whether it was just created.
async fn world(tab: &Tab, limit: Duration) -> Result<(World, bool), CallError> {
    if let Some(world) = tab.watch.world() {
        return Ok((world, false));
    }
    let (frame, loader) = tab.watch.frame_and_loader();
    let create = CreateIsolatedWorldParams::new(frame);
    let world = tab.client.call_within(limit, Some(&tab.session), create).await?.execution_context_id;
    if let Some(loader) = loader {
        tab.watch.set_world(loader, world);
    }
    Ok((world, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_in_one_part_without_comments() {
        assert!(!CORE.lines().chain(MORE.lines()).any(|line| line.starts_with("//")));
        let core = [
            "ready",
            "settled",
            "nextChange",
            "answers",
            "look",
            "changes",
            "irrelevant",
            "textsWithoutGlyphs",
            "about",
        ];
        for function in core {
            assert!(defines(&CORE, function) && !defines(&MORE, function), "{function}");
        }
        for function in [
            "sweep",
            "arrangeFullPage",
            "placeElement",
            "scale",
            "beginShot",
            "endShot",
            "enforceChanges",
            "checkChanges",
            "prepareLooks",
            "beginLooks",
            "endLooks",
            "waitForText",
            "findUnwanted",
            "clickTarget",
            "sweepClip",
            "freeze",
            "standStill",
            "newNames",
            "hideListed",
            "vitals",
        ] {
            assert!(defines(&MORE, function) && !defines(&CORE, function), "{function}");
        }
    }
}
