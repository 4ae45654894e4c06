//! Request body of a create.

use axum::body::Body;
use grabd_options::{HIDDEN, unknown};
use grabd_proto::v1::{CaptureOptions, CreateSiteRequest, Unparsed};
use http::HeaderMap;
use serde_json::value::RawValue;

use super::super::body;
use super::super::call::unparsed;
use super::super::fields::Fields;
use super::super::{json, options};

/// The members of a body.
const MEMBERS: [&str; 10] = [
    "url",
    "sitemap",
    "capture",
    "max_pages",
    "max_depth",
    "include",
    "exclude",
    "robots",
    "requests_per_minute",
    "name",
];

/// Reads the body. Malformed input is forwarded as `unparsed` instead of being rejected here, so that an invalid credential and an
/// exceeded limit are reported first.
pub(super) async fn read(headers: &HeaderMap, body: Body) -> CreateSiteRequest {
    match body::read(headers, body, body::MAX_BODY_BYTES).await {
        Ok(bytes) => parse(&bytes),
        Err(error) => unparsed_body(&error.seen),
    }
}

fn unparsed_body(seen: &str) -> CreateSiteRequest {
    CreateSiteRequest { unparsed: vec![unparsed("body", seen)], ..CreateSiteRequest::default() }
}

/// Parses a body. A member that is not known is refused, since the job would spend credits without what the caller has asked for.
fn parse(body: &[u8]) -> CreateSiteRequest {
    let mut fields = match Fields::parse(body) {
        Ok(fields) => fields,
        Err(seen) => return unparsed_body(&seen),
    };
    let unknown = fields.unknown_member(&MEMBERS);
    let unknown = unknown
        .map(|name| unparsed("body", &format!("the unknown member {}", unknown::described_among(name, &MEMBERS))));
    let capture = fields.read("capture", capture).unwrap_or_default();
    let mut request = CreateSiteRequest {
        url: fields.read("url", json::string),
        sitemap: fields.read("sitemap", json::string),
        capture: capture.options,
        max_pages: fields.read("max_pages", small_integer),
        max_depth: fields.read("max_depth", small_integer),
        include: fields.read("include", json::strings).unwrap_or_default(),
        exclude: fields.read("exclude", json::strings).unwrap_or_default(),
        robots: fields.read("robots", json::boolean),
        requests_per_minute: fields.read("requests_per_minute", small_integer),
        name: fields.read("name", json::string),
        capture_unparsed: capture.unparsed,
        unparsed: Vec::new(),
        capture_unknown: capture.unknown,
    };
    request.unparsed = fields.unparsed;
    request.unparsed.extend(unknown);
    // It may have secret options.
    let captures = request.unparsed.iter_mut().filter(|of| of.field == "capture");
    captures.for_each(|of| HIDDEN.clone_into(&mut of.seen));
    request
}

/// How pages are captured.
#[derive(Default)]
struct Capture {
    /// The options. None if there is no valid object with them.
    options: Option<CaptureOptions>,
    /// Options of the wrong type.
    unparsed: Vec<Unparsed>,
    /// Names of members that are no options. The captures have warnings about them.
    unknown: Vec<String>,
}

fn capture(member: &RawValue) -> Option<Capture> {
    let mut fields = Fields::parse(member.get().as_bytes()).ok()?;
    let options = options::read(&mut fields);
    let unknown = fields.no_options();
    Some(Capture { options: Some(options), unparsed: fields.unparsed, unknown })
}

fn small_integer(member: &RawValue) -> Option<i32> {
    i32::try_from(json::integer(member)?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;

    #[test]
    fn members_are_those_of_the_schema() {
        let schema = schema::create_site();
        let mut names: Vec<&str> = schema.properties.keys().map(String::as_str).collect();
        names.sort_unstable();
        let mut members = MEMBERS.to_vec();
        members.sort_unstable();
        assert_eq!(names, members);
    }

    #[test]
    fn body_is_read_member_by_member() {
        let body = br#"{"url": "https://example.com", "capture": {"full_page": true, "colour": 5}, "max_pages": 7,
            "include": ["/a/*"], "robots": true, "name": "A"}"#;
        let request = parse(body);
        assert_eq!(
            (request.url.as_deref(), request.max_pages, request.robots),
            (Some("https://example.com"), Some(7), Some(true))
        );
        assert_eq!((request.include, request.name.as_deref()), (vec!["/a/*".to_owned()], Some("A")));
        assert_eq!(request.capture.unwrap().full_page, Some(true));
        assert_eq!(request.capture_unknown, ["colour"]);
        assert_eq!(request.unparsed, []);
    }

    #[test]
    fn members_of_the_wrong_type_are_named() {
        let of = |body: &str| {
            let unparsed = parse(body.as_bytes()).unparsed;
            unparsed.into_iter().map(|of| format!("{}={}", of.field, of.seen)).collect::<Vec<_>>()
        };
        assert_eq!(of(r#"{"max_pages": "5"}"#), [r#"max_pages="5""#]);
        assert_eq!(of(r#"{"url": null}"#), ["url=null"]);
        assert_eq!(of(r#"{"include": "/a"}"#), [r#"include="/a""#]);
        assert_eq!(of(r#"{"capture": ["hidden"]}"#), [format!("capture={HIDDEN}")]);
        assert_eq!(of("[]"), ["body=[]"]);
        assert_eq!(of(r#"{"maxpages": 5}"#), ["body=the unknown member maxpages (did you mean max_pages?)"]);
    }
}
