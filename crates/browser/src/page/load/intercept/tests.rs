use grabd_domain::capture::{CaptureRequest, OptionValue, Secret};
use grabd_domain::domains::{Domain, DomainRule};

use super::*;

fn spec(change: impl FnOnce(&mut CaptureRequest)) -> CaptureSpec {
    let mut request = CaptureRequest { url: Some("https://a.example/x?y".into()), ..CaptureRequest::default() };
    change(&mut request);
    CaptureSpec::parse(&request).unwrap()
}

fn paused(kind: &str, url: &str) -> PausedRequest {
    let headers = vec![("Accept".to_owned(), "*/*".to_owned()), ("User-Agent".to_owned(), "x".to_owned())];
    let (url, kind, method) = (url.to_owned(), kind.to_owned(), "GET".to_owned());
    PausedRequest { url, kind, method, headers, ..PausedRequest::default() }
}

fn interception(spec: &CaptureSpec) -> Interception<'_> {
    Interception::new(spec, None, Arc::default(), false, RequestSigner::default())
}

/// The decision about a request of the document in the main frame, or of a frame in it.
fn decide(spec: &CaptureSpec, paused: &PausedRequest, is_main: bool, shown: &str) -> Decision {
    let main = Url::parse(shown).ok().map(|url| url.origin()).filter(Origin::is_tuple);
    let document = main.clone().map(DocumentOrigin::Web).filter(|_| is_main);
    interception(spec).decide(paused, false, &Requester { main, document: document.as_ref(), is_main })
}

#[test]
fn blocked_requests_fail_and_the_document_does_not() {
    let spec = spec(|r| {
        r.block_types = Some(vec!["font".into(), "xhr".into(), "frame".into()]);
        r.block_urls = Some(vec!["*/ads/*".into()]);
    });
    for (kind, url, is_main, is_blocked) in [
        ("Document", "https://a.example/ads/", true, false),
        ("Document", "https://a.example/", false, true),
        ("Font", "https://a.example/f", true, true),
        ("Fetch", "https://a.example/f", true, true),
        ("XHR", "https://a.example/f", true, true),
        ("Image", "https://a.example/f", true, false),
        ("Image", "https://b.example/ads/f", true, true),
    ] {
        let decision = decide(&spec, &paused(kind, url), is_main, "https://a.example/");
        let expected = if is_blocked { Decision::Fail(ErrorReason::BlockedByClient) } else { Decision::Continue };
        assert_eq!(decision, expected, "{kind} {url}");
    }
    let requester = Requester { main: None, document: None, is_main: true };
    let held = interception(&spec).decide(&paused("Document", "https://a.example/"), true, &requester);
    assert_eq!(held, Decision::Fail(ErrorReason::Aborted));
}

#[test]
fn headers_are_sent_from_and_to_the_origin_of_the_target_only() {
    let header = |value: &str| OptionValue::Text(value.to_owned());
    let spec = spec(|r| {
        r.headers = Some(Secret([("Accept".to_owned(), header("b")), ("X-Token".to_owned(), header("c"))].into()));
        let members = [("username".to_owned(), header("me")), ("password".to_owned(), header("p"))];
        r.basic_auth = Some(Secret(members.into()));
    });
    let here = "https://a.example/";
    for (kind, url, is_main, shown, is_sent) in [
        ("Document", "https://a.example/", true, "about:blank", true),
        ("Document", "https://a.example:443/z", true, "https://b.example/", true),
        ("Image", "https://a.example/i", true, here, true),
        ("Image", "https://a.example/i", true, "https://b.example/", false),
        ("Document", "https://a.example/", false, "https://b.example/", false),
        ("Image", "https://a.example/i", false, here, false),
        ("Document", "http://a.example/", true, here, false),
        ("Document", "https://a.example:8443/", true, here, false),
        ("Document", "https://www.a.example/", true, here, false),
        ("Image", "https://b.example/i", true, here, false),
    ] {
        match decide(&spec, &paused(kind, url), is_main, shown) {
            Decision::ContinueWith(headers) => {
                assert!(is_sent, "{url} from {shown}");
                let sent: Vec<_> = headers.iter().map(|of| (of.name.as_str(), of.value.as_str())).collect();
                let expected = [("accept", "b"), ("x-token", "c"), ("authorization", "Basic bWU6cA==")];
                assert_eq!(sent, [&[("User-Agent", "x")][..], &expected].concat());
            }
            decision @ (Decision::Continue | Decision::Fail(_) | Decision::Fulfill | Decision::FulfillPdf { .. }) => {
                assert!(!is_sent && decision == Decision::Continue, "{url} from {shown}");
            }
        }
    }
}

