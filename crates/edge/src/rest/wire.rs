//! JSON representation of responses: first the members of the public contract in its order, then additional ones.

mod difference;
mod open_graph;
mod packet;
mod shown_url;
mod stage;
mod usage;

use std::collections::BTreeMap;
use std::fmt;

use grabd_proto::{reason, v1};
use prost_types::Timestamp;
use serde::Serialize;
use serde::ser::Serializer;
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{Object, ObjectBuilder, Type};

use self::difference::Difference;
use self::open_graph::OpenGraph;
pub(crate) use self::packet::PricingPacket;
use self::shown_url::shown_url;
use self::stage::StageReached;
pub(crate) use self::usage::{Usage, usage};
use super::error::status_and_code;

/// One capture of a web page. Further members may appear.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Grab<'a> {
    /// Id of the grab. Ids sort by creation time.
    #[schema(format = "uuid")]
    id: &'a str,
    /// State of the grab. Only `done` grabs have an `image_url`; `done` and `failed` are final.
    #[schema(schema_with = status_schema)]
    status: &'static str,
    /// Time of creation.
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    /// The requested URL.
    #[schema(format = "uri")]
    target_url: &'a str,
    /// Public, unguessable URL of the image of a `done` grab; for test keys a path relative to the API's origin. Null
    /// before the grab is done, after a failure, and after the image was deleted.
    image_url: Option<&'a str>,
    /// Width of the viewport in pixels.
    #[schema(minimum = 0)]
    width: i32,
    /// Height of the viewport in pixels. Full-page grabs report 3240; the true size is in `image_height`.
    #[schema(minimum = 0)]
    height: i32,
    /// Format of the image.
    #[schema(schema_with = nullable_format_schema)]
    format: Option<&'static str>,
    /// Size of the image in bytes.
    #[schema(minimum = 0)]
    bytes: Option<i64>,
    /// How long the render took, in milliseconds.
    #[schema(minimum = 0)]
    execution_ms: Option<i32>,
    /// Human-readable reason of a failure.
    error_message: Option<&'a str>,
    /// URL of the page after redirects.
    final_url: Option<&'a str>,
    /// HTTP status of the page.
    http_status: Option<i32>,
    /// Why the image was captured at that moment: the page had settled (`quiet`), or its time was up (`deadline`).
    #[schema(schema_with = settled_by_schema)]
    settled_by: Option<&'static str>,
    /// Number of requests of the page that were refused because their address is not public.
    #[schema(minimum = 0)]
    blocked_requests: Option<i32>,
    /// Actual width of the image in pixels.
    #[schema(minimum = 0)]
    image_width: Option<i32>,
    /// Actual height of the image in pixels.
    #[schema(minimum = 0)]
    image_height: Option<i32>,
    /// Whether the page was longer than the maximum height of an image.
    truncated: Option<bool>,
    /// What may be missing from the image, as machine-readable values, some with a count: `requests_in_flight:N`,
    /// `images_failed:N`, `images_missing:N`, `fonts_failed:N`, `spinner_visible`, `blank`, `wide_cut`, `endless`,
    /// `virtual_list`, `frame_unfinished`, `documents_denied:N`, `document_incomplete`, `work_pending`, `scroller_cut`,
    /// `glyphs_missing:N`, `selector_many:N`, `areas_blank:N`, `first_screen_differs`. Null before the grab has ended;
    /// later versions may add values.
    warnings: Option<&'a [String]>,
    /// The error code of a failure. The schema has its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = failure_code_schema)]
    error_code: Option<&'static str>,
    /// Whose fault a failure is. The schema has its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = failure_cause_schema)]
    error_cause: Option<&'static str>,
    /// Title of the page. This and the following texts come from the page: do not trust them.
    #[schema(max_length = 300)]
    title: Option<&'a str>,
    /// Description of the page.
    #[schema(max_length = 1000)]
    description: Option<&'a str>,
    /// Language tag of the page.
    #[schema(max_length = 64)]
    lang: Option<&'a str>,
    /// The http(s) URL that the page calls its own.
    #[schema(max_length = 2048)]
    canonical_url: Option<&'a str>,
    /// The http(s) URL of the page's icon.
    #[schema(max_length = 2048)]
    icon_url: Option<&'a str>,
    /// The Open Graph properties of the page, with which links to it are shown elsewhere. Null if it has none.
    #[schema(inline)]
    open_graph: Option<OpenGraph<'a>>,
    /// Width of the page in CSS pixels.
    #[schema(minimum = 0)]
    page_width: Option<i32>,
    /// Height of the page in CSS pixels.
    #[schema(minimum = 0)]
    page_height: Option<i32>,
    /// Number of redirects that were followed, by HTTP or by the page.
    #[schema(minimum = 0)]
    redirects: Option<i32>,
    /// How long the steps took. Null unless a page was captured.
    #[schema(inline)]
    timings: Option<Timings>,
    /// Whether an earlier grab answers the request, because of `max_age`. Only present if so, and only in responses to
    /// creates.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached: Option<bool>,
    /// The texts that were stored with the grab. Only present if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    metadata: Option<BTreeMap<&'a str, &'a str>>,
    /// SHA-256 of the image file, in lower-case hexadecimal digits. Null before the grab is done, and for grabs of earlier
    /// versions.
    #[schema(min_length = 64, max_length = 64, pattern = "^[0-9a-f]{64}$")]
    image_sha256: Option<&'a str>,
    /// The files beside the image that `also` and `compare_to` asked for, the slices from top to bottom that `slice_height`
    /// asked for, and the images that `viewports` asked for. Left out where there are none, and after the image was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, max_items = 79)]
    files: Option<Vec<GrabFile<'a>>>,
    /// The bot protection service whose challenge the page is: `akamai`, `aws`, `cloudflare`, `datadome`, `hcaptcha`,
    /// `imperva`, `perimeterx`, `recaptcha`, `vercel` or `unknown`. Null if it is none; later versions may add names.
    challenge: Option<&'a str>,
    /// The consent dialog that was found. Absent unless `block` has `cookie_banners`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, nullable = false)]
    consent: Option<Consent<'a>>,
    /// Numbers of requests that were not sent. Absent unless the request blocks something.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, nullable = false)]
    blocked: Option<BlockedRequests>,
    /// Whether the image has one colour. False for an element that has no content. Absent unless a page was captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    blank: Option<bool>,
    /// What changed since the image of an earlier grab. Absent unless the request has `compare_to` and the grab is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, nullable = false)]
    difference: Option<Difference<'a>>,
    /// Perceptual hash of the image: images that look alike have hashes that differ in few bits. Absent unless the request
    /// has `phash` and the grab is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 16, max_length = 16, pattern = "^[0-9a-f]{16}$")]
    phash: Option<&'a str>,
    /// The stages that the render has reached, in their order. Only present in events, and only while the grab is
    /// `processing`. Stages may be missing: they are not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, nullable = false, max_items = 4)]
    stages: Option<Vec<StageReached>>,
}

