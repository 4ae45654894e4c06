use std::collections::BTreeMap;

use super::*;
use crate::capture::OptionValue;

fn request() -> SiteRequest {
    SiteRequest { url: Some("https://www.Example.com#top".into()), ..SiteRequest::default() }
}

fn with(change: impl FnOnce(&mut SiteRequest)) -> SiteRequest {
    let mut request = request();
    change(&mut request);
    request
}

fn spec(change: impl FnOnce(&mut SiteRequest)) -> SiteSpec {
    SiteSpec::parse(&with(change), MAX_PAGES, false).unwrap()
}

#[test]
fn absent_members_have_their_defaults() {
    let spec = spec(|_| {});
    assert_eq!(spec.source.address().as_str(), "https://www.example.com/");
    assert_eq!((spec.name.as_str(), spec.max_pages, spec.max_depth()), ("www.example.com", 50, Some(3)));
    assert_eq!((spec.robots, spec.requests_per_minute, spec.pace()), (true, 30, Duration::from_secs(2)));
    assert!(spec.include.is_empty() && spec.exclude.is_empty());
    let few = SiteSpec::parse(&request(), 10, false).unwrap();
    assert_eq!(few.max_pages, 10, "the operator's limit is below the default");
}

#[test]
fn first_invalid_member_is_named() {
    type Change = fn(&mut SiteRequest);
    let cases: [(Change, &str); 21] = [
        (|r| r.url = None, "`url` must be present, unless `sitemap` is"),
        (|r| r.sitemap = Some("https://example.com/s.xml".into()), "`sitemap` must be left out where `url` is used"),
        (|r| r.url = Some("example.com".into()), "`url` must be an absolute http(s) URL"),
        (
            |r| r.url = Some(format!("https://example.com/#{}", "a".repeat(2048))),
            "`url` must be the absolute http(s) URL of a start page, at most 2048 bytes long",
        ),
        (
            |r| (r.url, r.sitemap) = (None, Some("ftp://example.com/".into())),
            "`sitemap` must be an absolute http(s) URL",
        ),
        (
            |r| {
                (r.url, r.sitemap) = (None, Some("https://example.com/".into()));
                r.max_depth = Some(1);
            },
            "`max_depth` must be left out where `url` is not used; got 1",
        ),
        (|r| r.max_pages = Some(0), "`max_pages` must be an integer from 1 to 1000; got 0"),
        (|r| r.max_depth = Some(11), "`max_depth` must be an integer from 0 to 10; got 11"),
        (|r| r.requests_per_minute = Some(121), "`requests_per_minute` must be an integer from 1 to 120; got 121"),
        (|r| r.robots = Some(false), "`robots` must be true or left out: the operator"),
        (|r| r.include = vec![" /blog/*".into()], "`include` must be an array of at most 20 patterns"),
        (|r| r.include = vec!["blog/*".into()], "`include` must be an array of at most 20 patterns"),
        (|r| r.exclude = vec!["/a".into(); 21], "`exclude` must be an array of at most 20 patterns"),
        (|r| r.name = Some(" ".into()), "`name` must be a text of 1 to 100 characters"),
        (
            |r| r.unparsed = vec![("robots".into(), "1".into()), ("body".into(), "[]".into())],
            "`body` must be a JSON object",
        ),
        (|r| r.unparsed = vec![("robots".into(), "1".into())], "`robots` must be true or false; got 1"),
        (
            |r| {
                let url = Some("https://example.com/".into());
                r.capture = Some(CaptureRequest { url, ..CaptureRequest::default() });
            },
            "`capture.url` must be left out",
        ),
        (
            |r| r.capture = Some(CaptureRequest { width: Some(1), ..CaptureRequest::default() }),
            "`width` must be an integer from",
        ),
        (
            |r| r.capture = Some(CaptureRequest { mask: Some(vec!["a".into()]), ..CaptureRequest::default() }),
            "`mask` must be left out of the capture of a site that starts with `url`",
        ),
        (
            |r| {
                let earlier = Some("01993e1c-7b1a-7000-8000-0123456789ab".into());
                r.capture = Some(CaptureRequest { compare_to: earlier, ..CaptureRequest::default() });
            },
            "`compare_to` must be left out of the capture of a site",
        ),
        (|r| r.unparsed = vec![("include".into(), "5".into())], "`include` must be an array of at most 20 patterns"),
    ];
    for (change, expected) in cases {
        let error = SiteSpec::parse(&with(change), MAX_PAGES, false).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error} instead of {expected}");
    }
}