#[test]
fn headers_are_sent_for_frames_of_the_target_only() {
    let header = OptionValue::Text("hidden".to_owned());
    let spec = spec(|r| r.headers = Some(Secret([("X-Token".to_owned(), header)].into())));
    for (referrer, is_sent) in [("https://a.example/frame", true), ("https://b.example/", false), ("", false)] {
        let mut framed = paused("Image", "https://a.example/i");
        framed.headers.push(("Referer".to_owned(), referrer.to_owned()));
        let decision = decide(&spec, &framed, false, "https://a.example/");
        assert_eq!(matches!(decision, Decision::ContinueWith(_)), is_sent, "{referrer}");
    }
}

#[test]
fn only_the_main_document_at_the_base_url_is_that_of_the_caller() {
    let base_url = Some("https://a.example/x*?y#part".to_owned());
    let request = CaptureRequest { html: Some(Secret("<p>".into())), base_url, ..CaptureRequest::default() };
    let spec = CaptureSpec::parse(&request).unwrap();
    let patterns = interception(&spec).patterns(false);
    assert_eq!(patterns.len(), 1);
    assert_eq!(patterns[0].url_pattern.as_deref(), Some(r"https://a.example/x\*\?y"));
    for (kind, url, is_main, is_own) in [
        ("Document", "https://a.example/x*?y", true, true),
        ("Document", "https://a.example/x*?y", false, false),
        ("Document", "https://a.example/x", true, false),
        ("Fetch", "https://a.example/x*?y", true, false),
    ] {
        let decision = decide(&spec, &paused(kind, url), is_main, "https://a.example/");
        assert_eq!(decision == Decision::Fulfill, is_own, "{kind} {url}");
    }
}

#[test]
fn only_what_is_needed_is_paused() {
    let patterns = |spec: &CaptureSpec, blocked| interception(spec).patterns(blocked).len();
    assert_eq!((patterns(&spec(|_| ()), false), patterns(&spec(|_| ()), true)), (0, 1));
    let sockets = spec(|r| r.block_types = Some(vec!["websocket".into()]));
    assert_eq!(patterns(&sockets, false), 0);
    let urls = spec(|r| r.block_urls = Some(vec!["*?a".into()]));
    assert_eq!(interception(&urls).patterns(false)[0].url_pattern.as_deref(), Some(r"*\?a"));
}

fn secret() -> CaptureSpec {
    spec(|r| r.headers = Some(Secret([("X-Token".to_owned(), OptionValue::Text("hidden".to_owned()))].into())))
}

