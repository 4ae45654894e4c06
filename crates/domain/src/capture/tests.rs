use super::*;

fn request() -> CaptureRequest {
    CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() }
}

fn parse(request: &CaptureRequest) -> Result<CaptureSpec, Fault> {
    CaptureSpec::parse(request)
}

#[test]
fn defaults_match_the_contract() {
    let spec = parse(&request()).unwrap();
    assert_eq!((spec.viewport.width(), spec.viewport.height()), (1280, 720));
    assert_eq!((spec.format, spec.full_page, spec.delay), (Format::Png, false, Duration::ZERO));
    assert_eq!(spec.selector, None);
    assert_eq!(spec.reported_height(), 720);
}

#[test]
fn table_of_options_has_the_defaults_of_each_device() {
    for device in Device::ALL.map(Device::as_str) {
        let spec = parse(&CaptureRequest { device: Some(device.to_owned()), ..request() }).unwrap();
        let default = |name: &str| grabd_options::find(name).unwrap().default_with(device);
        assert_eq!(default("width"), spec.viewport.width().to_string(), "{device}");
        assert_eq!(default("height"), spec.viewport.height().to_string(), "{device}");
        assert_eq!(default("scale"), (f64::from(spec.scale.hundredths()) / 100.0).to_string(), "{device}");
    }
}

#[test]
fn bounds_are_inclusive_and_report_the_contract_codes() {
    type Set = fn(&mut CaptureRequest, i64);
    let fields: [(Set, i64, i64, &str); 3] = [
        (|r, v| r.width = Some(v), 320, 1920, "invalid_viewport"),
        (|r, v| r.height = Some(v), 240, 1080, "invalid_viewport"),
        (|r, v| r.delay_ms = Some(v), 0, 10_000, "bad_request"),
    ];
    for (set, least, most, code) in fields {
        for (value, good) in [(least, true), (most, true), (least - 1, false), (most + 1, false), (i64::MAX, false)] {
            let mut request = request();
            set(&mut request, value);
            assert_eq!(parse(&request).map_err(|f| f.code().as_str()).err(), (!good).then_some(code), "{value}");
        }
    }
}

#[test]
fn validation_reports_the_first_invalid_field_in_contract_order() {
    let all: Vec<(String, String)> = ["selector", "delay_ms", "full_page", "format", "height", "width", "url", "body"]
        .iter()
        .map(|name| ((*name).to_owned(), "[]".to_owned()))
        .collect();
    for wrong in (1..=all.len()).rev() {
        let mut request = request();
        request.unparsed = all[..wrong].to_vec();
        let fault = parse(&request).unwrap_err();
        let first = ["body", "url", "width", "height", "format", "full_page", "delay_ms", "selector"]
            .into_iter()
            .find(|name| request.unparsed.iter().any(|(n, _)| n == name))
            .unwrap();
        assert_eq!(fault.field().unwrap().name, first);
        let viewport = ["width", "height"].contains(&first);
        assert_eq!(fault.code().as_str(), if viewport { "invalid_viewport" } else { "bad_request" });
    }
}

#[test]
fn validation_reports_the_url_before_the_width() {
    let request = CaptureRequest { url: Some("ftp://x".into()), width: Some(1), ..CaptureRequest::default() };
    assert_eq!(parse(&request).unwrap_err().code().as_str(), "bad_request");
    let request = CaptureRequest { width: Some(1), ..CaptureRequest::default() };
    assert_eq!(parse(&request).unwrap_err().field().unwrap().name, "url");
}

#[test]
fn validation_checks_selectors_and_formats() {
    for (selector, good) in [
        ("#a", true),
        ("", false),
        ("  ", false),
        ("a\0", false),
        (&"a".repeat(1024), true),
        (&"a".repeat(1025), false),
    ] {
        let request = CaptureRequest { selector: Some(selector.into()), ..request() };
        assert_eq!(parse(&request).is_ok(), good);
    }
    for (format, good) in [("png", true), ("jpeg", true), ("webp", true), ("jpg", false), ("PNG", false), ("", false)] {
        let request = CaptureRequest { format: Some(format.into()), ..request() };
        assert_eq!(parse(&request).is_ok(), good, "{format}");
    }
}

#[test]
fn minimal_request_gives_the_same_spec() {
    let phone = || CaptureRequest { device: Some("phone".into()), ..request() };
    let cases = [
        request(),
        phone(),
        CaptureRequest { width: Some(1280), height: Some(720), scale: Some(1.0), ..phone() },
        CaptureRequest { width: Some(390), height: Some(844), scale: Some(3.0), ..request() },
        CaptureRequest { full_page: Some(true), max_height: Some(500), delay_ms: Some(5), ..request() },
        CaptureRequest {
            javascript: Some(false),
            wait_until: Some("idle".into()),
            timeout_ms: Some(1000),
            fail_on_status: Some(vec!["4xx".into(), "503".into()]),
            allow_blocked: Some(true),
            clip: Some(Rectangle { x: 1, y: 2, width: 3, height: 4 }),
            fit_width: Some(16),
            fit_height: Some(8000),
            click: Some(vec!["a".into()]),
            mask: Some(vec!["b".into()]),
            also: Some(vec!["report".into()]),
            freeze: Some(true),
            max_age: Some(60),
            metadata: Some([("a".to_owned(), Value::Text("b".to_owned()))].into()),
            ..request()
        },
        CaptureRequest { script: Some("1".into()), timeout_ms: Some(25_000), javascript: Some(true), ..request() },
        CaptureRequest { pdf_page: Some(2), ..request() },
        CaptureRequest { hide: Some(vec!["a".into()]), timezone: Some("Asia/Tokyo".into()), ..phone() },
    ];
    for request in cases {
        let spec = parse(&request).unwrap();
        assert_eq!(parse(&spec.to_minimal_request()).unwrap(), spec);
        let stored = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<CaptureSpec>(&stored).unwrap(), spec, "{stored}");
    }
    let given = |request: CaptureRequest| {
        TABLE.iter().filter(|option| request.get(option.name).is_some()).map(|option| option.name).collect::<Vec<_>>()
    };
    assert_eq!(given(parse(&phone()).unwrap().to_minimal_request()), ["url", "device"]);
}

