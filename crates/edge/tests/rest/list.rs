//! `GET /v1/grabs`.

use grabd_proto::v1::{Grab, GrabStatus, ListGrabsRequest, ListGrabsResponse, Unparsed};

use crate::support::{House, STATE, grab, limited};

fn page(ids: &'static [&'static str], has_more: bool) -> ListGrabsResponse {
    let grabs = ids.iter().map(|id| Grab { id: (*id).to_owned(), ..grab(GrabStatus::Done, 4) }).collect();
    ListGrabsResponse { grabs, has_more }
}

fn wrong(field: &str, seen: &str) -> Unparsed {
    Unparsed { field: field.to_owned(), seen: seen.to_owned() }
}

#[tokio::test]
async fn grabs_are_listed() {
    for house in House::both().await {
        house.core.list.answers(|| limited(page(&["b", "a"], false)));
        let reply = house.get("/v1/grabs").await;
        assert_eq!(reply.status, 200);
        assert!(reply.text().starts_with(r#"{"data":[{"id":"b","status":"done","#), "{}", reply.text());
        assert!(reply.text().ends_with(r#"}],"has_more":false}"#), "{}", reply.text());
        assert_eq!(reply.json()["data"][1]["id"], "a");
        assert_eq!(reply.header("cache-control"), "private, no-store");
        assert_eq!((reply.header("ratelimit"), reply.header("link")), (STATE, ""));
        assert_eq!(house.core.list.asked_once().1, ListGrabsRequest::default());
    }
    let house = House::new();
    house.core.list.answers(|| limited(page(&[], false)));
    assert_eq!(house.get("/v1/grabs").await.text(), r#"{"data":[],"has_more":false}"#);
}

#[tokio::test]
async fn parameters_are_read_by_their_types() {
    let house = House::new();
    house.core.list.answers(|| limited(page(&[], false)));
    let all = ListGrabsRequest {
        limit: Some(10),
        status: GrabStatus::Failed.into(),
        starting_after: Some("a".to_owned()),
        ending_before: Some("b".to_owned()),
        unparsed: vec![],
    };
    let refused = |field, seen| ListGrabsRequest { unparsed: vec![wrong(field, seen)], ..ListGrabsRequest::default() };
    let cases = [
        ("limit=10&status=failed&starting_after=a&ending_before=b", all),
        ("limit=0", ListGrabsRequest { limit: Some(0), ..ListGrabsRequest::default() }),
        ("limit=-1", ListGrabsRequest { limit: Some(-1), ..ListGrabsRequest::default() }),
        ("other=1&other=2&Limit=x", ListGrabsRequest::default()),
        ("limit=%31", ListGrabsRequest { limit: Some(1), ..ListGrabsRequest::default() }),
        ("limit=abc", refused("limit", "\"abc\"")),
        ("limit=1.0", refused("limit", "\"1.0\"")),
        ("limit=", refused("limit", "\"\"")),
        ("limit", refused("limit", "\"\"")),
        ("limit=9223372036854775808", refused("limit", "\"9223372036854775808\"")),
        ("limit=1&limit=1", refused("limit", "2 values")),
        ("status=queued", refused("status", "\"queued\"")),
        ("status=DONE", refused("status", "\"DONE\"")),
        ("status=done&status=done&status=done", refused("status", "3 values")),
        ("starting_after=a&starting_after=b", refused("starting_after", "2 values")),
        ("ending_before=a&ending_before=b", refused("ending_before", "2 values")),
    ];
    for (query, expected) in cases {
        assert_eq!(house.get(&format!("/v1/grabs?{query}")).await.status, 200, "{query}");
        assert_eq!(house.core.list.asked_once().1, expected, "{query}");
    }
}

#[tokio::test]
async fn the_page_after_this_one_is_linked() {
    let house = House::new();
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
        house.core.list.answers(move || limited(page(&["b", "a"], has_more)));
        let reply = house.get(&format!("/v1/grabs{query}")).await;
        assert_eq!(reply.header("link"), link, "{query}");
    }
}