#[test]
fn document_that_makes_a_request_decides_about_headers() {
    let spec = secret();
    let web = |url: &str| DocumentOrigin::Web(Url::parse(url).unwrap().origin());
    let (own, other) = (web("https://a.example/"), web("https://b.example/"));
    let inherited = DocumentOrigin::Inherited;
    let (here, there) = ("https://a.example/x", "https://b.example/x");
    for (document, is_main, referrer, main, is_sent) in [
        (Some(&own), true, "", here, true),
        (Some(&own), true, there, here, true),
        (Some(&own), false, here, here, true),
        // A sandbox.
        (Some(&own), false, "", here, false),
        (Some(&own), false, here, there, false),
        // A page that is still there while a navigation to the target is pending, and after it was replaced.
        (Some(&other), true, there, there, false),
        (Some(&other), true, "", here, false),
        (Some(&other), false, there, here, false),
        (Some(&inherited), false, here, here, true),
        (Some(&inherited), false, there, here, false),
        (Some(&inherited), false, "", here, false),
        // A worker.
        (None, true, here, here, true),
        (None, true, there, here, false),
        (None, true, here, there, false),
    ] {
        let mut request = paused("Image", "https://a.example/i");
        request.headers.push(("Referer".to_owned(), referrer.to_owned()));
        let main = Url::parse(main).ok().map(|url| url.origin());
        let decision = interception(&spec).decide(&request, false, &Requester { main, document, is_main });
        assert_eq!(matches!(decision, Decision::ContinueWith(_)), is_sent, "{document:?} {is_main} {referrer}");
    }
}

#[test]
fn another_page_can_lead_back_with_headers_but_not_submit_a_form() {
    let spec = secret();
    for (method, shown, is_sent) in [
        ("GET", "https://b.example/", true),
        ("POST", "https://b.example/", false),
        ("POST", "https://a.example/", true),
        ("POST", "about:blank", true),
    ] {
        let request = PausedRequest { method: method.to_owned(), ..paused("Document", "https://a.example/") };
        let decision = decide(&spec, &request, true, shown);
        assert_eq!(matches!(decision, Decision::ContinueWith(_)), is_sent, "{method} from {shown}");
    }
}

#[test]
fn documents_of_denied_domains_are_not_loaded_and_counted_in_frames() {
    let spec = spec(|_| ());
    let denied = (Domain::parse("denied.example.com").unwrap(), DomainRule::Deny);
    let rules: Arc<DomainRules> = Arc::new([denied].into_iter().collect());
    let interception = Interception::new(&spec, None, rules, true, RequestSigner::default());
    let decide = |kind: &str, url: &str, is_main, opts_out| {
        let request = PausedRequest { opts_out, ..paused(kind, url) };
        interception.decide(&request, false, &Requester { main: None, document: None, is_main })
    };
    let blocked = Decision::Fail(ErrorReason::BlockedByClient);
    assert_eq!(interception.patterns(false).len(), 2);
    assert_eq!(decide("Document", "https://www.denied.example.com/", true, None), blocked);
    assert_eq!(decide("Document", "https://b.example/", false, None), Decision::Continue);
    assert_eq!(decide("Image", "https://denied.example.com/i", false, None), Decision::Continue);
    assert_eq!(decide("Document", "https://b.example/", true, Some(true)), Decision::Continue);
    assert_eq!(decide("Document", "https://b.example/", false, Some(false)), Decision::Continue);
    assert_eq!(interception.denied_documents(), 0);
    assert_eq!(decide("Document", "https://denied.example.com/", false, None), blocked);
    assert_eq!(decide("Document", "https://b.example/", false, Some(true)), blocked);
    assert_eq!(interception.denied_documents(), 2);
}

#[test]
fn document_of_a_pdf_is_answered_and_the_pdf_is_loaded_whatever_is_blocked() {
    let spec = spec(|r| r.block_types = Some(vec!["xhr".into()]));
    let interception = interception(&spec);
    let decide = |kind: &str, url: &str, is_main: bool| {
        interception.decide(&paused(kind, url), false, &Requester { main: None, document: None, is_main })
    };
    let (url, blocked) = ("https://a.example/a.pdf", Decision::Fail(ErrorReason::BlockedByClient));
    assert_eq!(decide("Fetch", url, true), blocked);
    interception.show_pdf(&format!("{url}#page=2"), 404);
    assert!(interception.patterns(false).iter().any(|pattern| pattern.url_pattern.as_deref() == Some(url)));
    assert_eq!(decide("Document", url, true), Decision::FulfillPdf { status: 404 });
    assert_eq!(decide("Fetch", url, true), Decision::Continue);
    assert_eq!(decide("Document", url, false), Decision::Continue);
    assert_eq!(decide("Fetch", "https://a.example/b", true), blocked);
}

