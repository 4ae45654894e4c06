//! `GET /v1/grabs`.

use futures::{StreamExt as _, stream};
use grabd_proto::v1::{
    Grab, GrabStatus, ListGrabsRequest, ListGrabsResponse, Unparsed, WatchGrabsRequest, WatchGrabsResponse,
};

use crate::support::{STATE, TestApp, WatchAllStream, get, grab, with_limit_headers, without_body};

fn page(ids: &'static [&'static str], has_more: bool) -> ListGrabsResponse {
    let grabs = ids.iter().map(|id| Grab { id: (*id).to_owned(), ..grab(GrabStatus::Done, 4) }).collect();
    ListGrabsResponse { grabs, has_more, next: None }
}

fn unparsed_field(field: &str, seen: &str) -> Unparsed {
    Unparsed { field: field.to_owned(), seen: seen.to_owned() }
}

#[tokio::test]
async fn list_returns_a_page_of_grabs() {
    for app in TestApp::both().await {
        app.core.list.respond_with(|| with_limit_headers(page(&["b", "a"], false)));
        let response = app.get("/v1/grabs").await;
        assert_eq!(response.status, 200);
        assert!(response.text().starts_with(r#"{"data":[{"id":"b","status":"done","#), "{}", response.text());
        assert!(response.text().ends_with(r#"}],"has_more":false}"#), "{}", response.text());
        assert_eq!(response.json()["data"][1]["id"], "a");
        assert_eq!(response.header("cache-control"), "private, no-store");
        assert_eq!((response.header("ratelimit"), response.header("link")), (STATE, ""));
        assert_eq!(app.core.list.take_request().1, ListGrabsRequest::default());
    }
    let app = TestApp::new();
    app.core.list.respond_with(|| with_limit_headers(page(&[], false)));
    assert_eq!(app.get("/v1/grabs").await.text(), r#"{"data":[],"has_more":false}"#);
}

#[tokio::test]
async fn parameters_are_parsed_and_invalid_ones_forwarded_as_unparsed() {
    let app = TestApp::new();
    app.core.list.respond_with(|| with_limit_headers(page(&[], false)));
    let all = ListGrabsRequest {
        limit: Some(10),
        status: GrabStatus::Failed.into(),
        starting_after: Some("a".to_owned()),
        ending_before: Some("b".to_owned()),
        ..ListGrabsRequest::default()
    };
    let invalid =
        |field, seen| ListGrabsRequest { unparsed: vec![unparsed_field(field, seen)], ..ListGrabsRequest::default() };
    let cases = [
        ("limit=10&status=failed&starting_after=a&ending_before=b", all),
        ("limit=0", ListGrabsRequest { limit: Some(0), ..ListGrabsRequest::default() }),
        ("limit=-1", ListGrabsRequest { limit: Some(-1), ..ListGrabsRequest::default() }),
        ("other=1&other=2&Limit=x", ListGrabsRequest::default()),
        ("limit=%31", ListGrabsRequest { limit: Some(1), ..ListGrabsRequest::default() }),
        ("limit=abc", invalid("limit", "\"abc\"")),
        ("limit=1.0", invalid("limit", "\"1.0\"")),
        ("limit=", invalid("limit", "\"\"")),
        ("limit", invalid("limit", "\"\"")),
        ("limit=9223372036854775808", invalid("limit", "\"9223372036854775808\"")),
        ("limit=1&limit=1", invalid("limit", "2 values")),
        ("status=queued", invalid("status", "\"queued\"")),
        ("status=DONE", invalid("status", "\"DONE\"")),
        ("status=done&status=done&status=done", invalid("status", "3 values")),
        ("starting_after=a&starting_after=b", invalid("starting_after", "2 values")),
        ("ending_before=a&ending_before=b", invalid("ending_before", "2 values")),
        (
            "url=shop%2F&from=2026-11-01&until=2026-11-20",
            ListGrabsRequest {
                url: Some("shop/".to_owned()),
                from: Some("2026-11-01".to_owned()),
                until: Some("2026-11-20".to_owned()),
                ..ListGrabsRequest::default()
            },
        ),
        ("url=a&url=b", invalid("url", "2 values")),
        (
            "ids=a,b&ids=c",
            ListGrabsRequest { ids: ["a", "b", "c"].map(str::to_owned).into(), ..ListGrabsRequest::default() },
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(app.get(&format!("/v1/grabs?{query}")).await.status, 200, "{query}");
        assert_eq!(app.core.list.take_request().1, expected, "{query}");
    }
}

#[tokio::test]
async fn following_page_is_linked_in_the_requested_direction() {
    let app = TestApp::new();
    for (query, has_more, link) in [
        ("", true, "<https://grabd.example/v1/grabs?starting_after=a>; rel=\"next\""),
        (
            "?status=done&x=%22%3E&limit=2&starting_after=c",
            true,
            "<https://grabd.example/v1/grabs?limit=2&status=done&starting_after=a>; rel=\"next\"",
        ),
        ("?ending_before=0", true, "<https://grabd.example/v1/grabs?ending_before=b>; rel=\"prev\""),
        (
            "?url=a%26b&until=2026-11-20",
            true,
            "<https://grabd.example/v1/grabs?url=a%26b&until=2026-11-20&starting_after=a>; rel=\"next\"",
        ),
        ("?limit=2", false, ""),
    ] {
        app.core.list.respond_with(move || with_limit_headers(page(&["b", "a"], has_more)));
        let response = app.get(&format!("/v1/grabs{query}")).await;
        assert_eq!(response.header("link"), link, "{query}");
    }
}

#[tokio::test]
async fn search_continues_after_the_last_grab_that_was_read() {
    let app = TestApp::new();
    app.core
        .list
        .respond_with(|| with_limit_headers(ListGrabsResponse { next: Some("r".to_owned()), ..page(&[], true) }));
    let response = app.get("/v1/grabs?url=shop").await;
    assert_eq!(response.text(), r#"{"data":[],"has_more":true,"next":"r"}"#);
    assert_eq!(response.header("link"), "<https://grabd.example/v1/grabs?url=shop&starting_after=r>; rel=\"next\"");
}

#[tokio::test(start_paused = true)]
async fn several_grabs_are_waited_for_until_all_have_ended_or_the_time_is_over() {
    let wait = |query: &str| get(&format!("/v1/grabs?{query}")).header("prefer", "wait=20");
    let state = |id: &str, status, revision| {
        Ok(WatchGrabsResponse { grab: Some(Grab { id: id.to_owned(), ..grab(status, revision) }) })
    };
    let app = TestApp::new();
    let states = move || {
        vec![state("b", GrabStatus::Pending, 1), state("a", GrabStatus::Done, 4), state("b", GrabStatus::Failed, 3)]
    };
    let all: fn(Vec<_>, bool) -> WatchAllStream = |states, ends| match ends {
        true => Box::pin(stream::iter(states)),
        false => Box::pin(stream::iter(states).chain(stream::pending())),
    };
    app.core.watch_all.respond_with(move || with_limit_headers(all(states(), true)));
    let response = app.send(without_body(wait("ids=a,b,a,c"))).await;
    assert_eq!((response.status.as_u16(), response.header("preference-applied")), (200, "wait=20"));
    let found = response.json()["data"].clone();
    assert_eq!(found.as_array().unwrap().len(), 2, "each once, and none that does not exist");
    assert_eq!((&found[0]["id"], &found[0]["status"]), (&"a".into(), &"done".into()), "in the order of the request");
    assert_eq!((&found[1]["id"], &found[1]["status"]), (&"b".into(), &"failed".into()), "in its last state");
    let sent = app.core.watch_all.take_request().1;
    assert_eq!(sent, WatchGrabsRequest { ids: ["a", "b", "a", "c"].map(str::to_owned).into() });

    app.core.watch_all.respond_with(move || with_limit_headers(all(states()[..2].to_vec(), false)));
    let response = app.send(without_body(wait("ids=b,a"))).await;
    assert_eq!(response.json()["data"][0]["status"], "pending", "when the time is over");

    // Without ids, or with other parameters, there is nothing to wait for.
    app.core.list.respond_with(|| with_limit_headers(page(&[], false)));
    for query in ["limit=2", "ids=a&limit=2", "ids=a&url=x"] {
        let response = app.send(without_body(wait(query))).await;
        assert_eq!((response.status.as_u16(), response.header("preference-applied")), (200, ""), "{query}");
    }
}
