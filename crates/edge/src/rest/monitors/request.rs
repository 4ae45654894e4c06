//! Request bodies of create, of a create for several pages, of update and accept.

use axum::body::{Body, HttpBody};
use grabd_options::{HIDDEN, Rectangle, unknown};
use grabd_proto::v1::{
    AcceptBaselineRequest, BatchCreateMonitorsRequest, CaptureOptions, MonitorArea, MonitorCompare,
    MonitorImageCompare, MonitorNotify, MonitorQuiet, MonitorSettings, MonitorTextCompare, Unparsed,
};
use http::HeaderMap;
use serde_json::value::RawValue;

use super::super::body;
use super::super::call::unparsed;
use super::super::fields::Fields;
use super::super::{json, options};

/// The members that callers choose.
const CHOSEN: [&str; 11] =
    ["name", "capture", "every", "cron", "time_zone", "compare", "alert_after", "notify", "keep", "quiet", "paused"];

/// The member of a create for several pages that a monitor does not have.
const URLS: &str = "urls";

/// The other members of a monitor. They are ignored, so that what a read returns can be sent back.
const READ_ONLY: [&str; 9] =
    ["id", "state", "created_at", "updated_at", "next_run_at", "baseline_grab_id", "last_run", "live", "has_feed"];

/// The only member of an accept. Without it, the latest capture is accepted, so that no other name of it may be ignored.
const GRAB_ID: &str = "grab_id";

/// Reads the body of a create or an update. Malformed input is forwarded as `unparsed` instead of being rejected here, so that
/// an invalid credential and an exceeded limit are reported first.
pub(super) async fn read(headers: &HeaderMap, body: Body) -> MonitorSettings {
    match body::read(headers, body, body::MAX_BODY_BYTES).await {
        Ok(bytes) => parse(&bytes),
        Err(error) => unparsed_body(&error.seen),
    }
}

/// Reads the body of a create for several pages.
pub(super) async fn read_batch(headers: &HeaderMap, body: Body) -> BatchCreateMonitorsRequest {
    match body::read(headers, body, body::MAX_BODY_BYTES).await {
        Ok(bytes) => parse_batch(&bytes),
        Err(error) => unparsed_batch(&error.seen),
    }
}

/// Reads the body of an accept, which may be left out.
pub(super) async fn read_accept(id: String, headers: &HeaderMap, body: Body) -> AcceptBaselineRequest {
    let mut request = AcceptBaselineRequest { id, ..AcceptBaselineRequest::default() };
    if body.is_end_stream() {
        return request;
    }
    match body::read(headers, body, body::MAX_BODY_BYTES).await {
        Ok(bytes) => match Fields::parse(&bytes) {
            Ok(mut fields) => {
                let unknown = fields.unknown_member(&[GRAB_ID]).map(|name| unknown_member(name, &[GRAB_ID]));
                request.grab_id = fields.read(GRAB_ID, json::nullable_string).flatten();
                request.unparsed = fields.unparsed;
                request.unparsed.extend(unknown);
            }
            Err(seen) => request.unparsed.push(unparsed("body", &seen)),
        },
        Err(error) => request.unparsed.push(unparsed("body", &error.seen)),
    }
    request
}

fn unparsed_body(seen: &str) -> MonitorSettings {
    MonitorSettings { unparsed: vec![unparsed("body", seen)], ..MonitorSettings::default() }
}

/// A member of a body that is none of the known ones.
fn unknown_member(name: &str, known: &[&str]) -> Unparsed {
    unparsed("body", &format!("the unknown member {}", unknown::described_among(name, known)))
}

fn unparsed_batch(seen: &str) -> BatchCreateMonitorsRequest {
    BatchCreateMonitorsRequest { urls: Vec::new(), monitor: Some(unparsed_body(seen)) }
}

/// Parses a body. A member that is not known is refused, since the monitor would run without what the caller has asked for.
pub(crate) fn parse(body: &[u8]) -> MonitorSettings {
    match Fields::parse(body) {
        Ok(fields) => settings(fields, &CHOSEN),
        Err(seen) => unparsed_body(&seen),
    }
}

/// Parses the body of a create for several pages.
fn parse_batch(body: &[u8]) -> BatchCreateMonitorsRequest {
    match Fields::parse(body) {
        Ok(mut fields) => {
            let urls = fields.read(URLS, json::strings).unwrap_or_default();
            let monitor = settings(fields, &[&CHOSEN[..], &[URLS]].concat());
            BatchCreateMonitorsRequest { urls, monitor: Some(monitor) }
        }
        Err(seen) => unparsed_batch(&seen),
    }
}

