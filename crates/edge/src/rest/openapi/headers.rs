//! Response headers.

use serde_json::{Value, json};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::{ObjectBuilder, Ref, Type};

use super::examples::EXAMPLE_ID;
use grabd_api::words;

/// A reference to one of [`headers`].
pub(super) fn header(name: &str) -> Ref {
    Ref::new(format!("#/components/headers/{name}"))
}

/// All response headers.
pub(super) fn headers() -> Vec<(&'static str, Header)> {
    let header = |name, about: &str, schema: ObjectBuilder, example: Value| {
        (name, HeaderBuilder::new().description(Some(about)).schema(Some(schema)).example(Some(example)).build())
    };
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let number = || ObjectBuilder::new().schema_type(Type::Integer);
    vec![
        header(
            "X-Request-Id",
            "Id of the request, also used in the log.",
            text(),
            json!("0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44"),
        ),
        header(
            "Error-Cause",
            "Whose fault an error is: that of the request or the caller's limits, of the target site, or of the service.",
            words::cause_schema().into(),
            json!("request"),
        ),
        header(
            "RateLimit",
            "Remaining quota: `r` requests, and `t` seconds until one more is available.",
            text(),
            json!("\"default\";r=59;t=1"),
        ),
        header("RateLimit-Policy", "The limit: `q` requests in `w` seconds.", text(), json!("\"default\";q=60;w=60")),
        header("X-RateLimit-Limit", "The limit of requests per minute.", number(), json!(60)),
        header("X-RateLimit-Remaining", "Requests left.", number(), json!(59)),
        header("X-RateLimit-Reset", "Unix time at which one more is available.", number(), json!(1_795_206_775)),
        header("Retry-After", "Seconds to wait.", number(), json!(2)),
        header("Location", "Path of the resource.", text(), json!(format!("/v1/grabs/{EXAMPLE_ID}"))),
        header("Cache-Control", "How long the response may be stored.", text(), json!("public, max-age=86400")),
        header("ETag", "Tag of this state, for `If-None-Match`.", text(), json!("W/\"4\"")),
        header(
            "Link",
            "The next page, as `rel=\"next\"` or `rel=\"prev\"`.",
            text(),
            json!("</v1/grabs?starting_after=…>; rel=\"next\""),
        ),
        header("Preference-Applied", "The preference of `Prefer` that was applied.", text(), json!("respond-async")),
        header("Idempotent-Replayed", "`true` for a replay of an earlier response.", text(), json!("true")),
        header("WWW-Authenticate", "The required authentication scheme.", text(), json!("Bearer")),
    ]
}
