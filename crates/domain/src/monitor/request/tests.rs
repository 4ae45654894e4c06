use uuid::Uuid;

use super::super::compare::ImageCompare;
use super::super::compare_request::{ImageCompareRequest, TextCompareRequest};
use super::*;
use crate::capture::Rectangle;

const SHORTEST: Duration = Duration::from_secs(300);

fn request() -> MonitorRequest {
    let capture = CaptureRequest { url: Some("https://www.example.com/a".into()), ..CaptureRequest::default() };
    MonitorRequest { capture: Some(capture), every: Some("1h".into()), ..MonitorRequest::default() }
}

fn with(change: impl FnOnce(&mut MonitorRequest)) -> MonitorRequest {
    let mut request = request();
    change(&mut request);
    request
}

fn refused(change: impl FnOnce(&mut MonitorRequest)) -> String {
    MonitorSpec::parse(&with(change), SHORTEST).unwrap_err().to_string()
}

fn capture_with(change: impl FnOnce(&mut CaptureRequest)) -> impl FnOnce(&mut MonitorRequest) {
    move |request: &mut MonitorRequest| change(request.capture.as_mut().unwrap())
}

#[test]
fn absent_members_have_their_defaults() {
    let spec = MonitorSpec::parse(&request(), SHORTEST).unwrap();
    assert_eq!((spec.name.as_str(), spec.alert_after, spec.keep), ("www.example.com", 1, 100));
    assert_eq!((spec.compare, spec.notify), (Compare::default(), Notify { webhook: true, email: true }));
    let status = CompareRequest { status: Some(true), ..CompareRequest::default() };
    let spec = MonitorSpec::parse(&with(|request| request.compare = Some(status)), SHORTEST).unwrap();
    assert_eq!((spec.compare.image, spec.compare.status), (None, true));
    let empty = with(|request| request.compare = Some(CompareRequest::default()));
    assert_eq!(MonitorSpec::parse(&empty, SHORTEST).unwrap().compare, Compare::default());
}

#[test]
fn first_invalid_member_is_named() {
    type Change = fn(&mut MonitorRequest);
    let cases: [(Change, &str); 21] = [
        (|r| r.paused = Some(true), "`paused` must be left out of a new monitor"),
        (|r| r.capture = None, "`capture` must be an object"),
        (|r| r.name = Some("  ".into()), "`name` must be"),
        (|r| r.name = Some("n".repeat(101)), "`name` must be"),
        (|r| r.every = None, "`every` must be present, unless `cron` is"),
        (|r| r.every = Some("4m".into()), "`every` must be an integer and `m`, `h` or `d`, from 5m to 30d; got \"4m\""),
        (|r| r.cron = Some("0 9 * * *".into()), "`cron` must be left out where `every` is used"),
        (|r| (r.every, r.cron) = (None, Some("0 9 * *".into())), "`cron` must be five fields"),
        (|r| (r.every, r.cron) = (None, Some("* * * * *".into())), "`cron` must be an expression with at least 5"),
        (|r| (r.every, r.cron) = (None, Some("0 0 30 2 *".into())), "`cron` must be a time that exists"),
        (|r| r.time_zone = Some("Mars".into()), "`time_zone` must be the name of an IANA time zone"),
        (|r| r.time_zone = Some("UTC".into()), "`time_zone` must be left out"),
        (|r| r.alert_after = Some(11), "`alert_after` must be an integer from 1 to 10; got 11"),
        (|r| r.keep = Some(0), "`keep` must be an integer from 1 to 1000; got 0"),
        (|r| r.unparsed = vec![("notify".into(), "5".into())], "`notify` must be an object"),
        (
            |r| r.unparsed = vec![("keep".into(), "x".into()), ("body".into(), "the unknown member pausd".into())],
            "`body` must be a JSON object with some of `name`, `capture`,",
        ),
        (
            |r| r.unparsed = vec![("keep".into(), "x".into()), ("compare.image.ignore".into(), "5".into())],
            "`compare.image.ignore` must be an array of CSS selectors and rectangles; got 5",
        ),
        (
            |r| r.compare = Some(CompareRequest { baseline: Some("first".into()), ..CompareRequest::default() }),
            "`compare.baseline` must be \"latest\" or \"accepted\"; got \"first\"",
        ),
        (
            |r| r.compare = Some(image(1.5, &[])),
            "`compare.image.threshold_ratio` must be a number from 0 to 1; got 1.5",
        ),
        (|r| r.compare = Some(image(0.1, &[" "])), "`compare.image.ignore` must be"),
        (|r| r.compare = Some(text(&["("])), "`compare.text.ignore_patterns` must be an array of at most 20 regular"),
    ];
    for (change, expected) in cases {
        let message = refused(change);
        assert!(message.starts_with(expected), "{message}");
    }
}