#[test]
fn robots_txt_is_ignored_only_if_the_operator_allows_it() {
    let request = with(|request| request.robots = Some(false));
    assert!(!SiteSpec::parse(&request, MAX_PAGES, true).unwrap().robots);
}

#[test]
fn pages_are_captured_with_their_links_if_these_are_followed() {
    let capture =
        CaptureRequest { also: Some(vec!["text".into()]), full_page: Some(true), ..CaptureRequest::default() };
    let followed = spec(|request| request.capture = Some(capture.clone()));
    let request = followed.page_request("https://example.com/a");
    assert_eq!(request.url.as_deref(), Some("https://example.com/a"));
    assert_eq!(request.also, Some(vec!["text".to_owned(), "links".to_owned()]));
    assert_eq!(request.full_page, Some(true));
    let listed = spec(|request| {
        (request.url, request.sitemap) = (None, Some("https://example.com/s".into()));
        request.capture = Some(capture);
    });
    assert_eq!(listed.page_request("https://example.com/a").also, Some(vec!["text".to_owned()]));
}

#[test]
fn addresses_are_refused_for_the_first_reason() {
    let spec = spec(|request| {
        request.include = vec!["/blog/*".into()];
        request.exclude = vec!["*/drafts/*".into()];
    });
    let scope = Scope::of(spec.source.address());
    for (url, expected) in [
        ("https://example.com/blog/a", None),
        ("https://example.org/blog/a", Some(SkipReason::OtherSite)),
        ("https://example.com/about", Some(SkipReason::Excluded)),
        ("https://example.com/blog/drafts/a", Some(SkipReason::Excluded)),
        ("https://example.com/blog/a.PDF?x", Some(SkipReason::NotHtml)),
        ("https://example.com/blog/a.tar.xz", Some(SkipReason::NotHtml)),
        ("https://example.com/blog/a.woff", Some(SkipReason::NotHtml)),
        ("https://example.com/blog/a.php", None),
        ("https://example.com/blog/v1.2/", None),
        ("https://example.com/blog/a?file=b.pdf", None),
    ] {
        assert_eq!(spec.refuses(&scope, &normal_address(url).unwrap()), expected, "{url}");
    }
}

#[test]
fn logins_are_only_for_the_origin_of_the_start_page() {
    let object = |members: &[(&str, &str)]| -> BTreeMap<String, OptionValue> {
        members.iter().map(|(name, text)| ((*name).to_owned(), OptionValue::Text((*text).to_owned()))).collect()
    };
    let capture = CaptureRequest {
        headers: Some(Secret(object(&[("X-Token", "a")]))),
        basic_auth: Some(Secret(object(&[("username", "a"), ("password", "b")]))),
        cookies: Some(Secret(vec![
            object(&[("name", "of_host"), ("value", "a")]),
            object(&[("name", "of_domain"), ("value", "a"), ("domain", "example.com")]),
        ])),
        full_page: Some(true),
        ..CaptureRequest::default()
    };
    let spec = spec(|request| request.capture = Some(capture));
    let sent = |url: &str| {
        let request = spec.page_request(url);
        assert_eq!(request.full_page, Some(true), "{url}");
        let cookies = request.cookies.map_or(0, |Secret(cookies)| cookies.len());
        (request.headers.is_some(), request.basic_auth.is_some(), cookies)
    };
    for url in ["https://www.example.com/", "https://www.example.com/a?b#c", "https://www.example.com:443/a"] {
        assert_eq!(sent(url), (true, true, 2), "{url}");
    }
    for url in [
        "http://www.example.com/",
        "https://example.com/",
        "https://users.example.com/",
        "https://www.example.com:8443/",
    ] {
        assert_eq!(sent(url), (false, false, 1), "{url}");
    }
}
