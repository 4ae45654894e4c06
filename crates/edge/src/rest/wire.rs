//! What answers look like in JSON: the contract's members in the contract's order, then our own.

use std::fmt;

use grabd_proto::v1;
use prost_types::value::Kind;
use prost_types::{Struct, Timestamp, Value};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{Object, ObjectBuilder, Type};

/// One capture of a web page. Further members may appear.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Grab<'a> {
    /// Id of the grab. Ids sort by creation time.
    #[schema(format = "uuid")]
    id: &'a str,
    /// Where the grab stands. Only `done` grabs have an `image_url`; `done` and `failed` are final.
    #[schema(schema_with = statuses)]
    status: &'static str,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Moment,
    /// The address that was asked for.
    #[schema(format = "uri")]
    target_url: &'a str,
    /// Address of the image once the grab is `done`: public and unguessable. For test keys it is a path relative to the
    /// API's origin. Null before that, after a failure, and after the image was deleted.
    image_url: Option<&'a str>,
    /// Width of the viewport in pixels.
    #[schema(minimum = 0)]
    width: i32,
    /// Height of the viewport in pixels. Full-page grabs report 3240; the true size is in `image_height`.
    #[schema(minimum = 0)]
    height: i32,
    /// Format of the image.
    #[schema(schema_with = formats)]
    format: Option<&'static str>,
    /// Size of the image in bytes.
    #[schema(minimum = 0)]
    bytes: Option<i64>,
    /// How long the render took, in milliseconds.
    #[schema(minimum = 0)]
    execution_ms: Option<i32>,
    /// Why a failed grab failed, for people to read.
    error_message: Option<&'a str>,
    /// Address of the page after redirects.
    final_url: Option<&'a str>,
    /// HTTP status of the page.
    http_status: Option<i32>,
    /// What the picture was taken on: the page had come to rest (`quiet`), or its time for that was over (`deadline`).
    #[schema(schema_with = settlings)]
    settled_by: Option<&'static str>,
    /// Requests of the page to addresses that are not public, which were refused.
    #[schema(minimum = 0)]
    blocked_requests: Option<i32>,
    /// True width of the image in pixels.
    #[schema(minimum = 0)]
    image_width: Option<i32>,
    /// True height of the image in pixels.
    #[schema(minimum = 0)]
    image_height: Option<i32>,
    /// Was the page longer than an image may be?
    truncated: Option<bool>,
}

/// A page of grabs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrabList<'a> {
    /// The grabs.
    pub(crate) data: Vec<Grab<'a>>,
    /// Are there more in the direction that was asked for?
    pub(crate) has_more: bool,
}

/// What is left to spend and what was spent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Usage<'a> {
    /// What is left.
    #[schema(inline)]
    credits: Credits,
    /// The plan that the team is on.
    #[schema(inline)]
    plan: Plan<'a>,
    /// Grabs of the last 30 days.
    #[schema(inline)]
    usage: Counts,
    /// Environment of the key that asked.
    #[schema(schema_with = environments)]
    environment: &'static str,
    /// Where to buy more credits.
    top_up: &'a str,
}

#[derive(Debug, Serialize, ToSchema)]
struct Credits {
    /// Remaining credits of the annual subscription.
    subscription: i64,
    /// Remaining prepaid credits.
    prepaid: i64,
    /// All remaining credits.
    total: i64,
    /// Credits set aside for live grabs under way; no longer part of the others.
    held: i64,
}

#[derive(Debug, Serialize, ToSchema)]
struct Plan<'a> {
    /// Name of the plan.
    name: &'a str,
    /// How the plan stands.
    status: &'a str,
    /// When the term ends.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Moment>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Counts {
    /// All grabs, live and test.
    grabs_last_30d: i64,
    /// Live grabs only.
    live_grabs_last_30d: i64,
}

/// A grab as the contract shows it; none when the core left out what the contract requires.
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
        // Told as the code of the envelope when the create answers with it.
        failure_reason: _,
        final_url,
        http_status,
        settled_by: _,
        blocked_requests,
        image_width,
        image_height,
        truncated,
        // Told as the entity tag.
        revision: _,
        // The caller's own key says so.
        live: _,
    } = grab;
    Some(Grab {
        id,
        status: status_word(grab.status())?,
        created_at: Moment::of(created_at.as_ref()?)?,
        target_url,
        image_url: image_url.as_deref(),
        width: *width,
        height: *height,
        format: format_word(grab.format()),
        bytes: *bytes,
        execution_ms: *execution_ms,
        error_message: error_message.as_deref(),
        final_url: final_url.as_deref(),
        http_status: *http_status,
        settled_by: settled_by_word(grab.settled_by()),
        blocked_requests: *blocked_requests,
        image_width: *image_width,
        image_height: *image_height,
        truncated: *truncated,
    })
}