/// Reads the members of a monitor. `chosen` are all that a caller may send, besides those of a monitor that are ignored.
fn settings(mut fields: Fields<'_>, chosen: &[&str]) -> MonitorSettings {
    let unknown = fields.unknown_member(&[chosen, &READ_ONLY].concat());
    let unknown = unknown.map(|name| unknown_member(name, chosen));
    let capture = fields.read("capture", capture).unwrap_or_default();
    let (compare, compare_unparsed) = fields.read("compare", compare).unzip();
    let (quiet, quiet_unparsed) = fields.read("quiet", quiet).unzip();
    let mut settings = MonitorSettings {
        name: fields.read("name", json::string),
        capture: capture.options,
        every: fields.read("every", json::nullable_string).flatten(),
        cron: fields.read("cron", json::nullable_string).flatten(),
        time_zone: fields.read("time_zone", json::nullable_string).flatten(),
        compare,
        alert_after: fields.read("alert_after", small_integer),
        notify: fields.read("notify", notify),
        keep: fields.read("keep", small_integer),
        quiet,
        paused: fields.read("paused", json::boolean),
        capture_unparsed: capture.unparsed,
        unparsed: Vec::new(),
        capture_unknown: capture.unknown,
    };
    settings.unparsed = fields.unparsed;
    settings.unparsed.extend(compare_unparsed.unwrap_or_default());
    settings.unparsed.extend(quiet_unparsed.unwrap_or_default());
    settings.unparsed.extend(unknown);
    // It may have secret options.
    let captures = settings.unparsed.iter_mut().filter(|of| of.field == "capture");
    captures.for_each(|of| HIDDEN.clone_into(&mut of.seen));
    settings
}

/// What is captured.
#[derive(Default)]
struct Capture {
    /// The options. None if there is no valid object with them.
    options: Option<CaptureOptions>,
    /// Options of the wrong type.
    unparsed: Vec<Unparsed>,
    /// Names of members that are no options. The captures of the runs have warnings about them.
    unknown: Vec<String>,
}

fn capture(member: &RawValue) -> Option<Capture> {
    let mut fields = Fields::parse(member.get().as_bytes()).ok()?;
    let options = options::read(&mut fields);
    let unknown = fields.no_options();
    Some(Capture { options: Some(options), unparsed: fields.unparsed, unknown })
}

/// What is compared, and members of the wrong type. A member that is not known is refused, since a comparison that is not made
/// would be missed.
fn compare(member: &RawValue) -> Option<(MonitorCompare, Vec<Unparsed>)> {
    let mut fields = Fields::parse(member.get().as_bytes()).ok()?;
    if fields.unknown_member(&["image", "status", "text", "elements", "baseline"]).is_some() {
        return None;
    }
    let (image, image_unparsed) = fields.read("image", image).unzip();
    let (text, text_unparsed) = fields.read("text", text).unzip();
    let compare = MonitorCompare {
        image: image.flatten(),
        status: fields.read("status", json::boolean),
        baseline: fields.read("baseline", json::string),
        text: text.flatten(),
        elements: fields.read("elements", json::boolean),
    };
    let members = image_unparsed.unwrap_or_default().into_iter().chain(text_unparsed.unwrap_or_default());
    let all = fields.unparsed.into_iter().chain(members);
    let all = all.map(|of| Unparsed { field: format!("compare.{}", of.field), seen: of.seen });
    Some((compare, all.collect()))
}

/// How images are compared, or `null`, and members of the wrong type.
fn image(member: &RawValue) -> Option<(Option<MonitorImageCompare>, Vec<Unparsed>)> {
    if member.get() == "null" {
        return Some((None, Vec::new()));
    }
    let mut fields = Fields::parse(member.get().as_bytes()).ok()?;
    if fields.unknown_member(&["threshold_ratio", "ignore", "min_region_px"]).is_some() {
        return None;
    }
    let (ignore, ignore_areas) = fields.read("ignore", ignored).unwrap_or_default();
    let image = MonitorImageCompare {
        threshold_ratio: fields.read("threshold_ratio", json::number),
        ignore,
        ignore_areas,
        min_region_px: fields.read("min_region_px", small_integer),
    };
    let all = fields.unparsed.into_iter().map(|of| Unparsed { field: format!("image.{}", of.field), seen: of.seen });
    Some((Some(image), all.collect()))
}

