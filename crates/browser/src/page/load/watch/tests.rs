use super::requests::QUIET;
use super::*;

fn started(request: &str, kind: Kind) -> Event {
    let (request, url) = (request.to_owned(), format!("http://a/{request}"));
    let (loader, frame, details) = (request.clone(), Some("main".into()), Box::default());
    Event::RequestStarted { loader, request, frame, kind, url, redirected: None, details }
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

fn seen(events: impl IntoIterator<Item = Event>) -> WatchState {
    let mut seen = WatchState { main_frame: "main".into(), ..WatchState::default() };
    let now = Instant::now();
    events.into_iter().for_each(|event| seen.apply(event, now));
    seen
}

#[test]
fn document_has_the_head_of_its_own_response() {
    let head = |status| Head { status, ..Head::default() };
    let answered = |loader: &str, status| Event::ResponseReceived {
        request: loader.into(),
        loader: loader.into(),
        kind: Kind::Document,
        head: head(status),
        length: None,
        details: Box::default(),
    };
    let seen = seen([
        started("1", Kind::Document),
        answered("1", 200),
        navigated("1", None),
        started("2", Kind::Document),
        answered("2", 404),
    ]);
    assert_eq!(seen.document.as_ref().and_then(|d| d.head.clone()), Some(head(200)));
    assert!(seen.is_replaced("1"), "a navigation is pending");
    let mut seen = seen;
    seen.apply(navigated("2", None), Instant::now());
    assert_eq!(seen.document.as_ref().and_then(|d| d.head.clone()), Some(head(404)));
    assert!(seen.is_replaced("1") && !seen.is_replaced("2"));
    assert_eq!(seen.navigations, 2);
}

#[test]
fn failed_navigation_is_followed_by_an_error_page_unless_aborted() {
    let failed = |error: &str| Event::RequestFailed { request: "2".into(), error: error.into() };
    let start = || [started("1", Kind::Document), navigated("1", None), started("2", Kind::Document)];

    let mut refused = seen(start().into_iter().chain([failed("net::ERR_EMPTY_RESPONSE")]));
    assert!(refused.is_replaced("1"));
    refused.apply(navigated("2", Some("http://a/2")), Instant::now());
    let document = refused.document.unwrap();
    assert_eq!(document.error.as_deref(), Some("net::ERR_EMPTY_RESPONSE"));
    assert_eq!(document.unreachable_url.as_deref(), Some("http://a/2"));

    let aborted = seen(start().into_iter().chain([failed("net::ERR_ABORTED")]));
    assert!(!aborted.is_replaced("1"));
    assert_eq!(aborted.aborted.map(|navigation| navigation.url).as_deref(), Some("http://a/2"));
}

#[test]
fn relevant_requests_delay_the_image() {
    let hold = |page: &WatchState, at| page.requests.hold(WaitLimit::Short, at);
    let mut page = seen([started("1", Kind::Document), navigated("1", None), Event::Loaded]);
    let start = Instant::now();
    assert_eq!(hold(&page, start), None, "the document has arrived");
    page.apply(started("ping", Kind::Other), start);
    assert_eq!(hold(&page, start), None, "pings do not change the image");
    page.apply(started("2", Kind::Data), start);
    assert_eq!(hold(&page, start), Some(Hold::Until(start + Duration::from_secs(1))));
    page.apply(Event::RequestFinished { request: "2".into() }, start);
    assert_eq!(hold(&page, start), None);
    page.apply(Event::SocketOpened { request: "3".into() }, start);
    page.apply(Event::MessageReceived { request: "3".into() }, start);
    assert_eq!(hold(&page, start), Some(Hold::Until(start + QUIET)));
    page.apply(Event::SocketClosed { request: "3".into() }, start);
    assert_eq!(hold(&page, start), None);
    page.apply(started("4", Kind::Image), start);
    page.apply(navigated("5", None), start);
    assert_eq!(hold(&page, start), None, "the requests belong to the previous document");
}

#[test]
fn decoded_response_bytes_are_limited() {
    let piece = |request: &str, bytes| Event::DataReceived { request: request.into(), bytes };
    let one = |bytes| seen([piece("1", MAX_RESPONSE_BYTES), piece("1", bytes)]).excess;
    assert_eq!((one(0), one(1)), (None, Some(Excess::Bytes)));
    let ended = || Event::RequestFinished { request: "1".into() };
    let many = |bytes| {
        seen([piece("1", MAX_RESPONSE_BYTES), ended(), piece("2", MAX_RESPONSE_BYTES), piece("3", bytes)]).excess
    };
    assert_eq!((many(0), many(1)), (None, Some(Excess::Bytes)));
    let mut flood = seen((0..2 * MAX_COUNTED_RESPONSES).map(|request| piece(&request.to_string(), 1)));
    assert_eq!((flood.received.len(), flood.excess), (MAX_COUNTED_RESPONSES, None));
    flood.apply(piece("last", MAX_RESPONSE_BYTES + 1), Instant::now());
    assert_eq!(flood.excess, Some(Excess::Bytes), "untracked responses are limited, too");
}

#[test]
fn event_bytes_are_limited() {
    let watch = Watch::new("main");
    let sink = watch.sink();
    sink(MAX_EVENT_BYTES, None);
    assert_eq!(watch.read(|seen| seen.excess), None);
    sink(1, None);
    assert_eq!(watch.read(|seen| seen.excess), Some(Excess::Bytes));
}

#[test]
fn workers_are_limited() {
    let worker = |number: u32| Event::WorkerStarted { session: number.to_string(), url: String::new() };
    let started = |count| seen((0..count).map(worker)).excess;
    assert_eq!((started(MAX_WORKERS), started(MAX_WORKERS + 1)), (None, Some(Excess::Workers)));
}

#[test]
fn blocked_navigation_does_not_leave_the_document() {
    let mut page = seen([started("1", Kind::Document), navigated("1", None), started("2", Kind::Document)]);
    assert!(page.is_replaced("1"));
    page.navigation_blocked = true;
    assert!(!page.is_replaced("1"));
    page.apply(navigated("2", None), Instant::now());
    assert!(page.is_replaced("1"), "a navigation in progress may still commit");
}

#[test]
fn world_belongs_to_its_document() {
    let watch = Watch::new("main");
    let sink = watch.sink();
    sink(0, Some(navigated("1", None)));
    watch.set_world("1".into(), World::new(7));
    assert_eq!(watch.world(), Some(World::new(7)));
    sink(0, Some(navigated("2", None)));
    assert_eq!(watch.world(), None);
    watch.set_world("1".into(), World::new(7));
    assert_eq!(watch.world(), None, "the world belongs to the previous document");
}

#[test]
fn other_scripts_are_sent_once_to_each_world() {
    let watch = Watch::new("main");
    let sent = |world| watch.lacks_scripts(World::new(world));
    watch.set_world("1".into(), World::new(7));
    assert_eq!([sent(7), sent(7)], [true, false]);
    assert_eq!([sent(8), sent(8)], [true, true], "a world that is not kept");
    watch.set_world("2".into(), World::new(9));
    assert_eq!([sent(9), sent(9), sent(7)], [true, false, true]);
}

#[test]
fn crash_takes_precedence_over_close() {
    assert_eq!(seen([Event::Crashed, Event::Detached]).gone, Some(Gone::Crashed));
    assert_eq!(seen([Event::Detached]).gone, Some(Gone::Closed));
}
