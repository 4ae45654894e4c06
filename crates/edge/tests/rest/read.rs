//! `GET /v1/grabs/{id}/read`.

use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::routing::get;
use grabd_proto::reason;
use grabd_proto::v1::{ErrorCode, GetGrabResponse, Grab, GrabFile, GrabStatus};
use http::StatusCode;
use serde_json::Value;

use crate::support::{POLICY, STATE, TestApp, error_status, grab, options, with_limit_headers};

const PATH: &str = "/v1/grabs/01990000-0000-7000-8000-000000000001/read";

/// A text with characters of several bytes, of about 900 tokens.
fn article() -> String {
    let paragraph =
        "Ein Satz über Größe. Noch einer: 日本語の文章。\n- one item\n- another\n\n| a | b |\n| - | - |\n\n";
    format!("# Title\n\n{}The end", paragraph.repeat(25))
}

/// An app whose grab has these files, which are served with these contents.
fn app(files: &[(&'static str, String)]) -> TestApp {
    let mut images = Router::new();
    for (kind, content) in files {
        let content = content.clone();
        images = images.route(&format!("/f/key/{kind}"), get(async move || content));
    }
    let app = TestApp::with(grabd_edge::Options { images, ..options() });
    let kinds: Vec<&'static str> = files.iter().map(|(kind, _)| *kind).collect();
    app.core.get.respond_with(move || {
        let files = kinds.iter().map(|kind| GrabFile {
            kind: (*kind).to_owned(),
            url: format!("https://grabd.example/f/key/{kind}"),
            ..GrabFile::default()
        });
        let image_url = Some("https://grabd.example/i/a/b/c.png".to_owned());
        let done = Grab { image_url, files: files.collect(), ..grab(GrabStatus::Done, 4) };
        with_limit_headers(GetGrabResponse { grab: Some(done) })
    });
    app
}

#[tokio::test]
async fn parts_of_a_text_are_the_whole_text() {
    let article = article();
    let app = app(&[("markdown", article.clone())]);
    let whole = app.get(PATH).await;
    assert_eq!((whole.status, whole.header("cache-control")), (StatusCode::OK, "private, no-store"));
    assert_eq!((whole.header("ratelimit-policy"), whole.header("ratelimit")), (POLICY, STATE));
    let whole = whole.json();
    assert_eq!((whole["format"].as_str(), whole["text"].as_str()), (Some("markdown"), Some(article.as_str())));
    assert_eq!((&whole["next"], &whole["tokens_estimate"]), (&Value::Null, &whole["total_tokens"]));
    let (mut read, mut from, mut parts) = (String::new(), 0, 0);
    loop {
        let part = app.get(&format!("{PATH}?max_tokens=100&from={from}")).await.json();
        assert_eq!(part["from"], from);
        assert!(part["tokens_estimate"].as_u64().is_some_and(|tokens| tokens <= 100), "{part}");
        assert_eq!(part["total_tokens"], whole["total_tokens"]);
        read.push_str(part["text"].as_str().expect("a text"));
        parts += 1;
        match part["next"].as_u64() {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(read, article);
    assert!(parts > 5, "{parts}");
}

#[tokio::test]
async fn what_cannot_be_read_is_said() {
    let app = app(&[("text", "é".to_owned())]);
    for (query, status, code, expected) in [
        ("?format=markdown", 404, "not_found", "`also: [\"markdown\"]`"),
        ("?format=pdf", 400, "bad_request", "`format` must be"),
        ("?format=text&from=1", 400, "bad_request", "`from` must be 0"),
        ("?format=text&from=3", 400, "bad_request", "at most 2; got 3"),
        ("?format=difference", 400, "bad_request", "`compare_to`"),
    ] {
        let response = app.get(&format!("{PATH}{query}")).await;
        let message = response.assert_error(status, code);
        assert!(message.contains(expected), "{query}: {message}");
        assert_eq!((response.header("ratelimit-policy"), response.header("ratelimit")), (POLICY, STATE), "{query}");
    }
    assert_eq!(app.get(&format!("{PATH}?format=text&from=2")).await.json()["text"], "");
    for (status, expected) in [(GrabStatus::Pending, "pending"), (GrabStatus::Failed, "failed")] {
        app.core.get.respond_with(move || with_limit_headers(GetGrabResponse { grab: Some(grab(status, 1)) }));
        let response = app.get(PATH).await;
        assert!(response.assert_error(404, "not_found").contains(expected));
    }
    // The credential comes first.
    app.core.get.respond_with(|| Err(error_status(ErrorCode::Unauthorized, "No.", None)));
    app.get(&format!("{PATH}?format=pdf")).await.assert_error(401, "unauthorized");
}

/// A difference asks the core for two grabs, each of which counts.
#[tokio::test]
async fn difference_reports_the_limit_after_its_last_request() {
    let app = app(&[]);
    let left = AtomicU32::new(60);
    app.core.get.respond_with(move || {
        let state = format!("\"default\";r={};t=1", left.fetch_sub(1, Ordering::Relaxed) - 1);
        let mut response = with_limit_headers(GetGrabResponse { grab: Some(grab(GrabStatus::Done, 4)) })?;
        response.metadata_mut().insert(reason::RATE_LIMIT, state.parse().expect("metadata"));
        Ok(response)
    });
    let earlier = "01990000-0000-7000-8000-000000000002";
    let response = app.get(&format!("{PATH}?format=difference&compare_to={earlier}")).await;
    assert_eq!((response.status, response.header("ratelimit")), (StatusCode::OK, "\"default\";r=58;t=1"));
    assert_eq!(app.core.get.take_requests().len(), 2);
}
