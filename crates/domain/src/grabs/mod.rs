//! Grabs: states, warnings, failures and revisions.

mod difference;
mod file;
mod findings;
mod image_key;
mod open_graph;
mod phash;
mod slice;
mod stage;
mod step_image;
mod stored_files;
mod viewport_image;
mod warning;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::difference::{Difference, MAX_REGIONS, Region};
pub use self::file::{FileKey, GrabFile};
pub use self::findings::{BlockedRequests, Challenge, Consent, ConsentResult, Findings};
pub use self::image_key::ImageKey;
pub use self::open_graph::OpenGraph;
use self::open_graph::{bounded_text, bounded_url};
pub use self::phash::PerceptualHash;
pub use self::slice::{GrabSlice, ShownFile, SlicePlace};
pub use self::stage::{Stage, Stages};
pub use self::step_image::{GrabStepImage, StepImage};
pub use self::viewport_image::{GrabViewport, ViewportSize};
pub use self::warning::Warning;
use self::warning::words;
pub use crate::capture::Class;
use crate::capture::{AttachmentName, CaptureSpec, Format, SliceNumber, StepImageNumber, ViewportNumber};
use crate::credentials::Environment;
use crate::faults::{Code, ErrorCause, Fault, Field};
use crate::ids::{GrabId, TeamId};
use crate::limits::{MESSAGE_BYTES, PAGE_URL_BYTES, WARNINGS, shortened};
use crate::timestamp::Timestamp;

/// Status of a grab, as in the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the contract's own words")]
pub enum Status {
    Pending,
    Processing,
    Done,
    Failed,
}

impl Status {
    /// The name in the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// Parses the name in the contract.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Processing, Self::Done, Self::Failed].into_iter().find(|s| s.as_str() == text)
    }

    /// Returns whether the status is final.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

/// Why the page counted as settled when it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettledBy {
    /// Nothing under way would change the image.
    Quiet,
    /// The settle time was up.
    Deadline,
}

impl SettledBy {
    /// The name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Deadline => "deadline",
        }
    }
}

/// What was observed during a render. Fields that were not reached are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RenderMetadata {
    /// The document's URL after redirects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// The document's HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Why the page counted as settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<SettledBy>,
    /// Number of requests that the egress guard refused.
    pub blocked_requests: u32,
    /// Width of the image in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_width: Option<u32>,
    /// Height of the image in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_height: Option<u32>,
    /// Whether the page was longer than the maximum height of a full-page image.
    pub truncated: bool,
    /// What may be missing from the image.
    #[serde(with = "words", skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What the page says about itself. Empty unless there is an image.
    #[serde(skip_serializing_if = "PageInfo::is_empty")]
    pub page: PageInfo,
    /// Number of redirects that were followed, by HTTP or by the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirects: Option<u32>,
    /// How long the steps of the capture took. `None` unless there is an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// SHA-256 of the image file, in lower-case hexadecimal digits. Set by the core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_sha256: Option<String>,
    /// The attachments. Set by the core.
    #[serde(with = "stored_files", skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<GrabFile>,
    /// The slices of the image, from top to bottom. Set by the core.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<GrabSlice>,
    /// The images in further viewports, in the order of the request. Set by the core.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub viewports: Vec<GrabViewport>,
    /// The images that steps took, in the order of the steps. Set by the core.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub step_images: Vec<GrabStepImage>,
    /// What was found out about the page.
    #[serde(flatten)]
    pub findings: Findings,
    /// What changed since the image of an earlier grab. Set by the core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// The perceptual hash of the image, if it was asked for. Set by the core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phash: Option<PerceptualHash>,
}

/// How long the steps of a capture took, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timings {
    /// From the start to the document, with its redirects.
    pub navigate_ms: u32,
    /// From the document to its load event. `None` if that did not come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_ms: Option<u32>,
    /// From then until the page had settled and was laid out for the image.
    pub settle_ms: u32,
    /// Taking the image.
    pub shot_ms: u32,
}

/// What a page says about itself. The page is not trusted: texts are limited and have no control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PageInfo {
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The language tag of its document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// The http(s) URL that it calls its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical_url: Option<String>,
    /// The http(s) URL of its icon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
    /// How it wants to be shown where somebody links to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_graph: Option<OpenGraph>,
    /// Its width in CSS pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_width: Option<u32>,
    /// Its height in CSS pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_height: Option<u32>,
    /// The number of words that it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<u32>,
}