fn image(threshold_ratio: f64, ignore: &[&str]) -> CompareRequest {
    let ignore = ignore.iter().map(|selector| (*selector).to_owned()).collect();
    let image =
        ImageCompareRequest { threshold_ratio: Some(threshold_ratio), ignore, ..ImageCompareRequest::default() };
    CompareRequest { image: Some(image), ..CompareRequest::default() }
}

fn text(patterns: &[&str]) -> CompareRequest {
    let ignore_patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    CompareRequest { text: Some(TextCompareRequest { ignore_patterns }), ..CompareRequest::default() }
}

#[test]
fn options_that_do_not_fit_a_monitor_are_refused() {
    let id = Uuid::nil().to_string();
    assert!(refused(capture_with(|r| r.compare_to = Some(id))).starts_with("`compare_to` must be left out"));
    assert!(refused(capture_with(|r| r.max_age = Some(60))).starts_with("`max_age` must be left out"));
    let upload = grabd_options::Secret("https://bucket.example.com/a.png".to_owned());
    assert!(refused(capture_with(|r| r.upload_url = Some(upload))).starts_with("`upload_url` must be left out"));
    assert!(refused(capture_with(|r| r.width = Some(1))).starts_with("`width` must be"));
}

#[test]
fn ignored_elements_are_hidden_with_those_of_the_capture() {
    let request = with(|request| {
        request.compare = Some(image(0.0, &[".ad", ".time"]));
        request.capture.as_mut().unwrap().hide = Some(vec![".time".into(), ".cookie".into()]);
    });
    let spec = MonitorSpec::parse(&request, SHORTEST).unwrap();
    let baseline = GrabId(Uuid::from_u128(7));
    let run = spec.run_request(Some(baseline));
    assert_eq!(run.hide.as_deref().unwrap(), [".time", ".cookie", ".ad"]);
    assert_eq!(run.compare_to, Some(baseline.to_string()));
    assert!(CaptureSpec::parse(&run).is_ok());
    assert_eq!(spec.run_request(None).compare_to, None);
    let long = format!(".{}", "e".repeat(499));
    let message = refused(|request| request.compare = Some(image(0.0, &[long.as_str(); 9])));
    let expected = "`compare.image.ignore` must be CSS selectors that take at most 4096 bytes together; got 4500 bytes";
    assert!(message.starts_with(expected), "{message}");
    let full = with(|request| {
        request.compare = Some(image(0.0, &[".one-more"]));
        request.capture.as_mut().unwrap().hide = Some((0..20).map(|n| format!(".e{n}")).collect());
    });
    let message = MonitorSpec::parse(&full, SHORTEST).unwrap_err().to_string();
    assert!(message.starts_with("`compare.image.ignore` must be an array of at most 20"), "{message}");
}

#[test]
fn captures_of_runs_name_unknown_options_also_after_they_were_stored() {
    let request = with(capture_with(|r| r.unknown = vec!["ful_page".into()]));
    let mut spec = MonitorSpec::parse(&request, SHORTEST).unwrap();
    let stored = serde_json::to_string(&spec.capture.without_secrets()).unwrap();
    spec.capture = serde_json::from_str(&stored).unwrap();
    let run = CaptureSpec::parse(&spec.run_request(None)).unwrap();
    assert_eq!(run.unknown_warnings().collect::<Vec<_>>(), ["unknown_option:ful_page (did you mean full_page?)"]);
}

