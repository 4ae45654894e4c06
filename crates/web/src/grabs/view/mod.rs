//! The state of a grab for display.

mod details;
mod files;
mod units;

use askama::filters::Safe;
use grabd_domain::capture::Scale;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Failure, FailureReason, Grab, State, Status};
use grabd_domain::permissions::Permission;
use grabd_options::plain;

pub(crate) use self::details::{Detail, Identifier, identifiers, omitted_labels, outcome, request};
pub(crate) use self::files::FileLink;
pub(crate) use self::units::seconds;
use super::options;
use crate::environments::environment_name;
use crate::line_breaks::with_line_breaks;
use crate::team::TeamContext;
use crate::time_format::Moment;

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
    /// The form for a monitor with the options of this grab. `None` if a document was captured.
    pub(crate) watch: Option<String>,
    /// Whether the reader may capture the page again and delete the image.
    pub(crate) can_capture: bool,
    /// The path of the page of the grab that this one is compared with, if any.
    pub(crate) compared_to: Option<String>,
}

/// The image of a grab, or why there is none.
pub(crate) enum ImageState {
    /// The grab is still open.
    Open,
    /// The image is available.
    Available(ImageView),
    /// The image was deleted.
    Deleted,
    /// The grab failed. The message has the labels of options.
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
}

impl ImageView {
    /// Whether the image was compared with an earlier one, and differs from it.
    pub(crate) fn has_changed(&self) -> bool {
        self.difference.as_ref().is_some_and(|difference| difference.path.is_some())
    }
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
    /// A sentence without its end, such as `2.1 % changed in 3 regions`.
    pub(crate) summary: String,
    /// The path of the earlier grab's page.
    pub(crate) earlier: String,
    /// Both images side by side.
    pub(crate) side_by_side: String,
    /// The path of the image with the changed regions outlined, if anything changed.
    pub(crate) path: Option<String>,
}

impl View {
    pub(crate) fn of(grab: &Grab, at: &TeamContext) -> Self {
        let title = title(grab.spec.url.as_str());
        let query = options::to_query(&grab.spec, grab.environment);
        Self {
            id: grab.id.to_string(),
            environment: environment_name(grab.environment),
            status: status_name(grab.status()),
            sentence: sentence(grab),
            image: image_state(grab, &title, at),
            tile: tile(grab),
            created: grab.created_at.into(),
            path: at.grab_path(grab.id, ""),
            again: format!("{}?{query}", at.path("capture")),
            watch: (!grab.spec.has_own_document()).then(|| format!("{}?{query}", at.path("monitors/new"))),
            can_capture: at.may(Permission::Capture),
            compared_to: grab.spec.compare_to.map(|earlier| at.grab_path(earlier, "")),
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
                files: files::file_links(grab, metadata),
                difference: metadata.difference.as_ref().map(|difference| DifferenceView {
                    summary: capitalized(&difference.summary()),
                    earlier: at.grab_path(difference.compared_to, ""),
                    side_by_side: at.path(&format!("grabs/compare?grab={}&grab={}", difference.compared_to, grab.id)),
                    path: metadata.difference_image().map(|file| format!("/{}", file.path())),
                }),
            })
        }
        State::Done { .. } => ImageState::Deleted,
        State::Failed { failure, .. } => failed(failure),
    }
}

/// The text with its first letter in upper case, as the beginning of a sentence.
pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn failed(failure: &Failure) -> ImageState {
    let title = match failure.reason {
        FailureReason::RenderBlocked => "The site blocked the capture",
        FailureReason::RenderFailed => "The page could not be captured",
        FailureReason::SsrfDetected => "The page redirected to a URL that is not public",
        FailureReason::InternalError => "Internal error",
    };
    ImageState::Failed { title, message: plain::text(&failure.message) }
}

#[cfg(test)]
mod tests;
