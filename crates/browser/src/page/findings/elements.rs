//! Lists the elements that a user can operate, in the document and in those of its frames that the image shows, and outlines
//! these documents as screen readers read them.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::dom::{BackendNodeId, GetFrameOwnerParams};
use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use chromiumoxide::cdp::js_protocol::runtime::{CallFunctionOnParams, RemoteObjectId};
use grabd_domain::capture::FileKind;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::frame_calls::{Evaluated, FrameCalls, FrameTree, OnTimeout};
use crate::page::load::watch::World;
use crate::page::picture::shown::{ELEMENTS, ImageSize, ShownPart, limit, shown_part};
use crate::page::script;

/// The name of the isolated world in frames. Pages cannot see it.
const WORLD: &str = "grabd elements";

/// The most frames that are looked at. Pages with many ads have dozens.
const MAX_FRAMES: usize = 50;

/// The time for all frames together.
const FRAMES_LIMIT: Duration = Duration::from_secs(3);

/// The argument of the script: what the image shows for the document, or where the frame is in it.
#[derive(Serialize)]
struct Reading<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<&'a ShownPart<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a Value>,
    /// The number of elements that were found in other documents.
    found: usize,
    /// The number of their characters.
    size: u64,
    /// Given if the document is outlined too.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Tree<'a>>,
    /// Texts that the caller typed and that are secret. Values with them are left out.
    hidden: &'a [&'a str],
}

/// How a document is outlined.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tree<'a> {
    /// The number of characters in the outlines of other documents.
    size: u64,
    is_frame: bool,
    /// The selectors of the frames that lead to it.
    frame: Option<&'a str>,
}

/// What the script found.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    /// The form of each element is that of the file.
    elements: Vec<Value>,
    is_cut: bool,
    /// Where the image is in the window.
    view: Value,
    size: u64,
    /// Where each element of a frame is in its document, unless something in the document is in front of it.
    #[serde(default)]
    points: Vec<Value>,
    outline: Option<Outline>,
}

/// What is in front of a frame, for each element in it.
#[derive(Deserialize)]
struct FrameFronts {
    fronts: Vec<Value>,
    /// Where the elements are in the document with the frame, unless something is in front of them.
    points: Vec<Value>,
}

/// The value of `covered_by` if what is in front of an element is not known.
const UNKNOWN: &str = "unknown";

/// The outline of a document, or of several.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline {
    lines: Vec<String>,
    is_cut: bool,
    size: u64,
}

/// The files that were made of one reading, so that their numbers are the same. Each has a flag whether something is missing.
pub(in crate::page) struct Listed {
    elements: (Vec<u8>, bool),
    outline: (Vec<u8>, bool),
}

impl Listed {
    /// Takes the file of this kind: that with the outline, or that with the elements.
    pub(in crate::page) fn take(&mut self, kind: FileKind) -> (Vec<u8>, bool) {
        let file = if kind == FileKind::Accessibility { &mut self.outline } else { &mut self.elements };
        std::mem::take(file)
    }
}

#[derive(Serialize)]
struct ElementsFile {
    image: ImageSize,
    elements: Vec<Value>,
}

/// A document that may have frames.
#[derive(Clone)]
struct Outer {
    /// The isolated world of our script in it.
    world: World,
    /// Where it is in the window. `None` for the document of the page.
    place: Option<Value>,
    /// The selectors of the frames that lead to it, joined by ` >> `. `None` if one of them has none.
    path: Option<String>,
    /// The elements of the frames that lead to it, from the outermost.
    frames: Vec<RemoteObjectId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    backend_node_id: BackendNodeId,
}

/// Where a frame is. `place` is `None` if the image shows nothing of it.
#[derive(Deserialize)]
struct FramePlace {
    place: Option<Value>,
    selector: Option<String>,
}

/// Reads the documents. `None` if the page cannot be read.
///
/// # Errors
/// If the browser does not answer.
pub(in crate::page) async fn list(
    context: &CaptureContext<'_>,
    image: ImageSize,
    clip: Option<&Clip>,
) -> Result<Option<Listed>, CaptureError> {
    let shown = shown_part(context, image, clip).await?;
    let is_outlined = context.spec.also.contains(&FileKind::Accessibility);
    let tree = is_outlined.then_some(Tree { size: 0, is_frame: false, frame: None });
    let hidden = context.spec.secrets.hidden_texts();
    let reading = Reading { shown: Some(&shown), view: None, place: None, found: 0, size: 0, tree, hidden: &hidden };
    let read = script::call_in::<Found>(context.tab, limit(context), ELEMENTS, "elements", &reading).await?;
    let Some(mut found) = read else { return Ok(None) };
    if !found.is_cut {
        add_frames(context, &mut found).await?;
    }
    let Found { elements, is_cut, outline, .. } = found;
    let Ok(json) = serde_json::to_vec(&ElementsFile { image, elements }) else { return Ok(None) };
    let outline = outline.map_or_else(Default::default, |Outline { lines, is_cut: is_outline_cut, .. }| {
        let mut text = lines.join("\n");
        text.push('\n');
        (text.into_bytes(), is_cut || is_outline_cut)
    });
    Ok(Some(Listed { elements: (json, is_cut), outline }))
}

