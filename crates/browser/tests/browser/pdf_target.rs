//! PDFs at the address of a capture: one of their pages is drawn.

use grabd_domain::capture::{CaptureRequest, OptionValue, Secret};
use grabd_domain::grabs::FailureReason::{RenderBlocked, RenderFailed, SsrfDetected};
use grabd_domain::grabs::Warning;

use crate::rig::{Rig, request};
use crate::site::{Reply, Site, answer, html};

/// Two square pages: the first is red above blue, the second is lime.
const LEAFLET: &[u8] = include_bytes!("../../../../tests/site/assets/leaflet.pdf");

/// The same, encrypted with a password.
const LOCKED: &[u8] = include_bytes!("pdfs/locked.pdf");

/// One page with a text in a Japanese encoding and in a font that is not embedded.
const JAPANESE: &[u8] = include_bytes!("pdfs/japanese.pdf");

fn pdf(content: &[u8]) -> Reply {
    answer("200 OK", "Content-Type: application/pdf", content)
}

/// Sets options of a request.
type Change = fn(&mut CaptureRequest);

#[tokio::test(flavor = "multi_thread")]
async fn page_of_a_pdf_is_captured() {
    let attached = "Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf";
    let site = Site::start(2, [("/a.pdf", pdf(LEAFLET)), ("/b.pdf", answer("200 OK", attached, LEAFLET))]).await;
    let rig = Rig::start().await;

    let first = rig.grab(&site.url("/a.pdf")).await;
    assert_eq!((first.size(), first.colour(640, 5), first.colour(640, 700)), ((1280, 720), "red", "blue"));
    assert_eq!((first.metadata.http_status, first.metadata.redirects), (Some(200), Some(0)));
    assert_eq!(first.metadata.final_url, Some(site.url("/a.pdf")));
    assert_eq!(first.metadata.page.title.as_deref(), Some("Leaflet"));
    assert_eq!(first.metadata.warnings, []);
    assert_eq!(site.hits("/a.pdf"), 2, "once to learn what it is, once for the document that draws it");

    let whole = CaptureRequest { full_page: Some(true), scale: Some(2.0), ..request(&site.url("/b.pdf#page=2")) };
    let whole = rig.capture(whole).await;
    assert_eq!((whole.size(), whole.colour(1280, 1270), whole.colour(1280, 2550)), ((2560, 2560), "red", "blue"));

    let moved = format!("{}?/a.pdf", site.url("/to"));
    let second = rig.capture(CaptureRequest { pdf_page: Some(2), ..request(&moved) }).await;
    assert_eq!((second.colour(5, 5), second.metadata.redirects), ("lime", Some(1)));
    assert_eq!(second.metadata.final_url, Some(site.url("/a.pdf")));

    // Without scripts, too: those of the page are meant.
    let still = CaptureRequest { javascript: Some(false), freeze: Some(true), ..request(&site.url("/a.pdf")) };
    assert_eq!(rig.capture(still).await.colour(640, 5), "red");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pdf_is_loaded_with_the_headers_of_the_caller_and_whatever_is_blocked() {
    let site = Site::start(2, [("/a.pdf", pdf(LEAFLET))]).await;
    let rig = Rig::start().await;
    let asked = CaptureRequest {
        headers: Some(Secret([("X-Token".to_owned(), OptionValue::Text("abc".to_owned()))].into())),
        block_types: Some(vec!["xhr".to_owned(), "font".to_owned()]),
        block_urls: Some(vec!["*.pdf".to_owned()]),
        ..request(&site.url("/a.pdf"))
    };
    assert_eq!(rig.capture(asked).await.colour(640, 5), "red");
    let heads = site.heads("/a.pdf");
    assert_eq!(heads.len(), 2);
    assert!(heads.iter().all(|head| head.contains("x-token: abc")), "{heads:?}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pdf_that_cannot_be_drawn_fails() {
    let refused = answer("403 Forbidden", "Content-Type: application/pdf", LEAFLET);
    let pages = [
        ("/a.pdf", pdf(LEAFLET)),
        ("/locked.pdf", pdf(LOCKED)),
        ("/broken.pdf", pdf(b"%PDF-1.7\nnothing\n%%EOF\n")),
        ("/cut.pdf", pdf(&LEAFLET[..90])),
        ("/empty.pdf", pdf(b"")),
        ("/refused.pdf", refused),
        ("/page", html("<p>x")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    rig.fails_with(&site.url("/locked.pdf"), RenderFailed, "The PDF needs a password.").await;
    for path in ["/broken.pdf", "/cut.pdf", "/empty.pdf"] {
        rig.fails_with(&site.url(path), RenderFailed, "The PDF is broken").await;
    }
    let metadata = rig.fails_with(&site.url("/refused.pdf"), RenderBlocked, "status 403").await;
    assert_eq!((metadata.http_status, site.hits("/refused.pdf")), (Some(403), 1));
    let hidden = format!("{}?http://127.0.0.3:8080/a.pdf", site.url("/to"));
    rig.fails_with(&hidden, SsrfDetected, "not public").await;

    let cases: [(&str, Change, &str); 6] = [
        ("/a.pdf", |r| r.pdf_page = Some(3), "`pdf_page` is 3, and the PDF has 2 pages."),
        ("/page", |r| r.pdf_page = Some(2), "`pdf_page` is for PDFs, and the address leads to a web page."),
        (
            "/a.pdf",
            |r| r.selector = Some("canvas".into()),
            "`selector` cannot be used here: the address leads to a PDF",
        ),
        ("/a.pdf", |r| r.css = Some("canvas {}".into()), "`css` cannot be used here"),
        ("/a.pdf", |r| r.wait_for_text = Some("Leaflet".into()), "`wait_for_text` cannot be used here"),
        ("/a.pdf", |r| r.also = Some(vec!["report".into(), "text".into()]), "`also` with \"text\" cannot be used here"),
    ];
    for (path, change, part) in cases {
        let mut asked = request(&site.url(path));
        change(&mut asked);
        let (failure, _) = rig.fails(asked).await;
        assert_eq!(failure.reason, RenderFailed);
        assert!(failure.message.starts_with(part), "{path}: {}", failure.message);
    }
    // The browser still works.
    assert!(!rig.grab(&site.url("/a.pdf")).await.metadata.warnings.contains(&Warning::Blank));
    assert!(rig.chromium.health().restarts.is_empty());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_whose_font_is_not_embedded_is_drawn() {
    let site = Site::start(2, [("/a.pdf", pdf(JAPANESE))]).await;
    let rig = Rig::start().await;
    rig.capture(CaptureRequest { fail_if_blank: Some(true), full_page: Some(true), ..request(&site.url("/a.pdf")) })
        .await;
    assert_eq!(site.hits("/a.pdf"), 2, "however many tables of characters it needs");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_status_of_a_pdf_can_be_allowed() {
    let refused = answer("403 Forbidden", "Content-Type: application/pdf", LEAFLET);
    let site = Site::start(2, [("/a.pdf", refused)]).await;
    let rig = Rig::start().await;
    let image = rig.capture(CaptureRequest { allow_blocked: Some(true), ..request(&site.url("/a.pdf")) }).await;
    assert_eq!((image.colour(640, 5), image.metadata.http_status), ("red", Some(403)));
    rig.chromium.shutdown().await;
}
