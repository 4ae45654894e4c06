//! What is known of a grab, as names and values.

use std::time::Duration;

use askama::filters::Safe;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{
    BlockedRequests, Challenge, Consent, ConsentResult, Findings, Grab, OpenGraph, PageInfo, RenderMetadata, SettledBy,
    State, Warning,
};
use grabd_options::{CaptureOption, Kind, TABLE, Value, unknown};

use super::units::{seconds, size};
use crate::line_breaks::with_line_breaks;

/// Options that are shown even if they have their defaults.
const ALWAYS_SHOWN: [&str; 4] = ["url", "width", "height", "format"];

/// A name and a value.
pub(crate) struct Detail {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

impl Detail {
    /// The value, which may be a URL, with `<wbr>` where lines may break.
    pub(crate) fn value_html(&self) -> Safe<String> {
        with_line_breaks(&self.value)
    }
}

/// A name and a value to copy.
pub(crate) struct Identifier {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

/// The options of the request.
pub(crate) fn request(grab: &Grab) -> Vec<Detail> {
    let request = grab.spec.to_request();
    let options = TABLE.iter().filter(|option| !option.is_secret);
    let values = options.filter_map(|option| Some((option, request.get(option.name)?)));
    let shown = values.filter(|(option, value)| ALWAYS_SHOWN.contains(&option.name) || !option.is_default(value));
    // Only the names of secret options are known here.
    let secrets = grab.spec.secrets.given().iter().filter_map(|name| grabd_options::find(name));
    let mut details: Vec<Detail> =
        shown.map(|(option, value)| detail(option.label, option_text(option, &value))).collect();
    details.extend(secrets.map(|option| detail(option.label, "given, not shown")));
    details.extend(
        omitted(grab).map(|(option, digest)| detail(option.label, format!("no longer kept (SHA-256 {digest})"))),
    );
    details
}

/// The long options that are no longer kept, and their digests.
fn omitted(grab: &Grab) -> impl Iterator<Item = (&'static CaptureOption, &str)> {
    grab.spec.omitted.iter().filter_map(|(name, digest)| Some((grabd_options::find(name)?, digest.as_str())))
}

/// The labels of the long options that are no longer kept, so that capturing again leaves them out.
pub(crate) fn omitted_labels(grab: &Grab) -> Vec<&'static str> {
    omitted(grab).map(|(option, _)| option.label).collect()
}

/// The value of an option for people.
fn option_text(option: &CaptureOption, value: &Value) -> String {
    if let Value::Flag(is_on) = value {
        return yes_or_no(*is_on).to_owned();
    }
    with_unit(option, option.kind.to_text(value))
}

const fn yes_or_no(is_so: bool) -> &'static str {
    if is_so { "Yes" } else { "No" }
}

/// A value with its unit, if it has one.
fn with_unit(option: &CaptureOption, text: String) -> String {
    let Kind::Integer { unit, .. } = option.kind else { return text };
    if unit.is_empty() {
        return text;
    }
    let unit = if text == "1" { unit.strip_suffix('s').unwrap_or(unit) } else { unit };
    format!("{text} {unit}")
}

/// The outcome of the grab.
pub(crate) fn outcome(grab: &Grab) -> Vec<Detail> {
    match &grab.state {
        State::Pending | State::Processing => Vec::new(),
        // A placeholder has no information about the page.
        State::Done { size_bytes, metadata, .. } if grab.environment == Environment::Test => {
            let image = detail("Image", image_summary(metadata, *size_bytes));
            [image].into_iter().chain(unknown_options(grab)).collect()
        }
        State::Done { finished_at, size_bytes, execution_ms, metadata, .. } => {
            let took = finished_at.since(grab.created_at);
            let rendered = Duration::from_millis(u64::from(*execution_ms));
            let mut shown = vec![detail("Image", image_summary(metadata, *size_bytes))];
            shown.push(detail("Total time", seconds(took)));
            shown.push(detail("Rendering time", seconds(rendered.min(took))));
            shown.extend(render_details(metadata, grab.spec.url.as_str()));
            shown.extend(unknown_options(grab));
            shown
        }
        State::Failed { finished_at, failure, metadata } => {
            let mut shown = vec![
                detail("Code", failure.reason.code().as_str()),
                detail("Time to failure", seconds(finished_at.since(grab.created_at))),
            ];
            shown.extend(render_details(metadata, grab.spec.url.as_str()));
            shown.extend(unknown_options(grab));
            shown
        }
    }
}