#[test]
fn run_makes_the_text_that_is_compared() {
    let run = |also: &[&str]| {
        let also = also.iter().map(|kind| (*kind).to_owned()).collect();
        let mut request = with(capture_with(|r| r.also = Some(also)));
        request.compare = Some(text(&["a"]));
        let run = MonitorSpec::parse(&request, SHORTEST).unwrap().run_request(None);
        (CaptureSpec::parse(&run).unwrap().also, run.content)
    };
    assert_eq!(run(&[]), (vec![FileKind::Text], Some("page".to_owned())));
    assert_eq!(run(&["markdown"]), (vec![FileKind::Text, FileKind::Markdown], None));
    assert_eq!(run(&["text"]), (vec![FileKind::Text], None));
    let mut masked = with(capture_with(|r| r.mask = Some(vec![".secret".into()])));
    masked.compare = Some(text(&[]));
    let refused = MonitorSpec::parse(&masked, SHORTEST).unwrap_err().to_string();
    assert!(refused.starts_with("`compare.text` must be left out where `mask` is used"), "{refused}");
}

#[test]
fn change_keeps_what_it_does_not_name() {
    let current = MonitorSpec::parse(&request(), SHORTEST).unwrap();
    let parse = |request: MonitorRequest| MonitorChange::parse(&request, &current, SHORTEST);
    assert!(parse(MonitorRequest::default()).unwrap().is_empty());
    let same = MonitorRequest { every: Some("1h".into()), ..MonitorRequest::default() };
    assert!(parse(same).unwrap().is_empty(), "the due time stays");
    let no_mail = NotifyRequest { email: Some(false), webhook: None };
    let change = parse(MonitorRequest { notify: Some(no_mail), ..MonitorRequest::default() }).unwrap();
    assert_eq!(change.notify, Some(Notify { webhook: true, email: false }));
    let daily = MonitorRequest {
        cron: Some("0 9 * * *".into()),
        time_zone: Some("europe/berlin".into()),
        ..MonitorRequest::default()
    };
    let schedule = parse(daily).unwrap().schedule.unwrap();
    let Schedule::Cron(cron) = &schedule else { panic!("not a cron expression") };
    assert_eq!(cron.zone_name(), "Europe/Berlin");
    let daily = MonitorSpec { schedule, ..current.clone() };
    let other_time = MonitorRequest { cron: Some("0 10 * * *".into()), ..MonitorRequest::default() };
    let Some(Schedule::Cron(cron)) = MonitorChange::parse(&other_time, &daily, SHORTEST).unwrap().schedule else {
        panic!("not a cron expression")
    };
    assert_eq!((cron.cron().to_string().as_str(), cron.zone_name()), ("0 10 * * *", "Europe/Berlin"));
    let zone = MonitorRequest { time_zone: Some("UTC".into()), ..MonitorRequest::default() };
    assert!(MonitorChange::parse(&zone, &daily, SHORTEST).unwrap().schedule.is_some());
    assert!(parse(zone).is_err(), "an interval has no time zone");
}

#[test]
fn rectangles_and_small_regions_do_not_count_in_runs() {
    let area = Rectangle { x: 0, y: 10, width: 300, height: 20 };
    let compare = |areas: Vec<Rectangle>, min_region_px| {
        let image = ImageCompareRequest { ignore_areas: areas, min_region_px, ..ImageCompareRequest::default() };
        Some(CompareRequest { image: Some(image), ..CompareRequest::default() })
    };
    let spec = MonitorSpec::parse(&with(|r| r.compare = compare(vec![area], Some(500))), SHORTEST).unwrap();
    assert_eq!(spec.tolerance(), Tolerance { ignored: vec![area], min_region_px: 500 });
    assert_eq!(MonitorSpec::parse(&request(), SHORTEST).unwrap().tolerance(), Tolerance::default());
    assert_eq!(ImageCompare::default().min_region_px, 0);
    for (areas, min_region_px, expected) in [
        (vec![area; 21], None, "`compare.image.ignore` must be an array with at most 20 rectangles; got 21"),
        (
            vec![Rectangle { width: 0, ..area }],
            None,
            "`compare.image.ignore` must be an array in which each rectangle is",
        ),
        (vec![], Some(-1), "`compare.image.min_region_px` must be an integer from 0 to 1000000; got -1"),
        (vec![], Some(1_000_001), "`compare.image.min_region_px` must be an integer from 0 to 1000000; got 1000001"),
    ] {
        let message = refused(|r| r.compare = compare(areas, min_region_px));
        assert!(message.starts_with(expected), "{message}");
    }
    let scaled = refused(|r| {
        r.capture.as_mut().unwrap().fit_width = Some(400);
        r.compare = compare(vec![area], None);
    });
    assert!(scaled.starts_with("`compare.image.ignore` must be an array without rectangles"), "{scaled}");
}

