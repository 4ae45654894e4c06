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
fn bodies_are_counted_as_they_unpack() {
    let piece = |request: &str, bytes| Event::DataReceived { request: request.into(), bytes };
    let one = |bytes| seen([piece("1", ANSWER_BYTES), piece("1", bytes)]).excess;
    assert_eq!((one(0), one(1)), (None, Some(Excess::Bytes)));
    let ended = || Event::RequestFinished { request: "1".into() };
    let many = |bytes| seen([piece("1", ANSWER_BYTES), ended(), piece("2", ANSWER_BYTES), piece("3", bytes)]).excess;
    assert_eq!((many(0), many(1)), (None, Some(Excess::Bytes)));
    let mut flood = seen((0..2 * IN_FLIGHT).map(|request| piece(&request.to_string(), 1)));
    assert_eq!((flood.received.len(), flood.excess), (IN_FLIGHT, None));
    flood.fold(piece("last", ANSWER_BYTES + 1), Instant::now());
    assert_eq!(flood.excess, Some(Excess::Bytes), "one that is not remembered has its limit, too");
}

#[test]
fn what_is_told_has_a_limit_also_where_nobody_looks() {
    let watch = Watch::new("main");
    let tell = watch.sink();
    tell(TOLD_BYTES, None);
    assert_eq!(watch.look(|seen| seen.excess), None);
    tell(1, None);
    assert_eq!(watch.look(|seen| seen.excess), Some(Excess::Bytes));
}

#[test]
fn workers_are_counted() {
    let started = |count| seen((0..count).map(|_| Event::WorkerStarted)).excess;
    assert_eq!((started(WORKERS), started(WORKERS + 1)), (None, Some(Excess::Workers)));
}

#[test]
fn a_page_that_is_held_has_not_left_for_where_it_wants_to_go() {
    let mut page = seen([started("1", Kind::Document), navigated("1", None), started("2", Kind::Document)]);
    assert!(page.has_left("1"));
    page.held = true;
    assert!(!page.has_left("1"));
    page.fold(navigated("2", None), Instant::now());
    assert!(page.has_left("1"), "what was under way may still arrive");
}

#[test]
fn a_world_belongs_to_its_document() {
    let watch = Watch::new("main");
    let tell = watch.sink();
    tell(0, Some(navigated("1", None)));
    watch.set_world("1".into(), World::new(7));
    assert_eq!(watch.world(), Some(World::new(7)));
    tell(0, Some(navigated("2", None)));
    assert_eq!(watch.world(), None);
    watch.set_world("1".into(), World::new(7));
    assert_eq!(watch.world(), None, "the answer came late");
}

#[test]
fn a_closed_page_that_crashed_has_crashed() {
    assert_eq!(seen([Event::Crashed, Event::Detached]).gone, Some(Gone::Crashed));
    assert_eq!(seen([Event::Detached]).gone, Some(Gone::Closed));
}