/// A file beside the image of a grab.
#[derive(Debug, Serialize, ToSchema)]
struct GrabFile<'a> {
    /// What it is.
    #[schema(schema_with = file_kind_schema)]
    kind: &'a str,
    /// Its public, unguessable URL; for test keys a path relative to the API's origin.
    #[schema(format = "uri-reference")]
    url: &'a str,
    /// Its media type.
    media_type: &'a str,
    /// Its size in bytes.
    #[schema(minimum = 0)]
    bytes: i64,
    /// The first row of a slice in the image. Absent unless it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    y: Option<i32>,
    /// The number of rows of a slice, or of the image in a further viewport. Absent unless it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    height: Option<i32>,
    /// The heading of the page that the first row of a slice belongs to. Absent if there is none, and in lists. Do not
    /// trust it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 200)]
    heading: Option<&'a str>,
    /// The width of the image in a further viewport, in pixels. Absent unless it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    width: Option<i32>,
    /// The further viewport. Absent unless it is the image in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, nullable = false)]
    viewport: Option<Viewport>,
}

/// The size of a window in CSS pixels.
#[derive(Debug, Serialize, ToSchema)]
struct Viewport {
    /// The width.
    #[schema(minimum = 0)]
    width: i64,
    /// The height.
    #[schema(minimum = 0)]
    height: i64,
}

