use super::*;

fn all(options: &Options) -> Vec<&OptionField> {
    options.main.iter().chain(options.more.iter().flat_map(|group| &group.fields)).collect()
}

#[test]
fn every_option_is_in_the_form_once_and_examples_can_be_entered() {
    let options = Options::of(&Form::default(), &[], &[]);
    let mut names: Vec<_> = all(&options).iter().map(|field| field.name).collect();
    names.push("url");
    names.sort_unstable();
    let mut expected: Vec<_> = in_form().map(|option| option.name).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    for option in in_form() {
        let example = option.example_text();
        assert!(option.kind.parse(&example).is_some_and(|value| option.check(&value).is_ok()), "{example}");
    }
}

#[test]
fn placeholders_are_what_is_used_while_a_field_is_empty() {
    let shown = |query: &str, name: &str| {
        let options = Options::of(&Form::parse(query.as_bytes()), &[], &[]);
        let fields = all(&options);
        let field = fields.iter().find(|field| field.name == name).unwrap();
        (field.placeholder.clone(), field.defaults.clone())
    };
    let (width, sizes) = shown("", "width");
    assert_eq!(width, "1280");
    assert!(sizes.starts_with("desktop=1280 phone=390 tablet=768 ") && sizes.contains(" iphone-15=393 "), "{sizes}");
    assert_eq!(shown("device=phone", "width"), ("390".to_owned(), sizes));
    assert_eq!(shown("device=laptop-15", "scale").0, "1.25");
    assert_eq!(shown("device=tablet", "height").0, "1024");
    assert_eq!(shown("device=watch", "scale").0, "1");
    assert_eq!(shown("", "max_height"), ("No limit".to_owned(), String::new()));
    // A value is kept if it differs from what would be used without it.
    for (query, value) in [("device=phone&width=1280", "1280"), ("device=phone&width=390", ""), ("width=1280", "")] {
        let options = Options::of(&Form::parse(query.as_bytes()), &[], &[]);
        let fields = all(&options);
        assert_eq!(fields.iter().find(|field| field.name == "width").unwrap().value, value, "{query}");
    }
    // Examples are in the hint.
    let options = Options::of(&Form::default(), &[], &[]);
    let fields = all(&options);
    let timezone = fields.iter().find(|field| field.name == "timezone").unwrap();
    assert_eq!(timezone.placeholder, "");
    assert!(timezone.hint.ends_with("Example: Europe/Vienna"), "{}", timezone.hint);
    assert!(fields.iter().all(|field| !field.hint.contains('`')));
}

#[test]
fn first_options_are_those_of_the_table_and_only_what_can_be_left_out_is_offered() {
    let offered = |query: &str| {
        let options = Options::of(&Form::parse(query.as_bytes()), &[], &["ads", "trackers"]);
        let names: Vec<_> = options.main.iter().map(|field| field.name).collect();
        assert_eq!(names, ["device", "color_scheme", "width", "height", "format", "full_page", "block"]);
        let Input::Words(words) = &options.main[6].input else { panic!("a set of words") };
        words.iter().map(|word| word.text).collect::<Vec<_>>()
    };
    assert_eq!(offered(""), ["Cookie banners", "Chats", "Share bars"]);
    assert_eq!(offered("block=ads"), ["Ads", "Cookie banners", "Chats", "Share bars"]);
}

#[test]
fn errors_have_the_words_of_the_form() {
    let message = |query: &str| {
        let fault = CaptureSpec::parse(&parse(query)).unwrap_err();
        field_error(fault).unwrap().message
    };
    let url = "url=https://example.com/";
    for (query, expected) in [
        ("url=", "Enter a web address such as example.com."),
        ("url=ftp://example.com", "Enter a web address such as example.com."),
        (
            "url=https://me:secret@example.com/",
            "Enter a web address such as example.com, without a user name or password, which “Basic authentication” \
             takes.",
        ),
        (&format!("{url}&height=7"), "Height must be a whole number from 240 to 1080; it was 7."),
        (&format!("{url}&quality=90"), "Quality must be left out for PNG, which is lossless; it was 90."),
        (&format!("{url}&padding=5"), "Padding must be left out where “Element” is not used; it was 5."),
        (&format!("{url}&format=gif"), "Format must be one of these: PNG, JPEG, WebP; it was gif."),
        (
            &format!("{url}&block=news"),
            "Leave out must be some of these: Ads, Trackers, Cookie banners, Chats, Share bars.",
        ),
    ] {
        assert_eq!(message(query), expected, "{query}");
    }
}

#[test]
fn words_are_read_from_check_boxes_and_from_a_list() {
    let expected = Some(vec!["pdf".to_owned(), "markdown".to_owned()]);
    for query in ["also=pdf&also=markdown", "also=pdf,+markdown"] {
        assert_eq!(parse(query).also, expected, "{query}");
        let options = Options::of(&Form::parse(query.as_bytes()), &[], &[]);
        let fields = all(&options);
        let also = fields.iter().find(|field| field.name == "also").unwrap();
        let Input::Words(words) = &also.input else { panic!("a set of words") };
        let chosen: Vec<_> = words.iter().filter(|word| word.is_chosen).map(|word| word.value).collect();
        assert_eq!(chosen, ["markdown", "pdf"], "{query}");
    }
}

fn parse(query: &str) -> CaptureRequest {
    request(&Form::parse(query.as_bytes()))
}

#[test]
fn empty_fields_are_omitted_from_the_request() {
    let request = parse("url=&width=+&height=&format=&delay_ms=&selector=");
    assert_eq!((request.url, request.width, request.selector), (None, None, None));
    assert!(request.unparsed.is_empty());
    assert_eq!(request.full_page, Some(false));
}

