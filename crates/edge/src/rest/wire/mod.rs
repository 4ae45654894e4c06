//! The JSON of responses, filled from messages of gRPC: see `grabd_api`.

mod difference;
mod packet;
mod shown_url;
mod stage;
mod usage;

use std::borrow::Cow;
use std::fmt;

use grabd_api::{Attachment, BlockedRequests, Consent, Grab, OpenGraph, Timings, Viewport};
use grabd_proto::{reason, v1};
use prost_types::Timestamp;
use serde::Serialize;
use serde::ser::Serializer;
use time::OffsetDateTime;

use self::difference::difference;
pub(crate) use self::packet::PricingPacket;
pub(super) use self::shown_url::shown_url;
use self::stage::stage_reached;
pub(crate) use self::usage::usage;
use super::error::status_and_code;

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
        open_graph: properties,
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
        difference: changed,
        phash,
        stages,
        words,
    } = grab;
    let failure = failure(grab);
    Some(Grab {
        id: id.into(),
        status: status_name(grab.status())?.into(),
        created_at: time(created_at.as_ref()?)?,
        target_url: target_url.into(),
        image_url: image_url.as_deref().map(|url| shown_url(url, *live).into()),
        width: *width,
        height: *height,
        format: format_name(grab.format()).map(Cow::from),
        bytes: *bytes,
        execution_ms: *execution_ms,
        error_message: borrowed(error_message),
        final_url: borrowed(final_url),
        http_status: *http_status,
        settled_by: settled_by_name(grab.settled_by()).map(Cow::from),
        blocked_requests: *blocked_requests,
        image_width: *image_width,
        image_height: *image_height,
        truncated: *truncated,
        // Before the grab has ended, there are only those about unknown members.
        warnings: (truncated.is_some() || !warnings.is_empty()).then(|| warnings.iter().map(Cow::from).collect()),
        error_code: failure.map(|failure| status_and_code(failure.0).1.into()),
        error_cause: failure.and_then(|failure| reason::cause_name(failure.1)).map(Cow::from),
        title: borrowed(title),
        description: borrowed(description),
        lang: borrowed(lang),
        canonical_url: borrowed(canonical_url),
        icon_url: borrowed(icon_url),
        open_graph: properties.as_ref().map(open_graph),
        page_width: *page_width,
        page_height: *page_height,
        redirects: *redirects,
        timings: timings.as_ref().map(|timings| {
            let v1::Timings { queued_ms, navigate_ms, load_ms, settle_ms, shot_ms } = *timings;
            Timings { queued_ms, navigate_ms, load_ms, settle_ms, shot_ms }
        }),
        image_sha256: borrowed(image_sha256),
        files: (!files.is_empty()).then(|| files.iter().map(|file| attachment(file, *live)).collect()),
        cached: *cached,
        metadata: (!metadata.is_empty())
            .then(|| metadata.iter().map(|(name, text)| (name.into(), text.into())).collect()),
        challenge: borrowed(challenge),
        consent: consent.as_ref().map(|v1::Consent { cmp, result }| Consent { cmp: cmp.into(), result: result.into() }),
        blocked: blocked.map(|v1::BlockedRequests { guard, ads, trackers, asked }| BlockedRequests {
            guard,
            ads,
            trackers,
            asked,
        }),
        blank: *blank,
        difference: changed.as_ref().map(|changed| difference(changed, *live)),
        phash: borrowed(phash),
        stages: (!stages.is_empty()).then(|| stages.iter().filter_map(stage_reached).collect()),
        words: *words,
    })
}

/// Code and cause of a failed grab.
fn failure(grab: &v1::Grab) -> Option<(v1::ErrorCode, v1::ErrorCause)> {
    let (code, cause) = (grab.failure_reason(), grab.error_cause());
    let cause = if cause == v1::ErrorCause::Unspecified { reason::usual_cause(code) } else { cause };
    (grab.status() == v1::GrabStatus::Failed).then_some((code, cause))
}

fn attachment(file: &v1::GrabFile, is_live: bool) -> Attachment<'_> {
    let v1::GrabFile { kind, url, media_type, bytes, y, height, heading, width, viewport, name } = file;
    Attachment {
        kind: kind.into(),
        url: shown_url(url, is_live).into(),
        media_type: media_type.into(),
        bytes: *bytes,
        y: *y,
        height: *height,
        heading: borrowed(heading),
        width: *width,
        viewport: viewport.and_then(|of| Some(Viewport { width: of.width?, height: of.height? })),
        name: borrowed(name),
    }
}

fn open_graph(properties: &v1::OpenGraph) -> OpenGraph<'_> {
    let v1::OpenGraph { title, description, image, site_name, r#type } = properties;
    OpenGraph {
        title: borrowed(title),
        description: borrowed(description),
        image: borrowed(image),
        site_name: borrowed(site_name),
        r#type: borrowed(r#type),
    }
}

/// A text that may be missing, without a copy of it.
pub(super) fn borrowed(text: &Option<String>) -> Option<Cow<'_, str>> {
    text.as_deref().map(Cow::from)
}

/// The text of a time. `None` if it is out of range.
pub(super) fn time(at: &Timestamp) -> Option<Cow<'static, str>> {
    Some(Rfc3339::from_proto(at)?.to_string().into())
}