/// Members of the request that are no options.
fn unknown_options(grab: &Grab) -> Option<Detail> {
    let names: Vec<String> = grab.spec.unknown.iter().map(|name| unknown::described(name)).collect();
    (!names.is_empty()).then(|| detail("Unknown options", names.join(", ")))
}

fn image_summary(metadata: &RenderMetadata, size_bytes: u64) -> String {
    let size = size(size_bytes);
    match (metadata.image_width, metadata.image_height) {
        (Some(width), Some(height)) => format!("{width} × {height} pixels, {size}"),
        (_, _) => size,
    }
}

/// What the browser recorded while rendering. `requested` is the URL that was captured, which the page shows already.
pub(super) fn render_details(metadata: &RenderMetadata, requested: &str) -> Vec<Detail> {
    let RenderMetadata {
        final_url,
        http_status,
        settled_by,
        blocked_requests,
        truncated,
        warnings,
        image_width: _,
        image_height: _,
        page: PageInfo { title, description, lang, canonical_url, icon_url, open_graph, page_width, page_height, words },
        redirects,
        timings: _,
        image_sha256: _,
        files: _,
        slices: _,
        viewports: _,
        step_images: _,
        findings,
        difference: _,
        phash: _,
    } = metadata;
    let mut shown = Vec::new();
    // Texts of the page. The template escapes them.
    for (name, text) in [("Title", title), ("Description", description), ("Language", lang)] {
        shown.extend(text.iter().map(|text| detail(name, text.as_str())));
    }
    if let Some(url) = final_url.as_ref().filter(|url| *url != requested) {
        shown.push(detail("Final URL", url.as_str()));
    }
    if let Some(status) = http_status {
        shown.push(detail("HTTP status", status.to_string()));
    }
    if let Some(redirects @ 1..) = redirects {
        shown.push(detail("Redirects", redirects.to_string()));
    }
    if let (Some(width), Some(height)) = (page_width, page_height) {
        shown.push(detail("Page", format!("{width} × {height} CSS pixels")));
    }
    shown.extend(words.map(|words| detail("Words", words.to_string())));
    let none = OpenGraph::default();
    let OpenGraph { title, description, image, site_name, kind } = open_graph.as_ref().unwrap_or(&none);
    let links = [("Canonical URL", canonical_url), ("Icon", icon_url), ("Link title", title), ("Link image", image)];
    let more = [("Link description", description), ("Site name", site_name), ("Type of page", kind)];
    shown.extend(links.into_iter().chain(more).filter_map(|(name, text)| Some(detail(name, text.as_deref()?))));
    if let Some(settled_by) = settled_by {
        let text = match settled_by {
            SettledBy::Quiet => "Yes",
            SettledBy::Deadline => "No, the time limit was reached",
        };
        shown.push(detail("Settled", text));
    }
    if *blocked_requests > 0 {
        shown.push(detail("Blocked requests", format!("{blocked_requests} to addresses that are not public")));
    }
    shown.extend(finding_details(findings));
    if *truncated {
        shown.push(detail("Truncated", "Yes, the page exceeds the maximum image size"));
    }
    let texts: Vec<String> = warnings.iter().map(|warning| warning_text(*warning)).collect();
    shown.extend((!texts.is_empty()).then(|| detail("Warnings", texts.join("; "))));
    shown
}