/// A consent dialog, and what became of it.
#[derive(Debug, Serialize, ToSchema)]
struct Consent<'a> {
    /// The vendor of the dialog, such as `onetrust`, or `unknown`.
    #[schema(max_length = 64)]
    cmp: &'a str,
    /// `rejected`: all consent that can be refused was refused. `hidden`: the dialog is not visible, and nothing was
    /// chosen. `failed`: it is still visible.
    result: &'a str,
}

/// Numbers of requests that were not sent, by reason.
#[derive(Debug, Serialize, ToSchema)]
struct BlockedRequests {
    /// Their address is not public. Same as `blocked_requests`.
    #[schema(minimum = 0)]
    guard: i32,
    /// They are on the list of ads.
    #[schema(minimum = 0)]
    ads: i32,
    /// They are on the list of trackers.
    #[schema(minimum = 0)]
    trackers: i32,
    /// `block_types` or `block_urls` applies to them.
    #[schema(minimum = 0)]
    asked: i32,
}

/// How long the steps of a grab took, in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
struct Timings {
    /// From the creation to the end, without the time in the browser: mostly the wait for a free browser.
    #[schema(minimum = 0)]
    queued_ms: Option<i32>,
    /// From the start to the document, with its redirects.
    #[schema(minimum = 0)]
    navigate_ms: i32,
    /// From the document to its load event. Null if that did not come.
    #[schema(minimum = 0)]
    load_ms: Option<i32>,
    /// From then until the page had settled and was laid out for the image.
    #[schema(minimum = 0)]
    settle_ms: i32,
    /// Taking the image.
    #[schema(minimum = 0)]
    shot_ms: i32,
}

/// A page of grabs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrabList<'a> {
    /// The grabs.
    pub(crate) data: Vec<Grab<'a>>,
    /// Whether there are more in the requested direction.
    pub(crate) has_more: bool,
}

/// The kind of the files that are slices of the image.
pub(crate) const SLICE_KIND: &str = "slice";

/// Converts a grab. `None` if a required field is missing.
pub(crate) fn grab(grab: &v1::Grab) -> Option<Grab<'_>> {
    let v1::Grab {
        id,
        status: _,
        created_at,
        target_url,
        image_url,
        width,
        height,
        format: _,
        bytes,
        execution_ms,
        error_message,
        // Returned as `error_code`.
        failure_reason: _,
        final_url,
        http_status,
        settled_by: _,
        blocked_requests,
        image_width,
        image_height,
        truncated,
        warnings,
        title,
        description,
        lang,
        canonical_url,
        icon_url,
        open_graph,
        page_width,
        page_height,
        redirects,
        timings,
        files,
        image_sha256,
        // Returned as the entity tag.
        revision: _,
        live,
        error_cause: _,
        cached,
        metadata,
        challenge,
        consent,
        blocked,
        blank,
        difference,
        phash,
        stages,
    } = grab;
    let failure = failure(grab);
    Some(Grab {
        id,
        status: status_name(grab.status())?,
        created_at: Rfc3339::from_proto(created_at.as_ref()?)?,
        target_url,
        image_url: image_url.as_deref().map(|url| shown_url(url, *live)),
        width: *width,
        height: *height,
        format: format_name(grab.format()),
        bytes: *bytes,
        execution_ms: *execution_ms,
        error_message: error_message.as_deref(),
        final_url: final_url.as_deref(),
        http_status: *http_status,
        settled_by: settled_by_name(grab.settled_by()),
        blocked_requests: *blocked_requests,
        image_width: *image_width,
        image_height: *image_height,
        truncated: *truncated,
        warnings: truncated.is_some().then_some(warnings.as_slice()),
        error_code: failure.map(|failure| status_and_code(failure.0).1),
        error_cause: failure.and_then(|failure| reason::cause_name(failure.1)),
        title: title.as_deref(),
        description: description.as_deref(),
        lang: lang.as_deref(),
        canonical_url: canonical_url.as_deref(),
        icon_url: icon_url.as_deref(),
        open_graph: open_graph.as_ref().map(OpenGraph::of),
        page_width: *page_width,
        page_height: *page_height,
        redirects: *redirects,
        timings: timings.as_ref().map(|timings| {
            let v1::Timings { queued_ms, navigate_ms, load_ms, settle_ms, shot_ms } = *timings;
            Timings { queued_ms, navigate_ms, load_ms, settle_ms, shot_ms }
        }),
        image_sha256: image_sha256.as_deref(),
        files: (!files.is_empty()).then(|| files.iter().map(|file| grab_file(file, *live)).collect()),
        cached: *cached,
        metadata: (!metadata.is_empty())
            .then(|| metadata.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()),
        challenge: challenge.as_deref(),
        consent: consent.as_ref().map(|v1::Consent { cmp, result }| Consent { cmp, result }),
        blocked: blocked.map(|v1::BlockedRequests { guard, ads, trackers, asked }| BlockedRequests {
            guard,
            ads,
            trackers,
            asked,
        }),
        blank: *blank,
        difference: difference.as_ref().map(|of| Difference::of(of, *live)),
        phash: phash.as_deref(),
        stages: (!stages.is_empty()).then(|| stages.iter().filter_map(StageReached::of).collect()),
    })
}

