use super::*;

fn started(request: &str, kind: Kind) -> Event {
    let (request, url) = (request.to_owned(), format!("http://a/{request}"));
    Event::RequestStarted { loader: request.clone(), request, frame: Some("main".into()), kind, url }
}

fn navigated(loader: &str, unreachable_url: Option<&str>) -> Event {
    Event::FrameNavigated {
        frame: "main".into(),
        is_main: true,
        loader: loader.into(),
        url: format!("http://a/{loader}"),
        unreachable_url: unreachable_url.map(Into::into),
    }
}

fn seen(events: impl IntoIterator<Item = Event>) -> Seen {
    let mut seen = Seen { main_frame: "main".into(), ..Seen::default() };
    let now = Instant::now();
    events.into_iter().for_each(|event| seen.fold(event, now));
    seen
}

#[test]
fn a_document_carries_the_head_of_its_own_answer() {
    let head = |status| Head { status, ..Head::default() };
    let answered = |loader: &str, status| Event::ResponseReceived {
        loader: loader.into(),
        kind: Kind::Document,
        head: head(status),
    };
    let seen = seen([
        started("1", Kind::Document),
        answered("1", 200),
        navigated("1", None),
        started("2", Kind::Document),
        answered("2", 404),
    ]);
    assert_eq!(seen.document.as_ref().and_then(|d| d.head.clone()), Some(head(200)));
    assert!(seen.has_left("1"), "a navigation is in flight");
    let mut seen = seen;
    seen.fold(navigated("2", None), Instant::now());
    assert_eq!(seen.document.as_ref().and_then(|d| d.head.clone()), Some(head(404)));
    assert!(seen.has_left("1") && !seen.has_left("2"));
    assert_eq!(seen.navigations, 2);
}

#[test]
fn a_failed_navigation_waits_for_the_error_page_and_an_aborted_one_does_not() {
    let failed = |error: &str| Event::RequestFailed { request: "2".into(), error: error.into() };
    let start = || [started("1", Kind::Document), navigated("1", None), started("2", Kind::Document)];

    let mut refused = seen(start().into_iter().chain([failed("net::ERR_EMPTY_RESPONSE")]));
    assert!(refused.has_left("1"));
    refused.fold(navigated("2", Some("http://a/2")), Instant::now());
    let document = refused.document.unwrap();
    assert_eq!(document.error.as_deref(), Some("net::ERR_EMPTY_RESPONSE"));
    assert_eq!(document.unreachable_url.as_deref(), Some("http://a/2"));

    let aborted = seen(start().into_iter().chain([failed("net::ERR_ABORTED")]));
    assert!(!aborted.has_left("1"));
    assert_eq!(aborted.aborted.map(|navigation| navigation.url).as_deref(), Some("http://a/2"));
}

#[test]
fn rest_counts_from_the_last_start_and_unanswered_requests_hold_it_up_for_a_while() {
    let mut page = seen([started("1", Kind::Document), navigated("1", None), Event::Loaded]);
    let start = Instant::now();
    assert!(matches!(page.rest(start), Rest::NotBefore(_)), "the document itself was just asked for");
    let start = start + QUIET;
    assert_eq!(page.rest(start), Rest::Quiet, "nothing was asked for since");
    page.fold(started("ping", Kind::Other), start);
    assert_eq!(page.rest(start), Rest::Quiet, "pings change no picture");
    page.fold(started("2", Kind::Data), start);
    assert_eq!(page.rest(start), Rest::NotBefore(start + PATIENCE));
    assert_eq!(page.rest(start + PATIENCE), Rest::Quiet, "a long poll is not waited for");
    let answered = start + QUIET * 2;
    page.fold(Event::RequestFinished { request: "2".into() }, answered);
    assert_eq!(page.rest(answered), Rest::NotBefore(answered + QUIET), "its script has something to draw");
    assert_eq!(page.rest(answered + QUIET), Rest::Quiet);
}

#[test]
fn a_closed_page_that_crashed_has_crashed() {
    assert_eq!(seen([Event::Crashed, Event::Detached]).gone, Some(Gone::Crashed));
    assert_eq!(seen([Event::Detached]).gone, Some(Gone::Closed));
}