/// An interception whose signatures name the URL that they are for.
fn signing(spec: &CaptureSpec) -> Interception<'_> {
    let sign = |url: &str| {
        let of = |name| format!("{name} for {url}");
        url.starts_with("http").then(|| {
            [("Signature-Agent", of("agent")), ("Signature-Input", of("input")), ("Signature", of("signature"))]
        })
    };
    Interception::new(spec, None, Arc::default(), false, RequestSigner::new(sign))
}

/// The signature with which a request of the main frame of the target is sent, if any. Checks that there is one at most.
fn signature(interception: &Interception<'_>, paused: &PausedRequest, is_main: bool) -> Option<String> {
    let main = Url::parse("https://a.example/").ok().map(|url| url.origin());
    let decision = interception.decide(paused, false, &Requester { main, document: None, is_main });
    let Decision::ContinueWith(headers) = decision else {
        assert_eq!(decision, Decision::Continue);
        return None;
    };
    let of_name = |name: &str| {
        let found = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| header.value.clone()).collect::<Vec<_>>()
    };
    let fields = ["signature-agent", "signature-input", "signature"].map(of_name);
    assert!(fields.iter().all(|values| values.len() == fields[2].len() && values.len() < 2), "{fields:?}");
    fields[2].first().cloned()
}

#[test]
fn documents_of_all_frames_are_signed_for_their_own_url_and_nothing_else_is() {
    let spec = spec(|_| ());
    let interception = signing(&spec);
    assert_eq!(interception.patterns(false).len(), 1);
    for (kind, url, is_main, is_signed) in [
        ("Document", "https://a.example/x?y", true, true),
        ("Document", "https://b.example/", true, true),
        ("Document", "https://b.example/", false, true),
        ("Document", "data:text/html,x", false, false),
        ("Script", "https://a.example/s.js", true, false),
        ("Fetch", "https://a.example/api", true, false),
        ("Image", "https://a.example/i", true, false),
    ] {
        let expected = is_signed.then(|| format!("signature for {url}"));
        assert_eq!(signature(&interception, &paused(kind, url), is_main), expected, "{kind} {url}");
    }
}

#[test]
fn signature_of_another_request_is_replaced() {
    let spec = secret();
    let interception = signing(&spec);
    let mut request = paused("Document", "https://a.example/next");
    for (name, value) in [("signature", "forged"), ("SIGNATURE-INPUT", "forged"), ("Signature-Agent", "forged")] {
        request.headers.push((name.to_owned(), value.to_owned()));
    }
    assert_eq!(signature(&interception, &request, true).as_deref(), Some("signature for https://a.example/next"));
    let requester = Requester { main: None, document: None, is_main: true };
    let Decision::ContinueWith(headers) = interception.decide(&request, false, &requester) else {
        panic!("not continued with headers");
    };
    let has = |name: &str, value: &str| headers.contains(&HeaderEntry::new(name, value));
    assert!(has("x-token", "hidden") && has("Accept", "*/*") && has("User-Agent", "x"), "{headers:?}");
    assert!(!headers.iter().any(|header| header.value == "forged"), "{headers:?}");
}

#[test]
fn pdf_that_is_drawn_is_requested_with_a_signature() {
    let spec = spec(|_| ());
    let interception = signing(&spec);
    let url = "https://a.example/a.pdf";
    assert_eq!(signature(&interception, &paused("Fetch", url), true), None);
    interception.show_pdf(url, 200);
    assert!(
        interception
            .patterns(false)
            .iter()
            .any(|pattern| { pattern.url_pattern.as_deref() == Some(url) && pattern.resource_type.is_none() })
    );
    assert_eq!(signature(&interception, &paused("Fetch", url), true), Some(format!("signature for {url}")));
}