/// What programs refer to: it is shown on request, and can be copied.
pub(crate) fn identifiers(grab: &Grab) -> Vec<Identifier> {
    let identifier = |name, value: String| Identifier { name, value };
    let mut shown = vec![identifier("Id", grab.id.to_string())];
    if let State::Done { metadata, .. } = &grab.state {
        let digest = metadata.image_sha256.clone().map(|digest| identifier("SHA-256 of the image", digest));
        let hash = metadata.phash.map(|hash| identifier("Perceptual hash", hash.to_string()));
        shown.extend(digest.into_iter().chain(hash));
    }
    shown
}

/// What was found out about the page. A blank page is shown as a warning.
fn finding_details(findings: &Findings) -> Vec<Detail> {
    let Findings { blank: _, challenge, consent, blocked } = findings;
    let mut shown = Vec::new();
    if let Some(challenge) = challenge {
        let text = match *challenge == Challenge::Unknown {
            true => "of an unknown bot protection service",
            false => challenge.as_str(),
        };
        shown.push(detail("Challenge", text));
    }
    if let Some(Consent { cmp, result }) = consent {
        let result = match result {
            ConsentResult::Rejected => "consent was refused",
            ConsentResult::Hidden => "the dialog was hidden",
            ConsentResult::Failed => "the dialog could not be removed",
        };
        shown.push(detail("Cookie banner", format!("{cmp}: {result}")));
    }
    if let Some(BlockedRequests { guard: _, ads, trackers, asked }) = blocked {
        for (name, count) in [("Blocked ads", ads), ("Blocked trackers", trackers), ("Blocked on request", asked)] {
            if *count > 0 {
                shown.push(detail(name, count.to_string()));
            }
        }
    }
    shown
}

/// The display text of a warning.
fn warning_text(warning: Warning) -> String {
    let counted = |count: u32, one: &str, several: &str| match count {
        1 => one.to_owned(),
        count => format!("{count} {several}"),
    };
    match warning {
        Warning::RequestsInFlight(count) => {
            counted(count, "A request of the page was", "requests of the page were") + " still under way"
        }
        Warning::ImagesFailed(count) => counted(count, "An image", "images") + " could not be loaded",
        Warning::ImagesMissing(count) => counted(count, "An image", "images") + " had not arrived",
        Warning::FontsFailed(count) => counted(count, "A web font", "web fonts") + " could not be loaded",
        Warning::SpinnerVisible => "The page still showed that it was loading".to_owned(),
        Warning::Blank => "The page is blank".to_owned(),
        Warning::WideCut => "The page is wider than the image".to_owned(),
        Warning::Endless => "The page goes on without end; the image has its beginning".to_owned(),
        Warning::VirtualList => "A list on the page only keeps the rows in view; others may be missing".to_owned(),
        Warning::FrameUnfinished => "A frame on the page had not finished loading".to_owned(),
        Warning::DocumentsDenied(count) => {
            counted(count, "A document in a frame was", "documents in frames were")
                + " not loaded, because of rules of the service or the wish of its site"
        }
        Warning::AlsoTruncated => "A text or the links beside the image were cut at their maximum size".to_owned(),
        Warning::DocumentIncomplete => "The document broke off, or was still arriving".to_owned(),
        Warning::WorkPending => "The page was still waiting for its storage or a service worker".to_owned(),
        Warning::ScrollerCut => "A box on the page can be scrolled further than the image shows".to_owned(),
        Warning::GlyphsMissing(count) => counted(count, "A character has", "characters have") + " no font here",
        Warning::SelectorMany(count) => format!("{count} elements match the selector; this is the first visible one"),
        Warning::AreasBlank(count) => {
            counted(count, "An area is", "areas are") + " empty where the page has text or an image"
        }
        Warning::FirstScreenDiffers => {
            "The beginning of the image differs from the first screen of the page".to_owned()
        }
        Warning::NoMainContent => "The page has no article: its text and Markdown are those of all of it".to_owned(),
        Warning::EvidenceTimestampFailed => "The evidence has no time stamp of another authority".to_owned(),
    }
}

/// Creates a detail.
pub(crate) fn detail(name: &'static str, value: impl Into<String>) -> Detail {
    Detail { name, value: value.into() }
}