#[test]
fn options_that_do_not_fit_together_are_refused() {
    type Set = fn(&mut CaptureRequest);
    let rectangle = |width| Rectangle { width, height: 1, ..Rectangle::default() };
    assert!(parse(&CaptureRequest { clip: Some(rectangle(1)), ..request() }).is_ok());
    let cases: [(&str, Set); 22] = [
        ("padding", |r| r.padding = Some(1)),
        ("max_height", |r| r.max_height = Some(500)),
        ("quality", |r| r.quality = Some(50)),
        ("transparent", |r| (r.transparent, r.format) = (Some(true), Some("jpeg".into()))),
        ("timezone", |r| r.timezone = Some("Europe/Atlantis".into())),
        ("user_agent", |r| r.user_agent = Some("a\r\nb".into())),
        ("timeout_ms", |r| r.timeout_ms = Some(999)),
        ("timeout_ms", |r| r.timeout_ms = Some(60_001)),
        ("max_age", |r| r.max_age = Some(2_592_001)),
        ("wait_until", |r| r.wait_until = Some("networkidle".into())),
        ("fail_on_status", |r| r.fail_on_status = Some(vec!["399".into()])),
        ("clip", |r| r.clip = Some(Rectangle { width: 0, height: 1, ..Rectangle::default() })),
        ("clip", |r| {
            let clip = Rectangle { width: 1, height: 1, ..Rectangle::default() };
            (r.clip, r.full_page) = (Some(clip), Some(true));
        }),
        ("clip", |r| {
            let clip = Rectangle { width: 1, height: 1, ..Rectangle::default() };
            (r.clip, r.selector) = (Some(clip), Some("a".into()));
        }),
        ("fit_width", |r| r.fit_width = Some(15)),
        ("mask", |r| (r.mask, r.also) = (Some(vec!["a".into()]), Some(vec!["report".into(), "text".into()]))),
        ("script", |r| (r.script, r.javascript) = (Some("1".into()), Some(false))),
        ("wait_for_expression", |r| (r.wait_for_expression, r.javascript) = (Some("1".into()), Some(false))),
        ("pdf_page", |r| r.pdf_page = Some(501)),
        ("evidence", |r| (r.url, r.html, r.evidence) = (None, Some(Secret("<p>".into())), Some(true))),
        ("evidence", |r| (r.mask, r.evidence) = (Some(vec!["a".into()]), Some(true))),
        ("pdf_page", |r| (r.url, r.html, r.pdf_page) = (None, Some(Secret("<p>".into())), Some(2))),
    ];
    for (name, set) in cases {
        let mut request = request();
        set(&mut request);
        assert_eq!(parse(&request).unwrap_err().field().map(|field| field.name), Some(name));
    }
}

#[test]
fn invalid_member_of_an_object_is_named() {
    let object = |name: &str, value| Some([(name.to_owned(), value)].into());
    let far = CaptureRequest { geolocation: object("latitude", Value::Integer(91)), ..request() };
    assert_eq!(parse(&far).unwrap_err().to_string(), "`geolocation.latitude` must be a number from -90 to 90; got 91.");
    let unparsed = vec![("pdf.landscape".to_owned(), "\"yes\"".to_owned())];
    let wrong_type = CaptureRequest { unparsed, ..request() };
    assert_eq!(parse(&wrong_type).unwrap_err().to_string(), "`pdf.landscape` must be true or false; got \"yes\".");
    let unknown = CaptureRequest { pdf: object("colour", Value::Flag(true)), ..request() };
    let message = parse(&unknown).unwrap_err().to_string();
    assert!(message.starts_with("`pdf` must be an object with optionally `format`"), "{message}");
}

#[test]
fn spec_round_trips_through_its_stored_form() {
    let request = CaptureRequest {
        selector: Some("#a".into()),
        format: Some("webp".into()),
        full_page: Some(true),
        delay_ms: Some(250),
        ..request()
    };
    let spec = parse(&request).unwrap();
    let stored = serde_json::to_string(&spec).unwrap();
    assert_eq!(
        stored,
        r##"{"url":"https://example.com/","width":1280,"height":720,"format":"webp","full_page":true,"delay_ms":250,"selector":"#a"}"##
    );
    assert_eq!(serde_json::from_str::<CaptureSpec>(&stored).unwrap(), spec);
    assert_eq!(spec.reported_height(), 3240);
}