/// Code and cause of a failed grab.
fn failure(grab: &v1::Grab) -> Option<(v1::ErrorCode, v1::ErrorCause)> {
    let (code, cause) = (grab.failure_reason(), grab.error_cause());
    let cause = if cause == v1::ErrorCause::Unspecified { reason::usual_cause(code) } else { cause };
    (grab.status() == v1::GrabStatus::Failed).then_some((code, cause))
}

fn grab_file(file: &v1::GrabFile, is_live: bool) -> GrabFile<'_> {
    let v1::GrabFile { kind, url, media_type, bytes, y, height, heading, width, viewport } = file;
    GrabFile {
        kind,
        url: shown_url(url, is_live),
        media_type,
        bytes: *bytes,
        y: *y,
        height: *height,
        heading: heading.as_deref(),
        width: *width,
        viewport: viewport.and_then(|of| Some(Viewport { width: of.width?, height: of.height? })),
    }
}

/// OpenAPI schema of a kind of file: a word that the option takes, a slice, the image in a further viewport, or that of a
/// difference.
fn file_kind_schema() -> Object {
    let words = match grabd_options::find("also").map(|option| option.kind) {
        Some(grabd_options::Kind::Words(words)) => words,
        Some(_) | None => &[],
    };
    string_enum(words.iter().copied().chain([SLICE_KIND, "viewport", "difference"]), Type::String.into())
}

/// Parses the name of a status.
pub(crate) fn parse_status(word: &str) -> Option<v1::GrabStatus> {
    STATUSES.into_iter().find(|status| status_name(*status) == Some(word))
}

/// The name of a status in JSON.
pub(crate) fn status_name(status: v1::GrabStatus) -> Option<&'static str> {
    match status {
        v1::GrabStatus::Unspecified => None,
        v1::GrabStatus::Pending => Some("pending"),
        v1::GrabStatus::Processing => Some("processing"),
        v1::GrabStatus::Done => Some("done"),
        v1::GrabStatus::Failed => Some("failed"),
    }
}

fn format_name(format: v1::ImageFormat) -> Option<&'static str> {
    match format {
        v1::ImageFormat::Unspecified => None,
        v1::ImageFormat::Png => Some("png"),
        v1::ImageFormat::Jpeg => Some("jpeg"),
        v1::ImageFormat::Webp => Some("webp"),
    }
}

fn settled_by_name(settled_by: v1::SettledBy) -> Option<&'static str> {
    match settled_by {
        v1::SettledBy::Unspecified => None,
        v1::SettledBy::Quiet => Some("quiet"),
        v1::SettledBy::Deadline => Some("deadline"),
    }
}

const STATUSES: [v1::GrabStatus; 4] =
    [v1::GrabStatus::Pending, v1::GrabStatus::Processing, v1::GrabStatus::Done, v1::GrabStatus::Failed];
const FORMATS: [v1::ImageFormat; 3] = [v1::ImageFormat::Png, v1::ImageFormat::Jpeg, v1::ImageFormat::Webp];

/// OpenAPI schema of a status.
pub(crate) fn status_schema() -> Object {
    string_enum(STATUSES.into_iter().filter_map(status_name), Type::String.into())
}

/// OpenAPI schema of a format or null.
fn nullable_format_schema() -> Object {
    let mut words =
        string_enum(FORMATS.into_iter().filter_map(format_name), SchemaType::from_iter([Type::String, Type::Null]));
    words.enum_values.iter_mut().for_each(|values| values.push(serde_json::Value::Null));
    words
}

