//! `DELETE /v1/grabs/{id}`.

use grabd_proto::v1::{DeleteGrabRequest, DeleteGrabResponse, ErrorCode};
use http::Method;

use crate::support::{STATE, TestApp, error_status, get, with_limit_headers, without_body};

#[tokio::test]
async fn delete_returns_204_without_a_body() {
    for app in TestApp::both().await {
        app.core.delete.respond_with(|| with_limit_headers(DeleteGrabResponse {}));
        let response = app.send(without_body(get("/v1/grabs/x").method(Method::DELETE))).await;
        assert_eq!((response.status.as_u16(), response.body.len()), (204, 0));
        assert_eq!((response.header("cache-control"), response.header("ratelimit")), ("private, no-store", STATE));
        assert_eq!(response.header("content-type"), "");
        assert_eq!(app.core.delete.take_request().1, DeleteGrabRequest { id: "x".to_owned() });

        app.core.delete.respond_with(|| Err(error_status(ErrorCode::NotFound, "No grab with that id.", None)));
        let response = app.send(without_body(get("/v1/grabs/x").method(Method::DELETE))).await;
        assert_eq!(response.assert_error(404, "not_found"), "No grab with that id.");
    }
}