/// Balance and usage as the contract shows them; none when the core left out what the contract requires.
pub(crate) fn usage(usage: &v1::GetUsageResponse) -> Option<Usage<'_>> {
    let v1::GetUsageResponse { credits, plan, grabs_last_30d, live_grabs_last_30d, live, top_up } = usage;
    let v1::Credits { subscription, prepaid, total, held } = *credits.as_ref()?;
    let v1::Plan { name, status, expires_at } = plan.as_ref()?;
    Some(Usage {
        credits: Credits { subscription, prepaid, total, held },
        plan: Plan { name, status, expires_at: expires_at.as_ref().and_then(Moment::of) },
        usage: Counts { grabs_last_30d: *grabs_last_30d, live_grabs_last_30d: *live_grabs_last_30d },
        environment: environment_word(*live),
        top_up,
    })
}

/// The status behind one of the contract's words.
pub(crate) fn parse_status(word: &str) -> Option<v1::GrabStatus> {
    STATUSES.into_iter().find(|status| status_word(*status) == Some(word))
}

/// The format behind one of the contract's words.
pub(crate) fn parse_format(word: &str) -> Option<v1::ImageFormat> {
    FORMATS.into_iter().find(|format| format_word(*format) == Some(word))
}

/// The contract's word for a status.
pub(crate) fn status_word(status: v1::GrabStatus) -> Option<&'static str> {
    match status {
        v1::GrabStatus::Unspecified => None,
        v1::GrabStatus::Pending => Some("pending"),
        v1::GrabStatus::Processing => Some("processing"),
        v1::GrabStatus::Done => Some("done"),
        v1::GrabStatus::Failed => Some("failed"),
    }
}

fn format_word(format: v1::ImageFormat) -> Option<&'static str> {
    match format {
        v1::ImageFormat::Unspecified => None,
        v1::ImageFormat::Png => Some("png"),
        v1::ImageFormat::Jpeg => Some("jpeg"),
        v1::ImageFormat::Webp => Some("webp"),
    }
}

fn settled_by_word(settled_by: v1::SettledBy) -> Option<&'static str> {
    match settled_by {
        v1::SettledBy::Unspecified => None,
        v1::SettledBy::Quiet => Some("quiet"),
        v1::SettledBy::Deadline => Some("deadline"),
    }
}

const STATUSES: [v1::GrabStatus; 4] =
    [v1::GrabStatus::Pending, v1::GrabStatus::Processing, v1::GrabStatus::Done, v1::GrabStatus::Failed];
const FORMATS: [v1::ImageFormat; 3] = [v1::ImageFormat::Png, v1::ImageFormat::Jpeg, v1::ImageFormat::Webp];

/// The words for a status, as the description has them.
pub(crate) fn statuses() -> Object {
    words(STATUSES.into_iter().filter_map(status_word), Type::String.into())
}

/// The words for a format that may be unknown.
fn formats() -> Object {
    let mut words =
        words(FORMATS.into_iter().filter_map(format_word), SchemaType::from_iter([Type::String, Type::Null]));
    words.enum_values.iter_mut().for_each(|values| values.push(serde_json::Value::Null));
    words
}

/// The words for a format that is asked for.
pub(crate) fn known_formats() -> Object {
    words(FORMATS.into_iter().filter_map(format_word), Type::String.into())
}

fn settlings() -> Object {
    let known = [v1::SettledBy::Quiet, v1::SettledBy::Deadline];
    let mut words =
        words(known.into_iter().filter_map(settled_by_word), SchemaType::from_iter([Type::String, Type::Null]));
    words.enum_values.iter_mut().for_each(|values| values.push(serde_json::Value::Null));
    words
}

fn environments() -> Object {
    words([true, false].into_iter().map(environment_word), Type::String.into())
}

fn words(words: impl Iterator<Item = &'static str>, schema_type: SchemaType) -> Object {
    ObjectBuilder::new().schema_type(schema_type).enum_values(Some(words)).build()
}

const fn environment_word(live: bool) -> &'static str {
    if live { "live" } else { "test" }
}

/// RFC 3339 in UTC with three fractional digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(OffsetDateTime);

