//! `GET /v1/grabs`.

use grabd_proto::v1::{Grab, GrabStatus, ListGrabsRequest, ListGrabsResponse, Unparsed};

use crate::support::{STATE, TestApp, grab, with_limit_headers};

fn page(ids: &'static [&'static str], has_more: bool) -> ListGrabsResponse {
    let grabs = ids.iter().map(|id| Grab { id: (*id).to_owned(), ..grab(GrabStatus::Done, 4) }).collect();
    ListGrabsResponse { grabs, has_more }
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
        unparsed: vec![],
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
        ("?limit=2", false, ""),
    ] {
        app.core.list.respond_with(move || with_limit_headers(page(&["b", "a"], has_more)));
        let response = app.get(&format!("/v1/grabs{query}")).await;
        assert_eq!(response.header("link"), link, "{query}");
    }
}
