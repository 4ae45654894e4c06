use super::*;

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

fn checked(path: &str, fields: &[(&'static str, &'static str)], body: &str) -> bool {
    check_response(&Method::GET, path, StatusCode::NOT_FOUND, &headers(fields), body.as_bytes()).is_ok()
}

const JSON: (&str, &str) = ("content-type", "application/json");
const CAUSE: (&str, &str) = ("error-cause", "request");

#[test]
fn error_bodies_with_other_members_are_found() {
    let good = r#"{"error":{"code":"not_found","message":"m"}}"#;
    assert!(checked("/v1/grabs/x", &[JSON, CAUSE], good));
    for body in [
        r#"{"error":{"code":"not_found","message":"m","cause":"request"}}"#,
        r#"{"error":{"code":"not_found","message":"m"},"cause":"request"}"#,
        r#"{"error":{"code":"not_found","message":""}}"#,
        r#"{"error":{"code":"teapot","message":"m"}}"#,
        r#"{"error":{"code":"not_found"}}"#,
        r#"{"error":"not_found"}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#,
        "{}",
        "[]",
    ] {
        assert!(!checked("/v1/grabs/x", &[JSON, CAUSE], body), "{body}");
    }
}

#[test]
fn errors_without_a_valid_cause_are_found() {
    let body = r#"{"error":{"code":"not_found","message":"m"}}"#;
    for causes in [&[][..], &["weather"], &["request", "target"], &["request, target"]] {
        let mut map = headers(&[JSON]);
        causes.iter().for_each(|cause| _ = map.append("error-cause", cause.parse().unwrap()));
        let result = check_response(&Method::GET, "/i/x", StatusCode::NOT_FOUND, &map, body.as_bytes());
        assert!(result.is_err(), "{causes:?}");
    }
}

#[test]
fn other_protocols_have_their_own_errors_at_their_own_paths() {
    let (rpc, oauth) = (r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#, r#"{"error":"invalid_request"}"#);
    assert!(checked("/mcp", &[JSON, CAUSE], rpc));
    assert!(checked("/v1/oauth/token", &[JSON, CAUSE], oauth));
    assert!(!checked("/mcp", &[JSON, CAUSE], oauth));
    let html = ("content-type", "text/html");
    assert!(checked("/nowhere", &[html, CAUSE], "<p>"));
    assert!(!checked("/v1/nowhere", &[html, CAUSE], "<p>"));
    assert!(!checked("/nowhere", &[html], "<p>"));
}

#[test]
fn only_failed_grabs_have_an_error_code() {
    let grab = |status: &str, more: Value| {
        let mut grab =
            json!({ "id": "01993e1c-7b1a-7000-8000-0123456789ab", "created_at": "2026-11-20T20:31:53.488Z" });
        grab["status"] = json!(status);
        for (name, value) in more.as_object().into_iter().flatten() {
            grab[name] = value.clone();
        }
        Shape::Grab.check(&grab).is_ok()
    };
    let error = json!({ "error_message": "m", "error_code": "render_failed", "error_cause": "target" });
    assert!(grab("failed", error.clone()) && grab("done", json!({})) && grab("pending", json!({ "image_url": null })));
    assert!(!grab("done", error.clone()) && !grab("failed", json!({})) && !grab("processing", error));
    assert!(!grab("failed", json!({ "error_message": "m", "error_cause": "target" })));
    assert!(!grab("done", json!({ "width": "1" })) && !grab("pending", json!({ "image_url": "https://a.example/" })));
    assert!(
        !grab("lost", json!({})) && !grab("done", json!({ "id": "7" })) && !grab("done", json!({ "created_at": "" }))
    );
}

#[test]
fn results_of_batches_have_a_cause_beside_their_error() {
    let refused = |more: Value| {
        let mut result = json!({ "grab": null, "error": { "code": "bad_request", "message": "m" } });
        for (name, value) in more.as_object().into_iter().flatten() {
            result[name] = value.clone();
        }
        Shape::Batch.check(&json!({ "results": [result] })).is_ok()
    };
    assert!(refused(json!({ "error_cause": "request" })));
    assert!(!refused(json!({})) && !refused(json!({ "error": null })));
    assert!(!refused(json!({ "error": { "code": "bad_request", "message": "m", "cause": "request" } })));
}