/// Adds the elements in frames after those of the document.
async fn add_frames(context: &CaptureContext<'_>, found: &mut Found) -> Result<(), CaptureError> {
    let Some(world) = context.tab.watch.world() else { return Ok(()) };
    let until = Instant::now() + FRAMES_LIMIT;
    let calls = FrameCalls {
        tab: context.tab,
        session: &context.tab.session,
        world_name: WORLD,
        until: until.min(context.deadline),
        on_timeout: OnTimeout::Skip,
    };
    let Some(frame_tree) = calls.tree().await? else { return Ok(()) };
    let page = Outer { world, place: None, path: Some(String::new()), frames: Vec::new() };
    let mut open: Vec<(FrameTree, Outer)> =
        frame_tree.child_frames.into_iter().rev().map(|child| (child, page.clone())).collect();
    let mut looked_at = 0;
    while let Some((FrameTree { frame, child_frames }, outer)) = open.pop() {
        if looked_at == MAX_FRAMES || Instant::now() >= until {
            found.is_cut = true;
            return Ok(());
        }
        looked_at += 1;
        let Some(inner) = add_frame(context, calls, frame.id, &outer, found).await? else { continue };
        if found.is_cut {
            return Ok(());
        }
        open.extend(child_frames.into_iter().rev().map(|child| (child, inner.clone())));
    }
    Ok(())
}

/// Adds the elements of a frame, and returns its document. `None` if the image does not show it, or if it is gone.
async fn add_frame(
    context: &CaptureContext<'_>,
    calls: FrameCalls<'_>,
    frame: String,
    outer: &Outer,
    found: &mut Found,
) -> Result<Option<Outer>, CaptureError> {
    let owner: Option<Owner> = calls.call(GetFrameOwnerParams::new(frame.clone())).await?;
    let Some(Owner { backend_node_id }) = owner else { return Ok(None) };
    let Some(object_id) = calls.resolve(backend_node_id, Some(outer.world)).await? else { return Ok(None) };
    let known = json!({ "view": &found.view, "place": &outer.place });
    let script = format!("function () {{ return {}.frameAt(this, {known}) }}", ELEMENTS.trim_end());
    let placed: Option<FramePlace> = call_on(calls, object_id.clone(), script).await?;
    let Some(FramePlace { place: Some(place), selector }) = placed else { return Ok(None) };
    let Some(world) = calls.world(frame).await? else { return Ok(None) };

    let in_frame = outer.path.as_ref().zip(selector).map(|(path, selector)| match path.as_str() {
        "" => selector,
        path => format!("{path} >> {selector}"),
    });
    let tree =
        found.outline.as_ref().map(|outline| Tree { size: outline.size, is_frame: true, frame: in_frame.as_deref() });
    let hidden = context.spec.secrets.hidden_texts();
    let reading = Reading {
        shown: None,
        view: Some(&found.view),
        place: Some(&place),
        found: found.elements.len(),
        size: found.size,
        tree,
        hidden: &hidden,
    };
    let Ok(reading) = serde_json::to_string(&reading) else { return Ok(None) };
    let script = format!("{}.elements({reading})", ELEMENTS.trim_end());
    let Some(mut inner) = calls.evaluate::<Found>(world, script).await? else { return Ok(None) };
    let frames: Vec<RemoteObjectId> = outer.frames.iter().cloned().chain([object_id]).collect();
    cover_by_frames(calls, &frames, &hidden, &mut inner).await?;
    for mut element in inner.elements {
        if let Value::Object(members) = &mut element {
            members.insert("frame".to_owned(), json!(&in_frame));
        }
        found.elements.push(element);
    }
    found.is_cut = inner.is_cut;
    found.size = inner.size;
    if let (Some(outline), Some(added)) = (&mut found.outline, inner.outline) {
        outline.lines.extend(added.lines);
        outline.is_cut |= added.is_cut;
        outline.size = added.size;
    }
    Ok(Some(Outer { world, place: Some(place), path: in_frame, frames }))
}

/// Calls a function on an element. `None` if the frame with it is gone, or does not answer in time.
async fn call_on<T: DeserializeOwned>(
    calls: FrameCalls<'_>,
    element: RemoteObjectId,
    function: String,
) -> Result<Option<T>, CaptureError> {
    let params = CallFunctionOnParams {
        object_id: Some(element),
        return_by_value: Some(true),
        silent: Some(true),
        ..CallFunctionOnParams::new(function)
    };
    let called: Option<Evaluated<T>> = calls.call(params).await?;
    Ok(called.and_then(Evaluated::into_value))
}

/// Finds out what is in front of the frames of elements, for those that nothing in their own document is in front of. The last
/// frame is the one that has the elements.
async fn cover_by_frames(
    calls: FrameCalls<'_>,
    frames: &[RemoteObjectId],
    hidden: &[&str],
    inner: &mut Found,
) -> Result<(), CaptureError> {
    let mut points = std::mem::take(&mut inner.points);
    for frame in frames.iter().rev() {
        if points.iter().all(Value::is_null) {
            return Ok(());
        }
        let asked = json!({ "points": &points, "hidden": hidden });
        let script = format!("function () {{ return {}.frontsOfFrame(this, {asked}) }}", ELEMENTS.trim_end());
        let Some(found) = call_on::<FrameFronts>(calls, frame.clone(), script).await? else {
            set_fronts(&mut inner.elements, points.iter().map(|point| (!point.is_null()).then(|| json!(UNKNOWN))));
            return Ok(());
        };
        set_fronts(&mut inner.elements, found.fronts.into_iter().map(|front| (!front.is_null()).then_some(front)));
        points = found.points;
    }
    Ok(())
}

/// Sets `covered_by` of the elements that something is in front of.
fn set_fronts(elements: &mut [Value], fronts: impl Iterator<Item = Option<Value>>) {
    for (element, front) in elements.iter_mut().zip(fronts) {
        if let (Value::Object(members), Some(front)) = (element, front) {
            members.insert("covered_by".to_owned(), front);
        }
    }
}
