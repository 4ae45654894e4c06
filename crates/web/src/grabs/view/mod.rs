//! The state of a grab for display.

use std::borrow::Cow;
use std::time::Duration;

use askama::filters::Safe;
use grabd_domain::capture::{AttachmentName, CaptureSpec, FileKind, Scale};
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{
    BlockedRequests, Challenge, Consent, ConsentResult, Failure, FailureReason, Findings, Grab, OpenGraph, PageInfo,
    RenderMetadata, SettledBy, ShownFile, State, Status, Warning,
};
use grabd_options::{CaptureOption, Kind, TABLE};

use super::options;
use crate::environments::environment_name;
use crate::line_breaks::with_line_breaks;
use crate::team::TeamContext;
use crate::time_format::Moment;

/// Options that are shown even if they have their defaults.
const ALWAYS_SHOWN: [&str; 4] = ["url", "width", "height", "format"];

/// Maximum length of a title.
const TITLE_CHARS: usize = 80;

/// A grab as a page shows it.
pub(crate) struct View {
    pub(crate) id: String,
    /// The URL without its scheme, shortened.
    pub(crate) title: String,
    pub(crate) environment: &'static str,
    pub(crate) status: &'static str,
    pub(crate) sentence: String,
    pub(crate) image: ImageState,
    /// The CSS class of the tile in the gallery.
    pub(crate) tile: &'static str,
    pub(crate) created: Moment,
    /// The path of the grab's page.
    pub(crate) path: String,
    /// The form with the options of this grab.
    pub(crate) again: String,
}

/// The image of a grab, or why there is none.
pub(crate) enum ImageState {
    /// The grab is still open.
    Open,
    /// The image is available.
    Available(ImageView),
    /// The image was deleted.
    Deleted,
    /// The grab failed.
    Failed { title: &'static str, message: String },
}

/// An image with its public path.
pub(crate) struct ImageView {
    pub(crate) path: String,
    pub(crate) file_name: String,
    /// The absolute URL.
    pub(crate) url: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) frame: Frame,
    pub(crate) alt: String,
    /// The attachments.
    pub(crate) files: Vec<FileLink>,
    /// What changed since an earlier image.
    pub(crate) difference: Option<DifferenceView>,
    /// The form for a capture that is compared with this one.
    pub(crate) compare: String,
}

/// How large an image is shown: never larger than the page was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// In CSS pixels.
    pub(crate) width: u32,
    /// In CSS pixels.
    pub(crate) height: u32,
    /// Whether it is shown in its width first, because the whole would be too narrow to see anything.
    pub(crate) is_tall: bool,
}

impl Frame {
    /// The frame of an image with these pixels, of a page with a scale.
    pub(crate) fn of(width: u32, height: u32, scale: Scale) -> Self {
        let hundredths = u64::from(scale.hundredths());
        let shown =
            |pixels: u32| u32::try_from((u64::from(pixels) * 100).div_ceil(hundredths)).unwrap_or(u32::MAX).max(1);
        Self { width: shown(width), height: shown(height), is_tall: u64::from(height) * 2 > u64::from(width) * 5 }
    }
}

/// What changed since the image of an earlier grab.
pub(crate) struct DifferenceView {
    pub(crate) summary: String,
    /// The path of the earlier grab's page.
    pub(crate) earlier: String,
    /// The path of the image with the changed regions outlined, if anything changed.
    pub(crate) path: Option<String>,
}

/// An attachment.
pub(crate) struct FileLink {
    pub(crate) path: String,
    /// The name under which it is saved.
    pub(crate) file_name: String,
    pub(crate) label: Cow<'static, str>,
    pub(crate) size: String,
}

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

impl View {
    pub(crate) fn of(grab: &Grab, at: &TeamContext) -> Self {
        let title = title(grab.spec.url.as_str());
        Self {
            id: grab.id.to_string(),
            environment: environment_name(grab.environment),
            status: status_name(grab.status()),
            sentence: sentence(grab),
            image: image_state(grab, &title, at),
            tile: tile(grab),
            created: grab.created_at.into(),
            path: at.grab_path(grab.id, ""),
            again: format!("{}?{}", at.path("capture"), options::to_query(&grab.spec, grab.environment)),
            title,
        }
    }

    /// The title with `<wbr>` where lines may break.
    pub(crate) fn title_html(&self) -> Safe<String> {
        with_line_breaks(&self.title)
    }