/// Parses the name of a status.
pub(crate) fn parse_status(word: &str) -> Option<v1::GrabStatus> {
    let statuses = [v1::GrabStatus::Pending, v1::GrabStatus::Processing, v1::GrabStatus::Done, v1::GrabStatus::Failed];
    statuses.into_iter().find(|status| status_name(*status) == Some(word))
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

    /// A grab with all members.
    fn whole() -> v1::Grab {
        let text = |text: &str| Some(text.to_owned());
        let at = Timestamp { seconds: 1_795_206_774, nanos: 120_000_000 };
        let file = v1::GrabFile {
            kind: "text".to_owned(),
            url: "https://g.example/f/a/page.txt".to_owned(),
            media_type: "text/plain".to_owned(),
            bytes: 70,
            ..v1::GrabFile::default()
        };
        let slice = v1::GrabFile {
            kind: "slice".to_owned(),
            y: Some(0),
            height: Some(256),
            heading: text("Prices"),
            ..file.clone()
        };
        let size = v1::Viewport { width: Some(390), height: Some(844) };
        let viewport = v1::GrabFile {
            kind: "viewport".to_owned(),
            width: Some(780),
            height: Some(1688),
            viewport: Some(size),
            ..file.clone()
        };
        v1::Grab {
            id: "01993e1c-7b1a-7000-8000-0123456789ab".to_owned(),
            status: v1::GrabStatus::Failed.into(),
            created_at: Some(at),
            target_url: "https://example.com/".to_owned(),
            image_url: text("https://g.example/i/a.png"),
            width: 1280,
            height: 720,
            format: v1::ImageFormat::Png.into(),
            bytes: Some(12_345),
            execution_ms: Some(321),
            error_message: text("It said no."),
            failure_reason: v1::ErrorCode::RenderBlocked.into(),
            final_url: text("https://example.com/end"),
            http_status: Some(403),
            settled_by: v1::SettledBy::Quiet.into(),
            blocked_requests: Some(1),
            image_width: Some(1280),
            image_height: Some(4000),
            truncated: Some(true),
            warnings: vec!["images_failed:2".to_owned()],
            title: text("A title"),
            description: text("What it is about"),
            lang: text("en"),
            canonical_url: text("https://example.com/canonical"),
            icon_url: text("https://example.com/icon.png"),
            open_graph: Some(v1::OpenGraph {
                title: text("Shared"),
                r#type: text("article"),
                ..v1::OpenGraph::default()
            }),
            page_width: Some(1280),
            page_height: Some(4000),
            redirects: Some(1),
            timings: Some(v1::Timings {
                queued_ms: Some(5),
                navigate_ms: 10,
                load_ms: Some(20),
                settle_ms: 30,
                shot_ms: 40,
            }),
            files: vec![file, slice, viewport],
            image_sha256: text(&"ab".repeat(32)),
            revision: 4,
            live: true,
            error_cause: v1::ErrorCause::Target.into(),
            cached: Some(true),
            metadata: [("order".to_owned(), "8421".to_owned())].into_iter().collect(),
            challenge: text("cloudflare"),
            consent: Some(v1::Consent { cmp: "onetrust".to_owned(), result: "rejected".to_owned() }),
            blocked: Some(v1::BlockedRequests { guard: 1, ads: 2, trackers: 3, asked: 4 }),
            blank: Some(false),
            difference: Some(v1::Difference {
                compared_to: "01993e1c-7b1a-7000-8000-0123456789aa".to_owned(),
                ratio: 0.021,
                regions: vec![v1::Region { x: 1, y: 2, width: 3, height: 4 }],
                image_url: text("https://g.example/f/b/difference.png"),
            }),
            phash: text("00ff00ff00ff00ff"),
            stages: vec![v1::StageReached { stage: v1::RenderStage::Loaded.into(), ms: 7 }],
            words: Some(640),
        }
    }

    /// Clients may compare bytes, so no member changes its place.
    #[test]
    fn members_of_grabs_keep_their_order() {
        let text = serde_json::to_string(&grab(&whole()).unwrap()).unwrap();
        assert_eq!(text, include_str!("../golden/grab.json").trim_end());
    }

    #[test]
    fn words_are_those_of_the_schemas() {
        use grabd_api::words;

        let statuses = words::STATUSES.map(|word| parse_status(word).and_then(status_name));
        assert_eq!(statuses, words::STATUSES.map(Some));
        let formats = [v1::ImageFormat::Png, v1::ImageFormat::Jpeg, v1::ImageFormat::Webp];
        assert_eq!(formats.map(format_name), words::FORMATS.map(Some));
        let settled = [v1::SettledBy::Quiet, v1::SettledBy::Deadline];
        assert_eq!(settled.map(settled_by_name), words::SETTLED_BY.map(Some));
        let causes = [v1::ErrorCause::Request, v1::ErrorCause::Target, v1::ErrorCause::Service];
        assert_eq!(causes.map(reason::cause_name), words::CAUSES.map(Some));
        let failures = [
            v1::ErrorCode::RenderBlocked,
            v1::ErrorCode::RenderFailed,
            v1::ErrorCode::SsrfDetected,
            v1::ErrorCode::InternalError,
        ];
        assert_eq!(failures.map(|code| status_and_code(code).1), words::FAILURE_CODES);
        assert_eq!([true, false].map(environment_name), words::ENVIRONMENTS);
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