/// The selectors and the rectangles of what never differs.
fn ignored(member: &RawValue) -> Option<(Vec<String>, Vec<MonitorArea>)> {
    let parts: Vec<&RawValue> = serde_json::from_str(member.get()).ok()?;
    let (mut selectors, mut areas) = (Vec::new(), Vec::new());
    for part in parts {
        match json::string(part) {
            Some(selector) => selectors.push(selector),
            None => areas.push(area(options::rectangle(part)?)?),
        }
    }
    Some((selectors, areas))
}

/// A rectangle. `None` if a number is so large that messages cannot have it.
fn area(Rectangle { x, y, width, height }: Rectangle) -> Option<MonitorArea> {
    let side = |number: i64| i32::try_from(number).ok();
    Some(MonitorArea { x: side(x)?, y: side(y)?, width: side(width)?, height: side(height)? })
}

/// The quiet hours, and members of the wrong type. `null` is the message without fields: there are none.
fn quiet(member: &RawValue) -> Option<(MonitorQuiet, Vec<Unparsed>)> {
    if member.get() == "null" {
        return Some((MonitorQuiet::default(), Vec::new()));
    }
    let mut fields = Fields::parse(member.get().as_bytes()).ok()?;
    if fields.unknown_member(&["from", "to", "time_zone"]).is_some() {
        return None;
    }
    let quiet = MonitorQuiet {
        from: fields.read("from", json::string),
        to: fields.read("to", json::string),
        time_zone: fields.read("time_zone", json::string),
    };
    if quiet == MonitorQuiet::default() && fields.unparsed.is_empty() {
        return None;
    }
    let all = fields.unparsed.into_iter().map(|of| Unparsed { field: format!("quiet.{}", of.field), seen: of.seen });
    Some((quiet, all.collect()))
}

/// How texts are compared, or `null`, and members of the wrong type. A selector is refused by name, since it is known of images.
fn text(member: &RawValue) -> Option<(Option<MonitorTextCompare>, Vec<Unparsed>)> {
    if member.get() == "null" {
        return Some((None, Vec::new()));
    }
    let mut fields = Fields::parse(member.get().as_bytes()).ok()?;
    if fields.unknown_member(&["ignore_patterns", "selector"]).is_some() {
        return None;
    }
    let text =
        MonitorTextCompare { ignore_patterns: fields.read("ignore_patterns", json::strings).unwrap_or_default() };
    let _: Option<()> = fields.read("selector", |_| None);
    let all = fields.unparsed.into_iter().map(|of| Unparsed { field: format!("text.{}", of.field), seen: of.seen });
    Some((Some(text), all.collect()))
}

fn notify(member: &RawValue) -> Option<MonitorNotify> {
    let mut fields = Fields::parse(member.get().as_bytes()).ok()?;
    if fields.unknown_member(&["webhook", "email"]).is_some() {
        return None;
    }
    let notify =
        MonitorNotify { webhook: fields.read("webhook", json::boolean), email: fields.read("email", json::boolean) };
    fields.unparsed.is_empty().then_some(notify)
}

fn small_integer(member: &RawValue) -> Option<i32> {
    i32::try_from(json::integer(member)?).ok()
}

#[cfg(test)]
mod tests {
    use grabd_options::TABLE;
    use http::HeaderValue;
    use http::header::CONTENT_TYPE;
    use serde_json::{Map, Value, json};

    use super::super::{examples, schema};
    use super::*;

    fn fields(unparsed: &[Unparsed]) -> Vec<(&str, &str)> {
        unparsed.iter().map(|of| (of.field.as_str(), of.seen.as_str())).collect()
    }