impl PageInfo {
    /// The most characters of a title, a description, a language tag and a URL.
    pub const TITLE_CHARS: usize = 300;
    /// See [`Self::TITLE_CHARS`].
    pub const DESCRIPTION_CHARS: usize = 1000;
    /// See [`Self::TITLE_CHARS`].
    pub const LANG_CHARS: usize = 64;
    /// See [`Self::TITLE_CHARS`].
    pub const URL_CHARS: usize = open_graph::URL_CHARS;

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Shortens texts that are too long, and leaves out URLs that are too long or not of the web.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self {
            title: bounded_text(self.title, Self::TITLE_CHARS),
            description: bounded_text(self.description, Self::DESCRIPTION_CHARS),
            lang: bounded_text(self.lang, Self::LANG_CHARS),
            canonical_url: bounded_url(self.canonical_url),
            icon_url: bounded_url(self.icon_url),
            open_graph: self.open_graph.and_then(OpenGraph::bounded),
            page_width: self.page_width,
            page_height: self.page_height,
            words: self.words,
        }
    }
}

impl RenderMetadata {
    /// Shortens what the page chose. Applied wherever metadata enters, so that no page can fill a list or the database.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.final_url = self.final_url.map(|url| shortened(url, PAGE_URL_BYTES));
        self.warnings.truncate(WARNINGS);
        self
    }

    /// Whether there are attachments.
    #[must_use]
    pub fn has_files(&self) -> bool {
        self.file_count() > 0
    }

    /// The number of attachments.
    #[must_use]
    pub fn file_count(&self) -> usize {
        self.files.len() + self.slices.len() + self.viewports.len() + self.step_images.len()
    }

    /// The slices with their numbers, from the top of the image.
    pub fn numbered_slices(&self) -> impl Iterator<Item = (SliceNumber, &GrabSlice)> {
        SliceNumber::all().zip(&self.slices)
    }

    /// The images in further viewports with their numbers, in the order of the request.
    pub fn numbered_viewports(&self) -> impl Iterator<Item = (ViewportNumber, &GrabViewport)> {
        ViewportNumber::all().zip(&self.viewports)
    }

    /// The images that steps took with their numbers, in the order of the steps.
    pub fn numbered_step_images(&self) -> impl Iterator<Item = (StepImageNumber, &GrabStepImage)> {
        StepImageNumber::all().zip(&self.step_images)
    }

    /// The attachments of an image of this format: first those that `also` asks for, then the slices, then the images in
    /// further viewports, and those that steps took.
    pub fn shown_files(&self, format: Format) -> impl Iterator<Item = ShownFile<'_>> {
        let shown = move |name: AttachmentName, key: &FileKey, bytes| ShownFile {
            name,
            path: format!("f/{}/{}", key.as_str(), name.file_name(format)),
            media_type: name.media_type(format),
            bytes,
            place: None,
            viewport: None,
            step_image: None,
        };
        let also = self.files.iter().map(move |file| shown(AttachmentName::Also(file.kind), &file.key, file.bytes));
        let slices = self.numbered_slices().map(move |(number, slice)| ShownFile {
            place: Some(&slice.place),
            ..shown(AttachmentName::Slice(number), &slice.key, slice.bytes)
        });
        let viewports = self.numbered_viewports().map(move |(number, image)| ShownFile {
            viewport: Some(&image.size),
            ..shown(AttachmentName::Viewport(number), &image.key, image.bytes)
        });
        let step_images = self.numbered_step_images().map(move |(number, taken)| ShownFile {
            step_image: Some(&taken.image),
            ..shown(AttachmentName::Step(number), &taken.key, taken.bytes)
        });
        also.chain(slices).chain(viewports).chain(step_images)
    }
}

/// Why a grab failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// The target site blocked the capture.
    RenderBlocked,
    /// The page could not be rendered.
    RenderFailed,
    /// The page led to an address that is not public.
    SsrfDetected,
    /// The service failed: all attempts were used.
    InternalError,
}

impl FailureReason {
    /// The error code in the contract.
    pub const fn code(self) -> Code {
        match self {
            Self::RenderBlocked => Code::RenderBlocked,
            Self::RenderFailed => Code::RenderFailed,
            Self::SsrfDetected => Code::SsrfDetected,
            Self::InternalError => Code::InternalError,
        }
    }

    /// Whose fault it is, unless more is known.
    pub const fn cause(self) -> ErrorCause {
        match self {
            Self::RenderBlocked | Self::RenderFailed | Self::SsrfDetected => ErrorCause::Target,
            Self::InternalError => ErrorCause::Service,
        }
    }

    /// Parses a stored error code.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::RenderBlocked, Self::RenderFailed, Self::SsrfDetected, Self::InternalError]
            .into_iter()
            .find(|reason| reason.code().as_str() == text)
    }
}

/// The failure of a grab, with a message for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason.
    pub reason: FailureReason,
    /// One sentence for people, without internal details.
    pub message: String,
    /// Whose fault it is.
    pub cause: ErrorCause,
}

impl Failure {
    /// Creates a failure with the usual cause of its reason. A message beyond [`MESSAGE_BYTES`] is shortened, since it may
    /// contain text of the page.
    pub fn new(reason: FailureReason, message: impl Into<String>) -> Self {
        Self { reason, message: shortened(message.into(), MESSAGE_BYTES), cause: reason.cause() }
    }