    /// The CSS class of the state.
    pub(crate) const fn class(&self) -> &'static str {
        match self.image {
            ImageState::Open => "open",
            ImageState::Available(_) => "done",
            ImageState::Deleted => "deleted",
            ImageState::Failed { .. } => "failed",
        }
    }

    /// Whether the grab has an image.
    pub(crate) fn has_image(&self) -> bool {
        matches!(self.image, ImageState::Available(_))
    }

    /// Whether the grab is still open.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.image, ImageState::Open)
    }
}

/// The CSS class of a grab's tile. Each has its own sign.
fn tile(grab: &Grab) -> &'static str {
    match &grab.state {
        State::Pending => "queued",
        State::Processing => "rendering",
        State::Done { .. } if grab.deleted_at.is_some() => "deleted",
        State::Done { .. } if grab.spec.is_part() => "done part",
        State::Done { .. } => "done",
        State::Failed { failure, .. } if failure.reason == FailureReason::RenderBlocked => "blocked",
        State::Failed { .. } => "failed",
    }
}

/// A URL without its scheme, shortened.
pub(crate) fn title(url: &str) -> String {
    let short = url.split_once("://").map_or(url, |(_, rest)| rest);
    let short = short.strip_suffix('/').unwrap_or(short);
    match short.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &short[..end]),
        None => short.to_owned(),
    }
}

/// The display name of a status.
pub(crate) const fn status_name(status: Status) -> &'static str {
    match status {
        Status::Pending => "Queued",
        Status::Processing => "Rendering",
        Status::Done => "Done",
        Status::Failed => "Failed",
    }
}

fn sentence(grab: &Grab) -> String {
    match (&grab.state, grab.deleted_at) {
        (State::Pending, _) if grab.attempts > 0 => "Queued for another attempt.".to_owned(),
        (State::Pending, _) => "Waiting for a free browser.".to_owned(),
        (State::Processing, _) => "The page is being rendered.".to_owned(),
        (State::Done { .. }, Some(_)) => "The image was deleted.".to_owned(),
        (State::Done { .. }, None) if grab.environment == Environment::Test => {
            "Placeholder image. The page was not opened and nothing was charged.".to_owned()
        }
        (State::Done { finished_at, .. }, None) => {
            format!("Captured in {}.", seconds(finished_at.since(grab.created_at)))
        }
        (State::Failed { .. }, _) => "No image was made and nothing was charged.".to_owned(),
    }
}

fn image_state(grab: &Grab, title: &str, at: &TeamContext) -> ImageState {
    match &grab.state {
        State::Pending | State::Processing => ImageState::Open,
        State::Done { image: Some(key), metadata, .. } if grab.deleted_at.is_none() => {
            let width = metadata.image_width.unwrap_or_else(|| grab.spec.viewport.width());
            let height = metadata.image_height.unwrap_or_else(|| grab.spec.reported_height());
            ImageState::Available(ImageView {
                path: format!("/{}", key.path()),
                url: format!("{}/{}", at.public_url, key.path()),
                file_name: format!("{}-{}.{}", grab.spec.url.host(), grab.id, key.format().as_str()),
                width,
                height,
                frame: Frame::of(width, height, grab.spec.scale),
                alt: format!("Screenshot of {title}"),
                files: file_links(grab, metadata),
                difference: metadata.difference.as_ref().map(|difference| DifferenceView {
                    summary: difference.summary(),
                    earlier: at.grab_path(difference.compared_to, ""),
                    path: metadata.difference_image().map(|file| format!("/{}", file.path())),
                }),
                compare: {
                    let spec = CaptureSpec { compare_to: Some(grab.id), ..grab.spec.clone() };
                    format!("{}?{}", at.path("capture"), options::to_query(&spec, grab.environment))
                },
            })
        }
        State::Done { .. } => ImageState::Deleted,
        State::Failed { failure, .. } => failed(failure),
    }
}

fn file_links(grab: &Grab, metadata: &RenderMetadata) -> Vec<FileLink> {
    metadata.shown_files(grab.spec.format).map(|file| file_link(grab, &file)).collect()
}