impl Moment {
    /// None for what is no time.
    pub(crate) fn of(timestamp: &Timestamp) -> Option<Self> {
        let nanosecond = u32::try_from(timestamp.nanos).ok()?;
        let at = OffsetDateTime::from_unix_timestamp(timestamp.seconds).ok()?;
        at.replace_nanosecond(nanosecond).ok().map(Self)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.0.to_calendar_date();
        let (hour, minute, second, milli) = self.0.time().as_hms_milli();
        let month = u8::from(month);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The pricing packet: the contract's three members first, every other object sorted by name.
#[derive(Debug)]
pub(crate) struct Packet<'a>(pub(crate) &'a Struct);

const PACKET_ORDER: [&str; 3] = ["pricing", "comparison", "links"];

impl Serialize for Packet<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = &self.0.fields;
        let first = PACKET_ORDER.iter().filter_map(|name| fields.get_key_value(*name));
        let others = fields.iter().filter(|(name, _)| !PACKET_ORDER.contains(&name.as_str()));
        serializer.collect_map(first.chain(others).map(|(name, value)| (name, Json(value))))
    }
}

struct Json<'a>(&'a Value);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.kind {
            None | Some(Kind::NullValue(_)) => serializer.serialize_unit(),
            Some(Kind::BoolValue(value)) => serializer.serialize_bool(*value),
            Some(Kind::NumberValue(value)) => number(*value, serializer),
            Some(Kind::StringValue(value)) => serializer.serialize_str(value),
            Some(Kind::ListValue(list)) => serializer.collect_seq(list.values.iter().map(Json)),
            Some(Kind::StructValue(object)) => {
                let mut map = serializer.serialize_map(Some(object.fields.len()))?;
                for (name, value) in &object.fields {
                    map.serialize_entry(name, &Json(value))?;
                }
                map.end()
            }
        }
    }
}

/// `google.protobuf.Struct` knows only floating-point numbers; whole ones are written as the integers they were.
fn number<S: Serializer>(value: f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return serializer.serialize_i64(value as i64);
    }
    serializer.serialize_f64(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struct_of(fields: &[(&str, Kind)]) -> Struct {
        let fields = fields.iter().map(|(name, kind)| ((*name).to_owned(), Value { kind: Some(kind.clone()) }));
        Struct { fields: fields.collect() }
    }

    #[test]
    fn moments_have_three_digits() {
        for (seconds, nanos, expected) in [
            (1_795_206_774, 120_000_000, Some("2026-11-20T20:32:54.120Z")),
            (1_795_206_774, 0, Some("2026-11-20T20:32:54.000Z")),
            (0, 999_999_999, Some("1970-01-01T00:00:00.999Z")),
            (0, -1, None),
            (i64::MAX, 0, None),
        ] {
            let moment = Moment::of(&Timestamp { seconds, nanos });
            assert_eq!(moment.map(|moment| moment.to_string()).as_deref(), expected);
        }
    }

    #[test]
    fn a_grab_without_what_the_contract_requires_is_none() {
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
    fn words_are_one_to_one() {
        for word in ["pending", "processing", "done", "failed"] {
            assert_eq!(status_word(parse_status(word).unwrap()), Some(word));
        }
        for word in ["png", "jpeg", "webp"] {
            assert_eq!(format_word(parse_format(word).unwrap()), Some(word));
        }
        for word in ["", "Done", "queued", "gif", "PNG"] {
            assert_eq!((parse_status(word), parse_format(word)), (None, None), "{word}");
        }
    }

    #[test]
    fn packets_are_ordered_and_their_whole_numbers_are_integers() {
        let list = prost_types::ListValue {
            values: [2.0, 0.002, -3.0, 1e300].map(|number| Value { kind: Some(Kind::NumberValue(number)) }).to_vec(),
        };
        let inner = struct_of(&[("b", Kind::BoolValue(true)), ("a", Kind::NullValue(0)), ("c", Kind::ListValue(list))]);
        let packet = struct_of(&[
            ("links", Kind::StringValue("l".to_owned())),
            ("zone", Kind::NumberValue(25_000.0)),
            ("comparison", Kind::NumberValue(f64::NAN)),
            ("a", Kind::BoolValue(false)),
            ("pricing", Kind::StructValue(inner)),
        ]);
        assert_eq!(
            serde_json::to_string(&Packet(&packet)).unwrap(),
            r#"{"pricing":{"a":null,"b":true,"c":[2,0.002,-3,1e+300]},"comparison":null,"links":"l","a":false,"zone":25000}"#
        );
    }
}
