//! `DELETE /v1/grabs/{id}`.

use grabd_proto::v1::{DeleteGrabRequest, DeleteGrabResponse, ErrorCode};
use http::Method;

use crate::support::{House, STATE, bare, fault, get, limited};

#[tokio::test]
async fn a_deletion_is_answered_with_nothing() {
    for house in House::both().await {
        house.core.delete.answers(|| limited(DeleteGrabResponse {}));
        let reply = house.send(bare(get("/v1/grabs/x").method(Method::DELETE))).await;
        assert_eq!((reply.status.as_u16(), reply.body.len()), (204, 0));
        assert_eq!((reply.header("cache-control"), reply.header("ratelimit")), ("private, no-store", STATE));
        assert_eq!(reply.header("content-type"), "");
        assert_eq!(house.core.delete.asked_once().1, DeleteGrabRequest { id: "x".to_owned() });

        house.core.delete.answers(|| Err(fault(ErrorCode::NotFound, "No grab with that id.", None)));
        let reply = house.send(bare(get("/v1/grabs/x").method(Method::DELETE))).await;
        assert_eq!(reply.refused(404, "not_found"), "No grab with that id.");
    }
}