#[test]
fn invalid_numbers_are_passed_on_as_unparsed() {
    let request = parse("url=https://example.com/&width=wide&height=7e2&delay_ms=500");
    assert_eq!((request.width, request.height, request.delay_ms), (None, None, Some(500)));
    let seen: Vec<_> = request.unparsed.iter().map(|(name, seen)| (&**name, &**seen)).collect();
    assert_eq!(seen, [("width", "\"wide\""), ("height", "\"7e2\"")]);
    let fault = CaptureSpec::parse(&request).unwrap_err();
    let FieldError { field, message } = field_error(fault).unwrap();
    assert_eq!((field, &*message), ("width", "Width must be a whole number from 320 to 1920; it was wide."));
}

#[test]
fn missing_scheme_becomes_https() {
    for (text, url) in [
        ("example.com", "https://example.com"),
        (" example.com/a?b=c:d ", "https://example.com/a?b=c:d"),
        ("http://example.com", "http://example.com"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("localhost:8080/", "localhost:8080/"),
        ("//example.com", "//example.com"),
    ] {
        assert_eq!(with_scheme(text.trim().to_owned()), url);
    }
}

#[test]
fn option_that_is_on_by_default_is_turned_off_only_explicitly() {
    assert_eq!(parse("url=https://example.com/").javascript, None);
    assert_eq!(parse("url=https://example.com/&javascript=true").javascript, Some(true));
    let request = parse("url=https://example.com/&javascript=false&clip=1,2,3,4&fail_on_status=4xx%0D%0A503");
    assert_eq!(request.javascript, Some(false));
    assert_eq!(request.fail_on_status, Some(vec!["4xx".to_owned(), "503".to_owned()]));
    let spec = CaptureSpec::parse(&request).unwrap();
    let query = to_query(&spec, Environment::Live);
    assert_eq!(CaptureSpec::parse(&parse(&query)).unwrap(), spec, "{query}");
    let invalid = CaptureSpec::parse(&parse("url=https://example.com/&clip=1,2")).unwrap_err();
    assert!(field_error(invalid).unwrap().message.starts_with("Clip must be x,y,width,height such as"));
}

#[test]
fn query_of_a_spec_prefills_the_form() {
    let query = "url=https%3A%2F%2Fexample.com%2F%3Fa%3Db%26c&width=800&height=600&format=webp&full_page=true\
                 &delay_ms=250&selector=a%5Bhref%3D%22x%22%5D&environment=test";
    let spec = CaptureSpec::parse(&parse(query)).unwrap();
    assert_eq!(to_query(&spec, Environment::Test), query);
    let options = Options::of(&Form::parse(query.as_bytes()), &[], &[]);
    let fields = all(&options);
    let field = |name: &str| fields.iter().find(|field| field.name == name).unwrap();
    assert_eq!(field("width").value, "800");
    assert!(matches!(field("full_page").input, Input::Flag { is_checked: true }));
    let Input::Choice(formats) = &field("format").input else { panic!("a choice") };
    assert!(formats[2].value == "webp" && formats[2].is_chosen);
    let open: Vec<_> = options.more.iter().filter(|group| group.is_open).map(|group| group.title).collect();
    assert_eq!(open, ["Page", "Timing"], "the selector and the delay differ from their defaults");
}

#[test]
fn query_names_options_that_are_no_longer_kept() {
    let long = "x".repeat(300);
    let spec = CaptureSpec::parse(&parse(&format!("url=https://example.com/&css={long}&script={long}"))).unwrap();
    let kept = spec.without_long_options(|_| "digest".to_owned()).unwrap();
    let query = to_query(&kept, Environment::Live);
    assert!(!query.contains("xxx"), "{query}");
    assert_eq!(omitted_labels(&Form::parse(query.as_bytes())), ["CSS", "Script"]);
    assert_eq!(omitted_labels(&Form::parse(to_query(&spec, Environment::Live).as_bytes())), [""; 0]);
    assert_eq!(omitted_labels(&Form::parse(b"omitted=<b>,css,unknown")), ["CSS"]);
    let steps = CaptureSpec::parse(&parse(r##"url=https://example.com/&steps={"click":"%23next"}"##)).unwrap();
    assert_eq!(omitted_labels(&Form::parse(to_query(&steps, Environment::Live).as_bytes())), ["Steps"]);
}

#[test]
fn secrets_are_read_from_the_form_and_not_sent_back() {
    let query = "url=https://example.com/&headers=X-Token:+hidden-1&cookies=a=hidden-2;+path=/x&basic_auth=me:hidden-3\
                 &geolocation=48.2,16.37&block_types=image,+font&width=wide";
    let request = parse(query);
    assert!(request.headers.is_some() && request.cookies.is_some() && request.basic_auth.is_some());
    let options = Options::of(&Form::parse(query.as_bytes()), &[], &[]);
    let fields = all(&options);
    assert!(fields.iter().all(|field| !field.value.contains("hidden")));
    let value = |name: &str| fields.iter().find(|field| field.name == name).unwrap().value.as_str();
    assert_eq!((value("geolocation"), value("block_types")), ("48.2,16.37", "image, font"));
    let spec = CaptureSpec::parse(&CaptureRequest { unparsed: Vec::new(), ..request }).unwrap();
    let prefilled = to_query(&spec, Environment::Test);
    assert!(prefilled.contains("geolocation=48.2%2C16.37") && !prefilled.contains("hidden"), "{prefilled}");
    let fault = CaptureSpec::parse(&parse("url=https://example.com/&headers=hidden")).unwrap_err();
    assert!(!field_error(fault).unwrap().message.contains("hidden\""));
}