#[test]
fn run_makes_the_elements_that_are_compared() {
    let elements = CompareRequest { elements: Some(true), ..CompareRequest::default() };
    let spec = MonitorSpec::parse(&with(|r| r.compare = Some(elements.clone())), SHORTEST).unwrap();
    assert_eq!((&spec.compare.image, spec.compare.elements), (&None, true));
    let run = spec.run_request(None);
    assert_eq!((CaptureSpec::parse(&run).unwrap().also, run.content), (vec![FileKind::Elements], None));
    let mut masked = with(capture_with(|r| r.mask = Some(vec![".secret".into()])));
    masked.compare = Some(elements);
    let refused = MonitorSpec::parse(&masked, SHORTEST).unwrap_err().to_string();
    assert!(refused.starts_with("`compare.elements` must be left out where `mask` is used"), "{refused}");
}

#[test]
fn quiet_hours_have_the_time_zone_of_the_schedule_and_can_be_removed() {
    let hours = |from: &str, to: &str, zone: Option<&str>| QuietRequest {
        from: Some(from.into()),
        to: Some(to.into()),
        time_zone: zone.map(str::to_owned),
    };
    let parse = |change: fn(&mut MonitorRequest), quiet| {
        let mut request = with(change);
        request.quiet = Some(quiet);
        MonitorSpec::parse(&request, SHORTEST).map(|spec| spec.quiet)
    };
    let zone = |quiet: Option<Quiet>| quiet.unwrap().zone_name();
    assert_eq!(zone(parse(|_| (), hours("22:00", "07:00", None)).unwrap()), "UTC");
    let daily: fn(&mut MonitorRequest) =
        |r| (r.every, r.cron, r.time_zone) = (None, Some("0 9 * * *".into()), Some("Europe/Vienna".into()));
    assert_eq!(zone(parse(daily, hours("22:00", "07:00", None)).unwrap()), "Europe/Vienna");
    assert_eq!(zone(parse(daily, hours("22:00", "07:00", Some("asia/tokyo"))).unwrap()), "Asia/Tokyo");
    assert_eq!(parse(daily, QuietRequest::default()).unwrap(), None);
    for (quiet, expected) in [
        (hours("22", "07:00", None), "`quiet.from` must be a time of day"),
        (QuietRequest { to: None, ..hours("22:00", "", None) }, "`quiet.to` must be a time of day"),
        (hours("07:00", "07:00", None), "`quiet.to` must be a time of day from 00:00 to 23:59, and `from` another one"),
        (hours("22:00", "07:00", Some("Mars")), "`quiet.time_zone` must be the name of an IANA time zone"),
    ] {
        let message = parse(|_| (), quiet).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
    let current = MonitorSpec::parse(&with(|r| r.quiet = Some(hours("22:00", "07:00", None))), SHORTEST).unwrap();
    let change = |quiet| {
        let request = MonitorRequest { quiet: Some(quiet), ..MonitorRequest::default() };
        MonitorChange::parse(&request, &current, SHORTEST).unwrap().quiet
    };
    assert_eq!(change(hours("22:00", "07:00", None)), None, "the same");
    assert_eq!(change(QuietRequest::default()), Some(None));
}
