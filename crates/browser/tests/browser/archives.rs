//! Files that keep a page or its requests: MHTML and HAR.

use grabd_domain::capture::{CaptureRequest, FileKind};
use grabd_domain::render::Capture;
use serde_json::Value;

use crate::rig::{Rig, request};
use crate::site::{Site, answer, html, svg};

fn asked(url: &str, kind: &str) -> CaptureRequest {
    CaptureRequest { also: Some(vec![kind.to_owned()]), ..request(url) }
}

fn text(capture: &Capture) -> String {
    String::from_utf8(capture.files[0].content.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn mhtml_has_the_document_with_its_images_and_frames() {
    let page = "<!doctype html><h1>Heading</h1><img src=/i.svg><iframe src=/frame></iframe>";
    let site =
        Site::start(2, [("/", html(page)), ("/i.svg", svg("lime")), ("/frame", html("<p>framed text</p>"))]).await;
    let rig = Rig::start().await;
    let capture = rig.render(asked(&site.url("/"), "mhtml")).await.unwrap();
    let saved = text(&capture);
    let head = saved.split("\r\n\r\n").next().unwrap();
    assert!(head.contains("multipart/related") && head.contains(&site.url("/")), "{head}");
    for part in ["Heading", "framed text", "Content-Type: image/svg+xml", &site.url("/i.svg")] {
        assert!(saved.contains(part), "{part:?} in {saved}");
    }
    assert_eq!(site.hits("/i.svg"), 1, "the image is not loaded again");

    let large = "<!doctype html><body><script>document.body.dataset.large = 'x'.repeat(17 << 20)</script>";
    let site = Site::start(2, [("/", html(large))]).await;
    let (failure, _) = rig.fails(asked(&site.url("/"), "mhtml")).await;
    assert!(failure.message.contains("mhtml of the page has more than 16 MB"), "{failure:?}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_has_the_page_and_a_report_with_the_browser() {
    let site = Site::start(2, [("/", html("<!doctype html><h1>Heading</h1>"))]).await;
    let rig = Rig::start().await;
    let asked = CaptureRequest { evidence: Some(true), ..request(&site.url("/")) };
    let capture = rig.render(asked).await.unwrap();
    let kinds: Vec<FileKind> = capture.files.iter().map(|file| file.kind).collect();
    assert_eq!(kinds, [FileKind::Mhtml, FileKind::Report]);
    let report: Value = serde_json::from_slice(&capture.files[1].content).unwrap();
    assert!(report["browser"].as_str().is_some_and(|browser| browser.starts_with("Chromium ")), "{report}");
    assert!(report["response"]["headers"].is_array(), "{report}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn har_has_the_requests_without_secrets() {
    let headers = "Content-Type: text/html\r\nSet-Cookie: visitor=hidden-4\r\nX-Echo: got hidden-1\r\nX-Kind: page";
    let page = "<!doctype html><p>page</p><img src='/i.svg?size=2&token=hidden-1'>
        <script>fetch('/data', { headers: { Authorization: 'Bearer hidden-5', 'X-Page': 'a' } })</script>";
    let site = Site::start(
        2,
        [
            ("/", answer("200 OK", headers, page)),
            ("/i.svg", svg("lime")),
            ("/data", answer("200 OK", "Content-Type: application/json", "{}")),
        ],
    )
    .await;
    let rig = Rig::start().await;
    let mut asked = asked(&site.url("/to?/"), "har");
    for (name, json) in [
        ("headers", r#"{"X-Token": "hidden-1"}"#),
        ("basic_auth", r#"{"username": "me", "password": "hidden-2"}"#),
        ("cookies", r#"[{"name": "sid", "value": "hidden-3"}]"#),
    ] {
        assert!(asked.set(name, serde_json::from_str(json).unwrap()), "{name}");
    }
    let capture = rig.render(asked).await.unwrap();
    assert!(site.heads("/")[0].contains("hidden-1"), "the secrets are sent");
    let saved = text(&capture);
    // The base64 of `me:hidden-2`.
    for secret in ["hidden-", "bWU6aGlkZGVuLTI="] {
        assert!(!saved.contains(secret), "{saved}");
    }
    for name in ["set-cookie", "\"cookie\"", "authorization", "x-token"] {
        assert!(!saved.to_ascii_lowercase().contains(name), "{name}: {saved}");
    }

    let archive: Value = serde_json::from_str(&saved).unwrap();
    let log = &archive["log"];
    assert_eq!((&log["version"], &log["_requestsOmitted"]), (&"1.2".into(), &0.into()));
    let entry = |path: &str| {
        let url = site.url(path);
        let mut entries = log["entries"].as_array().unwrap().iter();
        entries
            .find(|entry| entry["request"]["url"].as_str().unwrap() == url)
            .unwrap_or_else(|| panic!("{path}: {log}"))
    };
    let redirect = entry("/to?/");
    assert_eq!((&redirect["response"]["status"], &redirect["response"]["redirectURL"]), (&302.into(), &"/".into()));
    let document = entry("/");
    assert_eq!((&document["request"]["method"], &document["response"]["status"]), (&"GET".into(), &200.into()));
    assert_eq!(
        (&document["_resourceType"], &document["response"]["content"]["mimeType"]),
        (&"document".into(), &"text/html".into())
    );
    assert_eq!(document["response"]["content"]["size"], page.len());
    let headers = document["response"]["headers"].as_array().unwrap();
    assert!(headers.iter().any(|header| header["name"] == "X-Kind" && header["value"] == "page"), "{document}");
    let image = entry("/i.svg?size=2&token=removed");
    assert_eq!(image["request"]["queryString"][0], serde_json::json!({ "name": "size", "value": "2" }));
    let times = &image["timings"];
    let sum = ["send", "wait", "receive"].map(|name| times[name].as_u64().unwrap()).iter().sum::<u64>();
    assert_eq!(image["time"].as_u64(), Some(sum));
    assert!(image["startedDateTime"].as_str().unwrap().starts_with("20"), "{image}");
    let data = entry("/data");
    assert!(data["request"]["headers"].to_string().contains("X-Page"), "{data}");
    rig.chromium.shutdown().await;
}