fn file_link(grab: &Grab, file: &ShownFile<'_>) -> FileLink {
    let label = match file.name {
        AttachmentName::Also(FileKind::Html) => "HTML".into(),
        AttachmentName::Also(FileKind::Text) => "Text".into(),
        AttachmentName::Also(FileKind::Markdown) => "Markdown".into(),
        AttachmentName::Also(FileKind::Links) => "Links".into(),
        AttachmentName::Also(FileKind::Elements) => "Elements".into(),
        AttachmentName::Also(FileKind::Marks) => "Marks".into(),
        AttachmentName::Also(FileKind::Pdf) => "PDF".into(),
        AttachmentName::Also(FileKind::Report) => "Report".into(),
        AttachmentName::Also(FileKind::Difference) => "Difference".into(),
        AttachmentName::Slice(number) => format!("Slice {}", number.get()).into(),
        AttachmentName::Viewport(number) => match file.viewport {
            Some(size) => format!("{} × {}", size.viewport_width, size.viewport_height).into(),
            None => format!("Viewport {}", number.get()).into(),
        },
    };
    let name = file.name.file_name(grab.spec.format);
    let file_name = format!("{}-{}-{name}", grab.spec.url.host(), grab.id);
    FileLink { path: format!("/{}", file.path), file_name, label, size: size(file.bytes) }
}

fn failed(failure: &Failure) -> ImageState {
    let title = match failure.reason {
        FailureReason::RenderBlocked => "The site blocked the capture",
        FailureReason::RenderFailed => "The page could not be captured",
        FailureReason::SsrfDetected => "The page redirected to a URL that is not public",
        FailureReason::InternalError => "Internal error",
    };
    ImageState::Failed { title, message: failure.message.clone() }
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
        shown.map(|(option, value)| detail(option.label, with_unit(option, option.kind.to_text(&value)))).collect();
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

/// A value with its unit, if it has one.
fn with_unit(option: &CaptureOption, text: String) -> String {
    let Kind::Integer { unit, .. } = option.kind else { return text };
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
            std::iter::once(image).chain(hash_detail(metadata)).collect()
        }
        State::Done { finished_at, size_bytes, execution_ms, metadata, .. } => {
            let took = finished_at.since(grab.created_at);
            let rendered = Duration::from_millis(u64::from(*execution_ms));
            let mut shown = vec![detail("Image", image_summary(metadata, *size_bytes))];
            shown.push(detail("Total time", seconds(took)));
            shown.push(detail("Rendering time", seconds(rendered.min(took))));
            shown.extend(render_details(metadata));
            shown
        }
        State::Failed { finished_at, failure, metadata } => {
            let mut shown = vec![
                detail("Code", failure.reason.code().as_str()),
                detail("Time to failure", seconds(finished_at.since(grab.created_at))),
            ];
            shown.extend(render_details(metadata));
            shown
        }
    }
}

fn image_summary(metadata: &RenderMetadata, size_bytes: u64) -> String {
    let size = size(size_bytes);
    match (metadata.image_width, metadata.image_height) {
        (Some(width), Some(height)) => format!("{width} × {height} pixels, {size}"),
        (_, _) => size,
    }
}

/// What the browser recorded while rendering.
fn render_details(metadata: &RenderMetadata) -> Vec<Detail> {
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
        image_sha256,
        files: _,
        slices: _,
        viewports: _,
        findings,
        difference: _,
        phash: _,
    } = metadata;
    let mut shown = Vec::new();
    // Texts of the page. The template escapes them.
    for (name, text) in [("Title", title), ("Description", description), ("Language", lang)] {
        shown.extend(text.iter().map(|text| detail(name, text.as_str())));
    }
    if let Some(url) = final_url {
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
        shown.push(detail("Truncated", "the page exceeds the maximum image size"));
    }
    let texts: Vec<String> = warnings.iter().map(|warning| warning_text(*warning)).collect();
    shown.extend((!texts.is_empty()).then(|| detail("Warnings", texts.join("; "))));
    shown.extend(image_sha256.iter().map(|digest| detail("SHA-256 of the image", digest.as_str())));
    shown.extend(hash_detail(metadata));
    shown
}

fn hash_detail(metadata: &RenderMetadata) -> Option<Detail> {
    metadata.phash.map(|hash| detail("Perceptual hash", hash.to_string()))
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
    }
}

/// Creates a detail.
pub(crate) fn detail(name: &'static str, value: impl Into<String>) -> Detail {
    Detail { name, value: value.into() }
}

/// A duration in a suitable unit.
pub(crate) fn seconds(time: Duration) -> String {
    match time.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..100_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        1_000_000.. => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests;