    #[test]
    fn body_is_read_member_by_member() {
        let settings = parse(
            br#"{"name": "Prices", "capture": {"url": "https://example.com", "width": "x", "widht": 5},
                "cron": "0 9 * * *", "every": null, "compare": {"image": {"threshold_ratio": 0.01, "ignore": [".ad"]}, "status": true}, "notify": {"email": false},
                "keep": 5}"#,
        );
        assert_eq!((settings.name.as_deref(), settings.cron.as_deref()), (Some("Prices"), Some("0 9 * * *")));
        assert_eq!((settings.every, settings.keep, settings.alert_after), (None, Some(5), None));
        assert_eq!(settings.capture.unwrap().url.as_deref(), Some("https://example.com"));
        assert_eq!(fields(&settings.capture_unparsed), [("width", "\"x\"")]);
        assert_eq!(settings.capture_unknown, ["widht"]);
        let compare = settings.compare.unwrap();
        assert_eq!((compare.status, compare.image.unwrap().ignore), (Some(true), vec![".ad".to_owned()]));
        assert_eq!(settings.notify, Some(MonitorNotify { webhook: None, email: Some(false) }));
        assert_eq!(settings.unparsed, []);
    }

    #[test]
    fn body_for_several_pages_has_their_urls_beside_the_settings() {
        let body =
            br#"{"urls": ["https://example.com", "b"], "capture": {"width": 800}, "every": "1h", "state": "paused"}"#;
        let BatchCreateMonitorsRequest { urls, monitor } = parse_batch(body);
        let monitor = monitor.unwrap();
        assert_eq!(
            (urls, monitor.every.as_deref()),
            (vec!["https://example.com".to_owned(), "b".to_owned()], Some("1h"))
        );
        assert_eq!((monitor.capture.unwrap().width, monitor.unparsed), (Some(800), Vec::new()));
        for (body, seen) in [
            (r#"{"urls": "a"}"#, ("urls", "\"a\"")),
            (r#"{"urls": ["a", 5]}"#, ("urls", "[\"a\", 5]")),
            (r#"{"urls": null}"#, ("urls", "null")),
            (r#"{"url": "a"}"#, ("body", "the unknown member url (did you mean urls?)")),
            ("[]", ("body", "[]")),
        ] {
            let monitor = parse_batch(body.as_bytes()).monitor.unwrap();
            assert_eq!(fields(&monitor.unparsed), [seen], "{body}");
        }
        let single = parse(br#"{"urls": ["a"]}"#);
        assert_eq!(fields(&single.unparsed), [("body", "the unknown member urls")]);
    }

    #[tokio::test]
    async fn misspelt_grab_of_an_accept_is_refused() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        for (body, seen) in [
            (r#"{"grab_id": "a"}"#, &[] as &[(&str, &str)]),
            ("{}", &[]),
            (r#"{"grabid": "a"}"#, &[("body", "the unknown member grabid (did you mean grab_id?)")]),
        ] {
            let request = read_accept("id".to_owned(), &headers, Body::from(body)).await;
            assert_eq!(fields(&request.unparsed), seen, "{body}");
        }
    }

    #[test]
    fn monitor_that_was_read_can_be_sent_back() {
        let monitor = examples::monitor();
        assert_eq!(parse(monitor.to_string().as_bytes()).unparsed, []);
        let members = monitor.as_object().unwrap();
        assert!(READ_ONLY.iter().all(|name| members.contains_key(*name)), "{monitor}");
    }

    #[test]
    fn members_that_callers_choose_are_those_of_the_schema() {
        let changes = schema::update_monitor();
        let mut names: Vec<&str> = changes.properties.keys().map(String::as_str).collect();
        names.sort_unstable();
        let mut chosen = CHOSEN.to_vec();
        chosen.sort_unstable();
        assert_eq!(names, chosen);

        // A new monitor is never paused.
        let batch = schema::create_monitor_batch();
        let mut names: Vec<&str> = batch.properties.keys().map(String::as_str).collect();
        names.sort_unstable();
        let mut chosen: Vec<&str> = CHOSEN.into_iter().filter(|name| *name != "paused").chain([URLS]).collect();
        chosen.sort_unstable();
        assert_eq!(names, chosen);
    }

    /// The paths of all members of a schema, each with whether it may be null. Those of references are not listed.
    fn members_of(schema: &Value, path: &[&str], found: &mut Vec<(String, bool)>) {
        let Some(properties) = schema["properties"].as_object() else { return };
        for (name, property) in properties {
            let path = [path, &[name.as_str()]].concat();
            let may_be_null = property["type"].as_array().is_some_and(|types| types.contains(&json!("null")));
            found.push((path.join("."), may_be_null));
            members_of(property, &path, found);
        }
    }

    /// A body in which only this member is set, to null.
    fn null_at(path: &str) -> Value {
        path.rsplit('.').fold(Value::Null, |inner, name| json!({ name: inner }))
    }

    #[tokio::test]
    async fn members_may_be_null_where_the_schema_says_so() {
        let mut members = Vec::new();
        members_of(&serde_json::to_value(schema::create_monitor()).unwrap(), &[], &mut members);
        members_of(&serde_json::to_value(schema::update_monitor()).unwrap(), &[], &mut members);
        let options = TABLE.iter().map(|option| (option.name, options::schema(option)));
        let options: Map<String, Value> =
            options.map(|(name, schema)| (name.to_owned(), serde_json::to_value(schema).unwrap())).collect();
        members_of(&json!({ "properties": options }), &["capture"], &mut members);
        for (path, may_be_null) in &members {
            let settings = parse(null_at(path).to_string().as_bytes());
            let is_accepted = settings.unparsed.is_empty() && settings.capture_unparsed.is_empty();
            assert_eq!(is_accepted, *may_be_null, "{path}");
        }
        let nullable: Vec<&str> = members.iter().filter(|(_, may)| *may).map(|(path, _)| path.as_str()).collect();
        for path in ["every", "cron", "time_zone", "compare.image", "compare.text", "quiet", "capture.selector"] {
            assert!(nullable.contains(&path), "{path}");
        }

        let mut members = Vec::new();
        members_of(&serde_json::to_value(schema::create_monitor_batch()).unwrap(), &[], &mut members);
        assert!(members.contains(&(URLS.to_owned(), false)), "{members:?}");
        for (path, may_be_null) in &members {
            let settings = parse_batch(null_at(path).to_string().as_bytes()).monitor.unwrap();
            assert_eq!(settings.unparsed.is_empty(), *may_be_null, "{path}");
        }

        let mut members = Vec::new();
        members_of(&serde_json::to_value(schema::accept_baseline()).unwrap(), &[], &mut members);
        assert_eq!(members, [(GRAB_ID.to_owned(), true)]);
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let body = Body::from(null_at(GRAB_ID).to_string());
        let accept = read_accept("id".to_owned(), &headers, body).await;
        assert_eq!((accept.grab_id, accept.unparsed), (None, Vec::new()));
    }

    #[test]
    fn members_of_the_wrong_type_are_named_with_their_path() {
        let of = |body: &str| {
            let unparsed = parse(body.as_bytes()).unparsed;
            fields(&unparsed).into_iter().map(|(field, seen)| format!("{field}={seen}")).collect::<Vec<_>>()
        };
        assert_eq!(of(r#"{"keep": "5"}"#), [r#"keep="5""#]);
        assert_eq!(of(r#"{"keep": 3000000000}"#), ["keep=3000000000"]);
        assert_eq!(of(r#"{"compare": {"image": {"ignore": 5}}}"#), ["compare.image.ignore=5"]);
        assert_eq!(of(r#"{"compare": {"baseline": 5}}"#), ["compare.baseline=5"]);
        assert_eq!(of(r#"{"compare": {"elements": {}}}"#), ["compare.elements={}"]);
        let area = |area: &str| of(&format!(r#"{{"compare": {{"image": {{"ignore": [".ad", {area}]}}}}}}"#));
        assert_eq!(area(r#"{"x": 0, "y": 1, "width": 2, "height": 3}"#), [] as [&str; 0]);
        for wrong in ["5", "null", r#"{"x": 0, "y": 1, "width": 2}"#, r#"{"x": 0, "y": 1, "width": 2, "height": 3e9}"#]
        {
            assert_eq!(area(wrong), [format!(r#"compare.image.ignore=[".ad", {wrong}]"#)]);
        }
        assert_eq!(of(r#"{"quiet": {"from": 5, "to": "07:00"}}"#), ["quiet.from=5"]);
        assert_eq!(of(r#"{"quiet": {}}"#), ["quiet={}"]);
        assert_eq!(of(r#"{"quiet": {"until": "07:00"}}"#), [r#"quiet={"until": "07:00"}"#]);
        assert_eq!(of(r#"{"quiet": null}"#), [] as [&str; 0]);
        assert_eq!(of(r#"{"compare": {"image": null, "status": true}}"#), [] as [&str; 0]);
        assert_eq!(of(r#"{"compare": {"pdf": {}}}"#), [r#"compare={"pdf": {}}"#]);
        assert_eq!(of(r#"{"compare": {"text": {"ignore_patterns": "a"}}}"#), [r#"compare.text.ignore_patterns="a""#]);
        assert_eq!(of(r#"{"compare": {"text": {"selector": "a"}}}"#), [r#"compare.text.selector="a""#]);
        assert_eq!(of(r#"{"compare": {"text": {"length": 5}}}"#), [r#"compare.text={"length": 5}"#]);
        assert_eq!(of(r#"{"compare": {"text": null, "status": true}}"#), [] as [&str; 0]);
        assert_eq!(of(r#"{"notify": {"sms": true}}"#), [r#"notify={"sms": true}"#]);
        assert_eq!(of(r#"{"capture": ["hidden"]}"#), [format!("capture={HIDDEN}")]);
        assert_eq!(of("[]"), ["body=[]"]);
        assert_eq!(of(r#"{"pausd": true}"#), ["body=the unknown member pausd (did you mean paused?)"]);
        assert_eq!(of(r#"{"colour": 5, "state": "paused"}"#), ["body=the unknown member colour"]);
    }
}