    /// The same failure with another cause.
    #[must_use]
    pub fn caused_by(self, cause: ErrorCause) -> Self {
        Self { cause, ..self }
    }

    /// The cause of a time-out after this time in a slot. A page that had most of the time limit is to blame itself;
    /// otherwise the grab waited for most of its time.
    pub fn timeout_cause(in_slot: Duration, limit: Duration) -> ErrorCause {
        if in_slot * 2 >= limit { ErrorCause::Target } else { ErrorCause::Service }
    }

    /// The failure of a grab whose image file has `bytes` bytes, more than the maximum.
    pub fn image_too_large(bytes: u64, max_bytes: u64) -> Self {
        let tenths = |bytes: u64| bytes.saturating_mul(10).div_ceil(1 << 20);
        let megabytes = |tenths: u64| match tenths % 10 {
            0 => (tenths / 10).to_string(),
            rest => format!("{}.{rest}", tenths / 10),
        };
        let (seen, allowed) = (megabytes(tenths(bytes)), megabytes(tenths(max_bytes)));
        let message = format!(
            "The image has {seen} MB; at most {allowed} MB are allowed. Use format jpeg or webp, a lower scale, a \
             smaller viewport, or max_height."
        );
        Self::new(FailureReason::RenderFailed, message)
    }

    /// The error returned to a synchronous caller.
    pub fn to_fault(&self) -> Fault {
        match self.reason {
            FailureReason::RenderBlocked => Fault::RenderBlocked(self.message.clone()),
            FailureReason::RenderFailed => Fault::RenderFailed(self.message.clone()),
            FailureReason::SsrfDetected => {
                Fault::SsrfDetected(Field::new("url", "", "a URL that leads to public addresses only"))
            }
            FailureReason::InternalError => Fault::InternalError,
        }
    }
}

/// The state of a grab, with the data of that state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Waiting for a renderer.
    Pending,
    /// Being rendered.
    Processing,
    /// The image was made. It may have been deleted since.
    Done {
        /// End time.
        finished_at: Timestamp,
        /// Key of the image. `None` for placeholders, which are drawn on demand, and after deletion.
        image: Option<ImageKey>,
        /// Size of the image file.
        size_bytes: u64,
        /// From the start of the render to the finished file.
        execution_ms: u32,
        /// What was observed during the render.
        metadata: RenderMetadata,
    },
    /// There is no image.
    Failed {
        /// End time.
        finished_at: Timestamp,
        /// The reason.
        failure: Failure,
        /// What was observed before the failure.
        metadata: RenderMetadata,
    },
}

/// A grab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grab {
    /// The id.
    pub id: GrabId,
    /// The owning team.
    pub team: TeamId,
    /// The environment.
    pub environment: Environment,
    /// Whether the caller waits for the result.
    pub class: Class,
    /// What to capture.
    pub spec: CaptureSpec,
    /// Creation time.
    pub created_at: Timestamp,
    /// When the image was deleted on request.
    pub deleted_at: Option<Timestamp>,
    /// Number of attempts started.
    pub attempts: u32,
    /// The current state.
    pub state: State,
}

impl Grab {
    /// The public status.
    pub const fn status(&self) -> Status {
        match self.state {
            State::Pending => Status::Pending,
            State::Processing => Status::Processing,
            State::Done { .. } => Status::Done,
            State::Failed { .. } => Status::Failed,
        }
    }

    /// The time from its creation to its end without that in the browser, in milliseconds: mostly the wait for a free
    /// browser. `None` unless it is done.
    pub fn queued_ms(&self) -> Option<u32> {
        let State::Done { finished_at, execution_ms, .. } = &self.state else { return None };
        let total = finished_at.since(self.created_at).as_millis();
        Some(u32::try_from(total.saturating_sub(u128::from(*execution_ms))).unwrap_or(u32::MAX))
    }

    /// Those of `stages` that are shown with this state: stages are shown while their attempt is in progress.
    pub fn shown_stages(&self, stages: Stages) -> Stages {
        match self.state {
            State::Processing if stages.attempt() == self.attempts => stages,
            State::Pending | State::Processing | State::Done { .. } | State::Failed { .. } => Stages::default(),
        }
    }

    /// A number that increases with every visible change. It is derived, so no counter has to be stored.
    ///
    /// A grab alternates between pending and processing once per attempt, ends once and is deleted at most once.
    pub const fn revision(&self) -> u64 {
        let attempts = self.attempts as u64;
        match (&self.state, self.deleted_at) {
            (State::Pending, _) => 2 * attempts + 1,
            (State::Processing, _) => 2 * attempts,
            (State::Done { .. } | State::Failed { .. }, None) => 2 * attempts + 2,
            (State::Done { .. } | State::Failed { .. }, Some(_)) => 2 * attempts + 3,
        }
    }
}

#[cfg(test)]
mod tests;