fn settled_by_schema() -> Object {
    let known = [v1::SettledBy::Quiet, v1::SettledBy::Deadline];
    let mut words =
        string_enum(known.into_iter().filter_map(settled_by_name), SchemaType::from_iter([Type::String, Type::Null]));
    words.enum_values.iter_mut().for_each(|values| values.push(serde_json::Value::Null));
    words
}

/// OpenAPI schema of the code of a failure.
fn failure_code_schema() -> Object {
    let known = [
        v1::ErrorCode::RenderBlocked,
        v1::ErrorCode::RenderFailed,
        v1::ErrorCode::SsrfDetected,
        v1::ErrorCode::InternalError,
    ];
    let codes = known.into_iter().map(|code| status_and_code(code).1);
    let about =
        "The error code of the failure, which a synchronous create returns. Only present if the grab has failed.";
    let mut schema = string_enum(codes, Type::String.into());
    schema.description = Some(about.to_owned());
    schema
}

/// OpenAPI schema of the cause of a failure.
fn failure_cause_schema() -> Object {
    let about = "Whose fault the failure is: that of the request (`request`), of the target site (`target`), or of the \
                 service (`service`). Only present if the grab has failed.";
    let mut schema = cause_schema();
    schema.description = Some(about.to_owned());
    schema
}

/// OpenAPI schema of a cause.
pub(super) fn cause_schema() -> Object {
    let known = [v1::ErrorCause::Request, v1::ErrorCause::Target, v1::ErrorCause::Service];
    string_enum(known.into_iter().filter_map(reason::cause_name), Type::String.into())
}

fn environment_schema() -> Object {
    string_enum([true, false].into_iter().map(environment_name), Type::String.into())
}

fn string_enum(words: impl Iterator<Item = &'static str>, schema_type: SchemaType) -> Object {
    ObjectBuilder::new().schema_type(schema_type).enum_values(Some(words)).build()
}

const fn environment_name(live: bool) -> &'static str {
    if live { "live" } else { "test" }
}

/// A time that is formatted as RFC 3339 in UTC with three fractional digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rfc3339(OffsetDateTime);

impl Rfc3339 {
    /// `None` if the timestamp is out of range.
    pub(crate) fn from_proto(timestamp: &Timestamp) -> Option<Self> {
        let nanosecond = u32::try_from(timestamp.nanos).ok()?;
        let at = OffsetDateTime::from_unix_timestamp(timestamp.seconds).ok()?;
        at.replace_nanosecond(nanosecond).ok().map(Self)
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.0.to_calendar_date();
        let (hour, minute, second, milli) = self.0.time().as_hms_milli();
        let month = u8::from(month);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_with_milliseconds() {
        for (seconds, nanos, expected) in [
            (1_795_206_774, 120_000_000, Some("2026-11-20T20:32:54.120Z")),
            (1_795_206_774, 0, Some("2026-11-20T20:32:54.000Z")),
            (0, 999_999_999, Some("1970-01-01T00:00:00.999Z")),
            (0, -1, None),
            (i64::MAX, 0, None),
        ] {
            let moment = Rfc3339::from_proto(&Timestamp { seconds, nanos });
            assert_eq!(moment.map(|moment| moment.to_string()).as_deref(), expected);
        }
    }

    #[test]
    fn conversion_returns_none_when_a_required_field_is_missing() {
        let whole = v1::Grab {
            status: v1::GrabStatus::Done.into(),
            created_at: Some(Timestamp::default()),
            ..v1::Grab::default()
        };
        assert!(grab(&whole).is_some());
        assert!(grab(&v1::Grab { created_at: None, ..whole.clone() }).is_none());
        assert!(grab(&v1::Grab { status: 0, ..whole }).is_none());
        assert!(usage(&v1::GetUsageResponse::default()).is_none());
    }

    #[test]
    fn status_names_round_trip() {
        for word in ["pending", "processing", "done", "failed"] {
            assert_eq!(status_name(parse_status(word).unwrap()), Some(word));
        }
        for word in ["", "Done", "queued", "gif", "PNG"] {
            assert_eq!(parse_status(word), None, "{word}");
        }
    }
}
